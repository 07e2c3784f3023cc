// What the pool and its threads say to each other.
import type { GuestErrorCode } from "../errors.ts";
import type { GuestAbi } from "../module/abi.ts";

/** What a thread is started with. */
export type ThreadInit = { outputBytesMax: number };

/** To a thread; each is answered once, in order, `forget` excepted. */
export type ToThread =
  | { type: "load"; hash: string; bytes: Uint8Array<ArrayBuffer>; abi: GuestAbi }
  | { type: "call"; hash: string; input: Uint8Array<ArrayBuffer> }
  | { type: "forget"; hash: string };

/** From a thread. */
export type FromThread =
  | { ok: true; output: Uint8Array<ArrayBuffer> | undefined }
  | { ok: false; code: GuestErrorCode; message: string };
