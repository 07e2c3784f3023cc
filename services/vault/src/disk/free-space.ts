// The reserve: writing stops before the disk is full, so that deleting, compaction and the index can go on.
import { statfsSync } from "node:fs";
import { StoreError } from "../model/store-error.ts";

/** Bytes of a file system that are free for us, and all there are. */
export interface DiskSpace {
  freeBytes: number;
  totalBytes: number;
}

const RESERVE_BYTES_MIN = 1024 ** 3;
const RESERVE_SHARE = 0.01;
const READ_EVERY_MS = 1_000;

/** Reads the space of the file system that holds `path`. */
export function readDiskSpace(path: string): DiskSpace {
  const { bavail, blocks, bsize } = statfsSync(path);
  return { freeBytes: bavail * bsize, totalBytes: blocks * bsize };
}

/** Knows how much room is left, as of a second ago at most, minus what was promised since. */
export class FreeSpace {
  readonly #read: () => DiskSpace;
  readonly #now: () => number;
  readonly #reserveBytes: number;
  #space: DiskSpace;
  #readAt: number;

  /** `now` is a monotonic reading in ms; `reserveBytes` is by default the larger of 1 GiB and 1 %. */
  constructor(read: () => DiskSpace, now: () => number, reserveBytes?: number) {
    this.#read = read;
    this.#now = now;
    this.#space = read();
    this.#readAt = now();
    this.#reserveBytes =
      reserveBytes ?? Math.max(RESERVE_BYTES_MIN, this.#space.totalBytes * RESERVE_SHARE);
  }

  get freeBytes(): number {
    this.#refresh();
    return this.#space.freeBytes;
  }

  /** Whether the reserve is being used up. */
  get isFull(): boolean {
    return this.freeBytes < this.#reserveBytes;
  }

  /** Promises `bytes`; throws `InsufficientStorage` where the reserve would be touched. */
  require(bytes: number): void {
    this.#refresh();
    if (this.#space.freeBytes - bytes < this.#reserveBytes) {
      throw new StoreError("InsufficientStorage", "There is not enough space left to store this");
    }
    this.#space = { ...this.#space, freeBytes: this.#space.freeBytes - bytes };
  }

  #refresh(): void {
    const now = this.#now();
    if (now - this.#readAt < READ_EVERY_MS) return;
    this.#readAt = now;
    this.#space = this.#read();
  }
}
