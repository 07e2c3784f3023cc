// The one error class of guests, with its closed list of codes.

/**
 * Why a guest was refused or failed.
 *
 * - `invalid-module`: the bytes are not a WebAssembly module that validates.
 * - `unsupported-module`: a valid module that asks for what guests do not get: foreign imports, shared or 64-bit
 *   memory, tables of garbage-collected types, or no known entry point.
 * - `module-too-large`: more bytes than `moduleBytesMax`.
 * - `memory-limit`: it needs more memory or table entries than it may have, or its thread ran out of memory.
 * - `time-limit`: it ran, or compiled, for too long; also while it is suspended for having done so repeatedly.
 * - `trapped`: it ended in a trap, a stack overflow included.
 * - `exited`: a command ended with an exit code other than 0.
 * - `output-too-large`: it wrote more than `outputBytesMax`.
 * - `invalid-result`: the result lies outside its memory.
 * - `overloaded`: more calls wait than `waitingMax`; nothing was run.
 * - `closed`: the pool was closed.
 */
export type GuestErrorCode =
  | "invalid-module"
  | "unsupported-module"
  | "module-too-large"
  | "memory-limit"
  | "time-limit"
  | "trapped"
  | "exited"
  | "output-too-large"
  | "invalid-result"
  | "overloaded"
  | "closed";

/** Every failure of a guest; `code` decides, the message is for people and names nothing of the host. */
export class GuestError extends Error {
  override readonly name = "GuestError";
  readonly code: GuestErrorCode;

  constructor(code: GuestErrorCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }
}
