// The disk reserve: writes stop before the disk is full, so that deletion, compaction and the index can continue.
import { statfsSync } from "node:fs";
import { StoreError } from "../model/store-error.ts";

/** Free bytes and total bytes of a file system. */
export interface DiskSpace {
  freeBytes: number;
  totalBytes: number;
}

const RESERVE_BYTES_MIN = 1024 ** 3;
const RESERVE_SHARE = 0.01;
const READ_EVERY_MS = 1_000;

/** Reads the space of the file system that contains `path`. */
export function readDiskSpace(path: string): DiskSpace {
  const { bavail, blocks, bsize } = statfsSync(path);
  return { freeBytes: bavail * bsize, totalBytes: blocks * bsize };
}

/** The free space: read at most a second ago, minus the bytes reserved since then. */
export class FreeSpace {
  readonly #read: () => DiskSpace;
  readonly #now: () => number;
  /** Free bytes that are left. */
  readonly reserveBytes: number;
  #space: DiskSpace;
  #readAt: number;

  /** `now` is a monotonic time in ms. Default of `reserveBytes`: the larger of 1 GiB and 1 % of the disk. */
  constructor(read: () => DiskSpace, now: () => number, reserveBytes?: number) {
    this.#read = read;
    this.#now = now;
    this.#space = read();
    this.#readAt = now();
    this.reserveBytes =
      reserveBytes ?? Math.max(RESERVE_BYTES_MIN, this.#space.totalBytes * RESERVE_SHARE);
  }

  get freeBytes(): number {
    this.#refresh();
    return this.#space.freeBytes;
  }

  /** True if less than the reserve is free. */
  get isFull(): boolean {
    return this.freeBytes < this.reserveBytes;
  }

  /** Reserves `bytes`. Throws `InsufficientStorage` if that would use the reserve. */
  require(bytes: number): void {
    this.#refresh();
    if (this.#space.freeBytes - bytes < this.reserveBytes) {
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
