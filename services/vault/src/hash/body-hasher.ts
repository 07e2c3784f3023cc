// The digests of an incoming body.
import type { BodyDigests } from "../model/object.ts";

/** Hashes the bytes of a body in order. Ends with `digest` or `forget`. */
export interface BodyHasher {
  /**
   * Adds bytes; the buffer may be reused after the call. A promise means that hashing has fallen behind: await it before
   * the next call.
   */
  update(chunk: Uint8Array): Promise<void> | undefined;
  /** The body is complete. Rejects if its thread has failed. */
  digest(): BodyDigests | Promise<BodyDigests>;
  /** The digests are not needed any more. Harmless after `digest` and `forget`. */
  forget(): void;
}
