// Reusable memory for reads.
import { BufferPool } from "@platform/kernel/memory";
import { BLOCK_BYTES, FRAME_BYTES } from "./layout.ts";

/** Sizes of the buffers: one or two blocks if memory is short, otherwise a frame with its checksums. */
const SIZES = [BLOCK_BYTES, 2 * BLOCK_BYTES, FRAME_BYTES + 4 * (FRAME_BYTES / BLOCK_BYTES)];
/** Maximum number of spare buffers of each size. */
const SPARE_MAX = 32;

/**
 * Pooled, because a new frame for each read is a megabyte of garbage, and garbage collection took a third of the time of
 * reading large objects. Blocks cause garbage at the same rate, and are used when memory is short.
 */
export class FrameMemory extends BufferPool {
  constructor() {
    super({ sizes: SIZES, spareMax: SPARE_MAX });
  }
}
