// The error class of guests with its closed list of codes.

/**
 * Reason why a guest was refused or failed.
 *
 * - `invalid-module`: the bytes are not a valid WebAssembly module.
 * - `unsupported-module`: a valid module that requires unsupported features: foreign imports, shared or 64-bit memory,
 *   tables of garbage-collected types; or it has no known entry point.
 * - `module-too-large`: more bytes than `moduleBytesMax`.
 * - `memory-limit`: it requires more memory or table entries than allowed, or its thread ran out of memory.
 * - `time-limit`: running or compiling took too long, or the guest is suspended because of repeated slow calls.
 * - `fuel-limit`: a call executed more instructions than its fuel pays for.
 * - `trapped`: it ended with a trap, including a stack overflow.
 * - `exited`: a command ended with an exit code other than 0.
 * - `output-too-large`: it wrote more than `outputBytesMax`.
 * - `input-too-large`: a `transform` guest was to receive more than it can be given at once.
 * - `cancelled`: the run was cancelled.
 * - `invalid-result`: the result is outside its memory, or not one that the calling convention allows.
 * - `overloaded`: more calls are queued than `waitingMax`; the guest did not run.
 * - `closed`: the pool was closed.
 */
export type GuestErrorCode =
  | "invalid-module"
  | "unsupported-module"
  | "module-too-large"
  | "memory-limit"
  | "time-limit"
  | "fuel-limit"
  | "trapped"
  | "exited"
  | "output-too-large"
  | "input-too-large"
  | "cancelled"
  | "invalid-result"
  | "overloaded"
  | "closed";

/** A failure of a guest. The message is for humans and reveals nothing about the host. */
export class GuestError extends Error {
  override readonly name = "GuestError";
  readonly code: GuestErrorCode;

  constructor(code: GuestErrorCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }
}
