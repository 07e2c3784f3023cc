// Requests that fetch a response for the cache: of equal ones, one goes upstream and the others wait, in all workers.

const FLIGHTS = 8_192;
const FLIGHT_INTS = 5;
/** Hash of the key; 0 is free. */
const HASH = 0;
/** Thread that fetches, plus one. */
const OWNER = 1;
/** Second since the start at which it began. */
const BEGUN_AT = 2;
/** Second until which a key is not stored, and nobody waits for it. */
const PASS_UNTIL = 3;
/** The hash of that key, which the keys that share its place do not suffer from. */
const PASS_HASH = 4;
/** A request that takes longer no longer keeps others. */
const OWNED_S_MAX = 60;
const PASS_S = 5;
const POLL_MS = 10;

/** Allocates the table of flights. */
export function allocateFlights(): SharedArrayBuffer {
  return new SharedArrayBuffer(FLIGHTS * FLIGHT_INTS * 4);
}

/** Result of a request for a flight: fetch and store, fetch without a flight, or wait. */
export type FlightRole = "leader" | "passes" | "waits";

/** The flights of all workers. Keys with equal hashes share one, which costs a wait, never a wrong answer. */
export class CacheFlights {
  readonly #words: Int32Array;
  readonly #thread: number;
  readonly #readSeconds: () => number;

  /** `readSeconds` is a clock that all threads share, above 0. */
  constructor(buffer: SharedArrayBuffer, thread: number, readSeconds: () => number) {
    this.#words = new Int32Array(buffer);
    this.#thread = thread;
    this.#readSeconds = readSeconds;
  }

  /** Tries to become the one that fetches. `land` must follow if this returns `leader`. */
  take(hash: number): FlightRole {
    const words = this.#words;
    const at = flightAt(hash);
    const mark = markOf(hash);
    const now = this.#readSeconds();
    const held = Atomics.compareExchange(words, at + HASH, 0, mark);
    if (held === 0) {
      if (
        Atomics.load(words, at + PASS_UNTIL) > now &&
        Atomics.load(words, at + PASS_HASH) === mark
      ) {
        this.#free(at);
        return "passes";
      }
      Atomics.store(words, at + OWNER, this.#thread + 1);
      Atomics.store(words, at + BEGUN_AT, now);
      return "leader";
    }
    const isOld = now - Atomics.load(words, at + BEGUN_AT) > OWNED_S_MAX;
    return held !== mark || isOld ? "passes" : "waits";
  }

  /** The fetch has ended. `mayStore` false: its response may not be stored, so for a while nobody waits for the next one. */
  land(hash: number, mayStore: boolean): void {
    const words = this.#words;
    const at = flightAt(hash);
    if (Atomics.load(words, at + OWNER) !== this.#thread + 1) return;
    Atomics.store(words, at + PASS_HASH, markOf(hash));
    Atomics.store(words, at + PASS_UNTIL, mayStore ? 0 : this.#readSeconds() + PASS_S);
    this.#free(at);
  }

  /** Waits until the fetch of this key ends, at most `timeoutMs`. */
  async wait(hash: number, timeoutMs: number): Promise<void> {
    const at = flightAt(hash);
    const mark = markOf(hash);
    const words = this.#words;
    if (typeof Atomics.waitAsync === "function") {
      const result = Atomics.waitAsync(words, at + HASH, mark, timeoutMs);
      if (result.async) await result.value;
      return;
    }
    const deadline = performance.now() + timeoutMs;
    while (Atomics.load(words, at + HASH) === mark && performance.now() < deadline) {
      await new Promise((resolve) => setTimeout(resolve, POLL_MS));
    }
  }

  /** Ends the fetches of a worker that has ended. For the control plane. */
  recover(thread: number): void {
    for (let at = 0; at < this.#words.length; at += FLIGHT_INTS) {
      const owner = Atomics.load(this.#words, at + OWNER);
      // It may have ended between its first write to a flight and the one of its name. Freeing one that another worker is
      // taking at this moment costs a second request upstream.
      const isUnnamed = owner === 0 && Atomics.load(this.#words, at + HASH) !== 0;
      if (owner === thread + 1 || isUnnamed) this.#free(at);
    }
  }

  #free(at: number): void {
    const words = this.#words;
    Atomics.store(words, at + OWNER, 0);
    Atomics.store(words, at + HASH, 0);
    Atomics.notify(words, at + HASH);
  }
}

function flightAt(hash: number): number {
  return (hash & (FLIGHTS - 1)) * FLIGHT_INTS;
}

function markOf(hash: number): number {
  return hash | 1;
}
