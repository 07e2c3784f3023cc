// Hashes a body on the thread that receives it: for a small one, passing it to another thread takes longer.
import type { BodyDigests, ChecksumAlgorithm } from "../model/object.ts";
import type { BodyHasher } from "./body-hasher.ts";
import { FRAME_BYTES, type HashKernel } from "./hash-kernel.ts";
import { BLOCK_BYTES } from "./kernel-module.ts";
import { SlotHasher } from "./slot-hasher.ts";

/** A scratch area of the kernel's memory; it keeps nothing between calls. */
export interface Scratch {
  at: number;
  view: Buffer;
}

/** See `BodyHasher`; never falls behind. */
export class InlineHasher implements BodyHasher {
  readonly #kernel: HashKernel;
  readonly #scratch: Scratch;
  readonly #hasher: SlotHasher;
  readonly #release: () => void;
  // Bytes that did not fill a block.
  #rest: Buffer | undefined;
  #restBytes = 0;
  #isEnded = false;

  /** `release` is called when the slot is free again. */
  constructor(
    kernel: HashKernel,
    scratch: Scratch,
    slot: number,
    algorithms: readonly ChecksumAlgorithm[],
    release: () => void,
  ) {
    this.#kernel = kernel;
    this.#scratch = scratch;
    this.#hasher = new SlotHasher(kernel, slot, algorithms);
    this.#release = release;
  }

  update(chunk: Uint8Array): undefined {
    this.#hasher.update(chunk);
    const { at, view } = this.#scratch;
    let left = chunk;
    while (left.length > 0) {
      const before = this.#loadRest();
      const count = Math.min(left.length, FRAME_BYTES - before);
      view.set(left.length === count ? left : left.subarray(0, count), before);
      left = left.subarray(count);
      const blocks = Math.floor((before + count) / BLOCK_BYTES);
      this.#kernel.run(this.#hasher.slot, at, blocks, this.#hasher.hasCrc64);
      this.#keepRest(blocks * BLOCK_BYTES, before + count);
    }
  }

  digest(): BodyDigests {
    const digests = this.#hasher.finish(this.#scratch.at, this.#loadRest());
    this.forget();
    return digests;
  }

  forget(): void {
    if (this.#isEnded) return;
    this.#isEnded = true;
    this.#release();
  }

  #loadRest(): number {
    if (this.#restBytes > 0) this.#scratch.view.set(this.#rest!.subarray(0, this.#restBytes));
    return this.#restBytes;
  }

  #keepRest(from: number, to: number): void {
    this.#restBytes = to - from;
    if (this.#restBytes === 0) return;
    this.#rest ??= Buffer.allocUnsafe(BLOCK_BYTES);
    this.#rest.set(this.#scratch.view.subarray(from, to));
  }
}
