// Limits of reads by the memory of their consumer.
import type { ReadWindow } from "../model/read-window.ts";
import { BLOCK_BYTES, FRAME_BYTES } from "./layout.ts";

/** Bytes that one read may return, with or without a window: whole frames, or a few blocks if memory is short. */
export function limitRead(window: ReadWindow | undefined): number {
  if (window === undefined || window.bytes >= FRAME_BYTES) return FRAME_BYTES;
  return window.bytes < 2 * BLOCK_BYTES ? BLOCK_BYTES : 2 * BLOCK_BYTES;
}

/** For reads of up to two blocks whose room is already taken. */
export const ROOM_TAKEN: ReadWindow = {
  bytes: 2 * BLOCK_BYTES,
  isEnded: false,
  tryTake: () => true,
  take: () => undefined,
  give: () => undefined,
};
