// Messages between the pool of streamed guests and its threads.
import type { GuestErrorCode } from "../errors.ts";
import type { GuestAbi } from "../module/abi.ts";

/** Compiled modules that a thread keeps; the least recently used one goes first. */
export const THREAD_MODULES_MAX = 16;

/** A module for a thread. */
export interface StreamModule {
  readonly hash: string;
  readonly abi: GuestAbi;
  /** Undefined if the thread has compiled it already. */
  readonly bytes: Uint8Array<ArrayBuffer> | undefined;
}

/** Limits that the guest's thread enforces. */
export interface StreamLimits {
  /** Bytes that a `transform` guest receives and returns. */
  readonly wholeBytesMax: number;
  /** The output may have this many bytes, or a multiple of the input if that is more. */
  readonly outputBytesMax: number;
  readonly outputPerInputMax: number;
}

/** A task of a thread; each gets one reply. */
export type ToStreamThread =
  | { readonly type: "load"; readonly module: StreamModule }
  | {
      readonly type: "run";
      readonly module: StreamModule;
      readonly environment: readonly string[];
      readonly input: SharedArrayBuffer;
      readonly output: SharedArrayBuffer;
      readonly clock: SharedArrayBuffer;
      /** Declared size of the input, 0 if unknown. */
      readonly inputBytes: number;
      readonly limits: StreamLimits;
    };

/** A reply. `stderr` is the beginning of standard error. An aborted run has no code: its cause is known elsewhere. */
export type FromStreamThread =
  | { readonly ok: true; readonly stderr: string }
  | {
      readonly ok: false;
      readonly code: GuestErrorCode | undefined;
      readonly message: string;
      readonly stderr: string;
    };
