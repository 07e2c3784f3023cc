// Keys of TLS session tickets: the same in all threads, and in all gateways with the same cookie_keys, so that a client resumes
// its session at any of them.
import { hkdfSync, randomBytes } from "node:crypto";
import { every, type RepeatingTimer } from "@platform/kernel/time";

/** Bytes of the name, the HMAC key and the AES key of a ticket. */
const KEYS_BYTES = 48;
/** A stolen key opens the connections of this time only. Tickets live for minutes. */
const ROTATION_MS = 12 * 3_600_000;
const CHECK_MS = 10_000;

/** Options of {@link TicketKeys}. */
export interface TicketKeysOptions {
  /** Key that other gateways have, too; undefined: the keys are random. */
  shared: Uint8Array | undefined;
  /** Called with new keys. */
  onRotated: (keys: Uint8Array) => void;
  onError: (error: unknown) => void;
  readNowMs?: () => number;
}

/** The keys of one process, in memory only. {@link stop} ends their rotation. */
export class TicketKeys {
  readonly #shared: Uint8Array | undefined;
  readonly #timer: RepeatingTimer;
  readonly #readNowMs: () => number;
  #epoch: number;
  #current: Uint8Array;

  constructor({ shared, onRotated, onError, readNowMs = Date.now }: TicketKeysOptions) {
    this.#shared = shared;
    this.#readNowMs = readNowMs;
    this.#epoch = this.#readEpoch();
    this.#current = this.#create();
    this.#timer = every(
      CHECK_MS,
      () => {
        const epoch = this.#readEpoch();
        if (epoch === this.#epoch) return;
        this.#epoch = epoch;
        this.#current = this.#create();
        onRotated(this.#current);
      },
      onError,
    );
  }

  /** The keys of new tickets. */
  get current(): Uint8Array {
    return this.#current;
  }

  stop(): Promise<void> {
    return this.#timer.stop();
  }

  // The same at all gateways whose clocks are right.
  #readEpoch(): number {
    return Math.floor(this.#readNowMs() / ROTATION_MS);
  }

  // Not from the pool of small buffers, all of which a message would copy.
  #create(): Uint8Array {
    if (this.#shared === undefined) return new Uint8Array(randomBytes(KEYS_BYTES));
    const info = `platform-gate session tickets ${this.#epoch}`;
    return new Uint8Array(hkdfSync("sha256", this.#shared, "", info, KEYS_BYTES));
  }
}
