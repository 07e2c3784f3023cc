// Memory of request bodies that guests read.
import { GuestError } from "@platform/wasm/http";

const BYTES_MAX = 128 * 1024 * 1024;

/** Bytes of the request bodies that are kept for guests of one worker. */
export class BodyBudget {
  #bytes = 0;

  /** Claims memory. Throws `overloaded` if all of it is in use. */
  claim(bytes: number): void {
    if (this.#bytes + bytes > BYTES_MAX)
      throw new GuestError("overloaded", "Too many request bodies are kept for guests.");
    this.#bytes += bytes;
  }

  release(bytes: number): void {
    this.#bytes -= bytes;
  }
}
