// Keys of TLS session tickets: the same in all threads, and in all gateways with the same cookie_keys, so that a client resumes
// its session at any of them.
import { hkdfSync, randomBytes } from "node:crypto";
import { every, type RepeatingTimer } from "@platform/kernel/time";
import type { TicketKeySpec } from "../shared-state/index.ts";

/** Bytes of the name, the HMAC key and the AES key of a ticket. */
const KEYS_BYTES = 48;
/** Tickets of the time before are accepted, too: a stolen key opens the connections of these two times only. */
const ROTATION_MS = 12 * 3_600_000;
const CHECK_MS = 10_000;

/** Options of {@link TicketKeys}. */
export interface TicketKeysOptions {
  /** Key that other gateways have, too; undefined: the keys are random. */
  shared: Uint8Array | undefined;
  /** Called with new keys. */
  onRotated: (keys: TicketKeySpec) => void;
  onError: (error: unknown) => void;
  readNowMs?: () => number;
}

/** The keys of one process, in memory only. {@link stop} ends their rotation. */
export class TicketKeys {
  readonly #shared: Uint8Array | undefined;
  readonly #timer: RepeatingTimer;
  readonly #readNowMs: () => number;
  #epoch: number;
  #keys: TicketKeySpec;

  constructor({ shared, onRotated, onError, readNowMs = Date.now }: TicketKeysOptions) {
    this.#shared = shared;
    this.#readNowMs = readNowMs;
    this.#epoch = this.#readEpoch();
    const previous = shared === undefined ? undefined : this.#create(this.#epoch - 1);
    this.#keys = { current: this.#create(this.#epoch), previous };
    this.#timer = every(
      CHECK_MS,
      () => {
        const epoch = this.#readEpoch();
        if (epoch === this.#epoch) return;
        this.#keys = { current: this.#create(epoch), previous: this.#choosePrevious(epoch) };
        this.#epoch = epoch;
        onRotated(this.#keys);
      },
      onError,
    );
  }

  /** The keys of new tickets, and those of the time before. */
  get keys(): TicketKeySpec {
    return this.#keys;
  }

  stop(): Promise<void> {
    return this.#timer.stop();
  }

  // The same at all gateways whose clocks are right.
  #readEpoch(): number {
    return Math.floor(this.#readNowMs() / ROTATION_MS);
  }

  // A machine may have slept for more than one time.
  #choosePrevious(epoch: number): Uint8Array | undefined {
    if (this.#shared !== undefined) return this.#create(epoch - 1);
    return this.#epoch === epoch - 1 ? this.#keys.current : undefined;
  }

  // Not from the pool of small buffers, all of which a message would copy.
  #create(epoch: number): Uint8Array {
    if (this.#shared === undefined) return new Uint8Array(randomBytes(KEYS_BYTES));
    const info = `platform-gate session tickets ${epoch}`;
    return new Uint8Array(hkdfSync("sha256", this.#shared, "", info, KEYS_BYTES));
  }
}
