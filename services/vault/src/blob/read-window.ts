// The share of memory that one consumer of stored bytes has.
import { BLOCK_BYTES, FRAME_BYTES } from "./layout.ts";

/**
 * A consumer's share of memory. Readers take what they are about to read; whoever gets a chunk of them gives its bytes back
 * when it has handed them on, or has no more use for them.
 */
export interface ReadWindow {
  /** Bytes that the next read may bring. Below those of a frame, nothing is read ahead. */
  readonly bytes: number;
  /** A wait for room has failed: the consumer gets nothing more. What was rejected then is no sign of damage. */
  readonly isEnded: boolean;
  /** Takes room for a read; false where there is none now. */
  tryTake(bytes: number): boolean;
  /**
   * Takes room for a read, in turn; undefined where there is some now. Rejects where there was none for too long, and when the
   * consumer has gone. Callers hold no room meanwhile: it may be that of all of them that is waited for.
   */
  take(bytes: number): Promise<void> | undefined;
  /** Gives room back. */
  give(bytes: number): void;
}

/** Bytes that one read may bring in a window, or without one: whole frames, or a few blocks where memory is short. */
export function limitRead(window: ReadWindow | undefined): number {
  if (window === undefined || window.bytes >= FRAME_BYTES) return FRAME_BYTES;
  return window.bytes < 2 * BLOCK_BYTES ? BLOCK_BYTES : 2 * BLOCK_BYTES;
}

/** For reads of up to two blocks whose room was taken before. */
export const ROOM_TAKEN: ReadWindow = {
  bytes: 2 * BLOCK_BYTES,
  isEnded: false,
  tryTake: () => true,
  take: () => undefined,
  give: () => undefined,
};
