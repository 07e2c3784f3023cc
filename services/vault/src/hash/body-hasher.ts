// The digests of a body on its way in.
import type { BodyDigests } from "../model/object.ts";

/** Takes a body's bytes in order. Ends with `digest` or `forget`. */
export interface BodyHasher {
  /**
   * Takes bytes, which may be reused when it returns. A promise means that hashing has fallen behind: wait for it before
   * the next call.
   */
  update(chunk: Uint8Array): Promise<void> | undefined;
  /** The body is complete. Rejects where its thread has failed. */
  digest(): BodyDigests | Promise<BodyDigests>;
  /** Nobody asks for the digests any more. Harmless after either. */
  forget(): void;
}
