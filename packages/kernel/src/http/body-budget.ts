// Memory for request bodies, in all and per client, so that large bodies of many clients cannot exhaust it.
import { createRetryLaterError } from "../errors/index.ts";

/** Bounds of a {@link BodyBudget}. */
export interface BodyBudgetOptions {
  /** Bytes of all bodies that are being received or handled. */
  bytesMax: number;
  bytesPerClientMax: number;
}

const RETRY_SECONDS = 2;

/** Counts bytes until they are released. */
export class BodyBudget {
  readonly #options: BodyBudgetOptions;
  readonly #clients = new Map<string, number>();
  #bytes = 0;

  constructor(options: BodyBudgetOptions) {
    this.#options = options;
  }

  /** Bytes in use. */
  get bytes(): number {
    return this.#bytes;
  }

  /** Starts to count for a client. */
  open(client: string): BodyReservation {
    return new BodyReservation((bytes) => this.#tryAdd(client, bytes));
  }

  #tryAdd(client: string, bytes: number): boolean {
    const { bytesMax, bytesPerClientMax } = this.#options;
    const used = (this.#clients.get(client) ?? 0) + bytes;
    if (bytes > 0 && (this.#bytes + bytes > bytesMax || used > bytesPerClientMax)) return false;
    this.#bytes += bytes;
    if (used > 0) this.#clients.set(client, used);
    else this.#clients.delete(client);
    return true;
  }
}

/** The bytes of one body. */
export class BodyReservation {
  readonly #tryAdd: (bytes: number) => boolean;
  #bytes = 0;

  constructor(tryAdd: (bytes: number) => boolean) {
    this.#tryAdd = tryAdd;
  }

  /** Adds bytes; false if a bound is reached. */
  tryAdd(bytes: number): boolean {
    if (!this.#tryAdd(bytes)) return false;
    this.#bytes += bytes;
    return true;
  }

  /** Adds bytes; throws `overloaded` (503) if a bound is reached. */
  add(bytes: number): void {
    if (this.tryAdd(bytes)) return;
    const detail = "Too many large requests are being received.";
    throw createRetryLaterError("overloaded", detail, RETRY_SECONDS);
  }

  /** Releases all bytes. */
  release(): void {
    this.#tryAdd(-this.#bytes);
    this.#bytes = 0;
  }
}
