// A body on its way from a client to a remote: verified here before its last byte goes on.
import type { BodyHashers } from "../hash/body-hashers.ts";
import type { BodyHasher } from "../hash/body-hasher.ts";
import type { BodyDigests, ChecksumAlgorithm, Upload } from "../model/object.ts";
import { StoreError } from "../model/store-error.ts";

/** Takes a body as an upload does, and gives it as a stream that ends when `pass` was called. */
export class BodyBridge implements Upload<void> {
  readonly #hasher: BodyHasher;
  readonly #bytes: number;
  readonly #waiting: Buffer[] = [];
  #received = 0;
  #state: "open" | "passed" | { readonly error: unknown } = "open";
  /** The remote has answered before it had everything: the rest is read, and dropped. */
  #isAbandoned = false;
  #wakeReader: (() => void) | undefined;
  #wakeWriter: (() => void) | undefined;
  digests: BodyDigests | undefined;

  constructor(hashers: BodyHashers, bytes: number, algorithms: readonly ChecksumAlgorithm[]) {
    this.#hasher = hashers.begin(bytes, algorithms);
    this.#bytes = bytes;
  }

  write(chunk: Uint8Array): Promise<void> {
    this.#received += chunk.length;
    if (this.#received > this.#bytes)
      throw new StoreError("EntityTooLarge", "The body is longer than declared");
    const hashed = this.#hasher.update(chunk);
    if (this.#isAbandoned) return Promise.resolve(hashed);
    this.#waiting.push(Buffer.from(chunk));
    this.#wakeReader?.();
    const taken = new Promise<void>((resolve) => {
      this.#wakeWriter = resolve;
    });
    return Promise.all([taken, hashed]).then(() => undefined);
  }

  async finish(): Promise<BodyDigests> {
    if (this.#received < this.#bytes)
      throw new StoreError("IncompleteBody", "The body is shorter than declared");
    this.digests = await this.#hasher.digest();
    return this.digests;
  }

  /** The body is as it was declared. */
  commit(): Promise<void> {
    this.#end("passed");
    return Promise.resolve();
  }

  abort(): Promise<void> {
    this.fail(new StoreError("IncompleteBody", "The body was not received"));
    return Promise.resolve();
  }

  /** Ends the stream with an error, unless it has ended. */
  fail(error: unknown): void {
    if (this.#state !== "open") return;
    this.#hasher.forget();
    this.#end({ error });
  }

  #end(state: "passed" | { readonly error: unknown }): void {
    this.#state = state;
    this.#wakeReader?.();
    this.#wakeWriter?.();
  }

  /** The body; rejects if it was not as it was declared. */
  async *chunks(): AsyncGenerator<Buffer, void, undefined> {
    try {
      for (;;) {
        const next = this.#waiting.shift();
        if (next !== undefined) {
          yield next;
          this.#wakeWriter?.();
          continue;
        }
        if (this.#state === "passed") return;
        if (this.#state !== "open") throw this.#state.error;
        await new Promise<void>((resolve) => {
          this.#wakeReader = resolve;
        });
      }
    } finally {
      this.#isAbandoned = true;
      this.#wakeWriter?.();
    }
  }
}
