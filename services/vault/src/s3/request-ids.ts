// Ids of the object API's requests.
import { randomBytes } from "node:crypto";

/** Request ids: sixteen upper-case hexadecimal digits of random bytes, generated in batches. */
export class RequestIds {
  #pool = Buffer.alloc(0);
  #at = 0;

  next(): string {
    if (this.#at >= this.#pool.length) {
      this.#pool = randomBytes(4_096);
      this.#at = 0;
    }
    const id = this.#pool.toString("hex", this.#at, this.#at + 8).toUpperCase();
    this.#at += 8;
    return id;
  }
}
