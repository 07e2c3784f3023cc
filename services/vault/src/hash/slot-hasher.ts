// All digests of a body whose bytes are in the memory of the kernel.
import type { BodyDigests, ChecksumAlgorithm } from "../model/object.ts";
import { startChecksum, type ChecksumState, type NativeAlgorithm } from "./checksum.ts";
import { formatCrc64 } from "./crc64.ts";
import type { HashKernel } from "./hash-kernel.ts";

/** The parts of a body's digests that are outside its slot; used by the thread that hashes the body. */
export class SlotHasher {
  readonly slot: number;
  readonly hasCrc64: boolean;
  readonly #kernel: HashKernel;
  readonly #others: readonly [NativeAlgorithm, ChecksumState][];
  #bytes = 0;

  constructor(kernel: HashKernel, slot: number, algorithms: readonly ChecksumAlgorithm[]) {
    this.slot = slot;
    this.#kernel = kernel;
    this.hasCrc64 = algorithms.includes("CRC64NVME");
    this.#others = algorithms
      .filter((algorithm) => algorithm !== "CRC64NVME")
      .map((algorithm) => [algorithm, startChecksum(algorithm)]);
    kernel.start(slot);
  }

  /** Adds the next bytes, whose whole blocks the caller passes to the kernel. */
  update(bytes: Uint8Array): void {
    this.#bytes += bytes.length;
    for (const [, state] of this.#others) state.update(bytes);
  }

  /** The digests; `at` and `rest` are the bytes of `update` that the kernel has not received yet. */
  finish(at: number, rest: number): BodyDigests {
    this.#kernel.finish(this.slot, at, rest, this.#bytes, this.hasCrc64);
    const checksums: Partial<Record<ChecksumAlgorithm, Buffer>> = {};
    for (const [algorithm, state] of this.#others) checksums[algorithm] = state.digest();
    if (this.hasCrc64) checksums.CRC64NVME = formatCrc64(this.#kernel.readCrc64(this.slot));
    return { bytes: this.#bytes, md5: this.#kernel.readMd5(this.slot), checksums };
  }
}
