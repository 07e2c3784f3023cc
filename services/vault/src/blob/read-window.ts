// Limits of reads by the memory of their consumer.
import type { ReadWindow } from "../model/read-window.ts";
import { BLOCK_BYTES, FRAME_BYTES } from "./layout.ts";

/** Maximum size of one read in bytes: a frame if there is no window or it has room, otherwise one or two blocks. */
export function limitRead(window: ReadWindow | undefined): number {
  if (window === undefined || window.bytes >= FRAME_BYTES) return FRAME_BYTES;
  return window.bytes < 2 * BLOCK_BYTES ? BLOCK_BYTES : 2 * BLOCK_BYTES;
}

/** Window for reads of up to two blocks that are already charged to another window. */
export const ROOM_TAKEN: ReadWindow = {
  bytes: 2 * BLOCK_BYTES,
  isEnded: false,
  tryTake: () => true,
  take: () => undefined,
  give: () => undefined,
};
