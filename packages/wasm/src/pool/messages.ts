// Messages between the pool and its threads.
import type { GuestErrorCode } from "../errors.ts";
import type { GuestAbi } from "../module/abi.ts";

/** The `workerData` of a thread. */
export interface ThreadInit {
  outputBytesMax: number;
}

/** Messages to a thread; all except `forget` get one reply, in order. */
export type ToThread =
  | { type: "load"; hash: string; bytes: Uint8Array<ArrayBuffer>; abi: GuestAbi }
  | { type: "call"; hash: string; input: Uint8Array<ArrayBuffer> }
  | { type: "forget"; hash: string };

/** Replies of a thread. */
export type FromThread =
  | { ok: true; output: Uint8Array<ArrayBuffer> | undefined }
  | { ok: false; code: GuestErrorCode; message: string };
