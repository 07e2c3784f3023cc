// Keys of TLS session tickets: the same in all threads, so that a client resumes its session at any of them.
import { randomBytes } from "node:crypto";
import { every, type RepeatingTimer } from "@platform/kernel/time";

/** Bytes of the name, the HMAC key and the AES key of a ticket. */
const KEYS_BYTES = 48;
/** A stolen key opens the connections of this time only. Tickets live for minutes. */
const ROTATION_MS = 12 * 3_600_000;

/** Options of {@link TicketKeys}. */
export interface TicketKeysOptions {
  /** Called with new keys. */
  onRotated: (keys: Uint8Array) => void;
  onError: (error: unknown) => void;
}

/** The keys of one process, in memory only. {@link stop} ends their rotation. */
export class TicketKeys {
  readonly #timer: RepeatingTimer;
  #current: Uint8Array = createKeys();

  constructor({ onRotated, onError }: TicketKeysOptions) {
    this.#timer = every(
      ROTATION_MS,
      () => {
        this.#current = createKeys();
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
}

// Not from the pool of small buffers, all of which a message would copy.
function createKeys(): Uint8Array {
  return new Uint8Array(randomBytes(KEYS_BYTES));
}
