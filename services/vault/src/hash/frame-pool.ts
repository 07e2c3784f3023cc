// Frames of shared memory that carry bodies to hash threads. They are scarce: bodies that fill theirs slowly give them up.
import type { HashMemory } from "./hash-kernel.ts";

/** A frame: its address in the shared memory, and its bytes. */
export interface Frame {
  at: number;
  view: Buffer;
}

/** A body that fills a frame. */
export interface FrameHolder {
  /** Gives the frame up, through the thread or immediately; false if it must wait for frames in flight. */
  yieldFrame(): boolean;
}

/** Hands out frames in the order of requests. */
export class FramePool {
  readonly #free: Frame[];
  // Frames that are being filled, oldest first.
  readonly #filling = new Map<Frame, FrameHolder>();
  readonly #waiting: ((frame: Frame) => void)[] = [];

  /** All frames of the memory, from `first` on. */
  constructor(memory: HashMemory, first: number) {
    this.#free = Array.from({ length: memory.frames - first }, (_, index) => ({
      at: memory.locateFrame(first + index),
      view: memory.viewFrame(first + index),
    })).toReversed();
  }

  /** True if a body waits: then partly filled frames are not kept. */
  get isWanted(): boolean {
    return this.#waiting.length > 0;
  }

  /** A frame, if one is free and no body waits. */
  take(holder: FrameHolder): Frame | undefined {
    if (this.#waiting.length > 0) return undefined;
    const frame = this.#free.pop();
    if (frame !== undefined) this.#filling.set(frame, holder);
    return frame;
  }

  /** The next free frame. A body that fills one slowly is told to give it up. */
  wait(holder: FrameHolder): Promise<Frame> {
    const { promise, resolve } = Promise.withResolvers<Frame>();
    this.#waiting.push((frame) => {
      this.#filling.set(frame, holder);
      resolve(frame);
    });
    for (const other of this.#filling.values()) if (other.yieldFrame()) break;
    return promise;
  }

  /** The frame is sent to its thread and cannot be requested any more. */
  settle(frame: Frame): void {
    this.#filling.delete(frame);
  }

  /** Returns a frame. */
  give(frame: Frame): void {
    this.#filling.delete(frame);
    const next = this.#waiting.shift();
    if (next === undefined) this.#free.push(frame);
    else next(frame);
  }
}
