// The frames of shared memory in which bodies travel to hash threads. There are few: who needs one gets it from those who
// fill theirs slowly.
import type { HashMemory } from "./hash-kernel.ts";

/** A frame: its address in the shared memory, and its bytes. */
export interface Frame {
  at: number;
  view: Buffer;
}

/** Who is filling a frame. */
export interface FrameHolder {
  /** Gives the frame away, by way of the thread or at once; false where that has to wait for what is in flight. */
  yieldFrame(): boolean;
}

/** Gives out frames in the order of asking. */
export class FramePool {
  readonly #free: Frame[];
  // Those that are being filled, the oldest first.
  readonly #filling = new Map<Frame, FrameHolder>();
  readonly #waiting: ((frame: Frame) => void)[] = [];

  /** All frames of the memory from `first` on. */
  constructor(memory: HashMemory, first: number) {
    this.#free = Array.from({ length: memory.frames - first }, (_, index) => ({
      at: memory.locateFrame(first + index),
      view: memory.viewFrame(first + index),
    })).toReversed();
  }

  /** Whether somebody waits: then nobody keeps a frame that is filled in part. */
  get isWanted(): boolean {
    return this.#waiting.length > 0;
  }

  /** A frame, if one is free and nobody waits. */
  take(holder: FrameHolder): Frame | undefined {
    if (this.#waiting.length > 0) return undefined;
    const frame = this.#free.pop();
    if (frame !== undefined) this.#filling.set(frame, holder);
    return frame;
  }

  /** The next frame that gets free. Somebody who fills one slowly is asked for it. */
  wait(holder: FrameHolder): Promise<Frame> {
    const { promise, resolve } = Promise.withResolvers<Frame>();
    this.#waiting.push((frame) => {
      this.#filling.set(frame, holder);
      resolve(frame);
    });
    for (const other of this.#filling.values()) if (other.yieldFrame()) break;
    return promise;
  }

  /** The frame is full enough: it is on its way, and nobody asks for it any more. */
  settle(frame: Frame): void {
    this.#filling.delete(frame);
  }

  /** Takes a frame back. */
  give(frame: Frame): void {
    this.#filling.delete(frame);
    const next = this.#waiting.shift();
    if (next === undefined) this.#free.push(frame);
    else next(frame);
  }
}
