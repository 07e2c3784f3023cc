// The reserve: appends stop before the disk is full, which leaves room for deletion, retention and checkpoints.
import type { Disk, DiskSpace } from "./port.ts";
import { LogError } from "../errors.ts";

const RESERVE_BYTES_MAX = 1024 ** 3;
const RESERVE_SHARE_MAX = 0.25;
/** Hysteresis: a full disk stays full until this much more than the reserve is free. */
const RECOVERY_SHARE = 0.1;
/** Share of the reserve kept for deletion and checkpoints alone. */
const LAST_SHARE = 0.25;
const READ_EVERY_MS = 1000;
/** Share of the room above the reserve after which the space is read again. */
const READ_AFTER_SHARE = 0.25;

export interface FreeSpaceOptions {
  disk: Disk;
  /** Bytes that appends leave free; by default the smaller of 1 GiB and a quarter of the disk. */
  reserveBytes: number | undefined;
  /** Bytes that the next checkpoint will write. */
  owedBytes: () => number;
  /** Called when the disk becomes full and when it no longer is. */
  onChange: (isFull: boolean) => void;
}

/** Free space of the log's disk, at most a second or some written bytes old. */
export class FreeSpace {
  readonly #options: FreeSpaceOptions;
  readonly reserveBytes: number;
  #space: DiskSpace;
  #isFull = false;
  #readAtMs = performance.now();
  #writtenBytes = 0;
  #reading: Promise<void> | undefined;

  private constructor(options: FreeSpaceOptions, space: DiskSpace) {
    this.#options = options;
    this.#space = space;
    this.reserveBytes =
      options.reserveBytes ?? Math.min(RESERVE_BYTES_MAX, space.totalBytes * RESERVE_SHARE_MAX);
  }

  /** Reads the space. `isFull` is valid after the first `refresh`. */
  static async open(options: FreeSpaceOptions): Promise<FreeSpace> {
    return new FreeSpace(options, await options.disk.space());
  }

  get freeBytes(): number {
    return this.#space.freeBytes;
  }

  /** True if appends are refused. Refreshes an old value in the background. */
  get isFull(): boolean {
    if (this.#isOld) void this.refresh();
    return this.#isFull;
  }

  /** Throws `disk-full` if less than the reserve is free, or, with `mayUseReserve`, less than a quarter of it. */
  requireRoom(mayUseReserve = false): void {
    if (!this.isFull) return;
    if (mayUseReserve && this.#space.freeBytes >= this.reserveBytes * LAST_SHARE) return;
    throw new LogError("disk-full", "less than the reserve is free on the disk");
  }

  /** Counts bytes about to be written; true if the space should be read again first. */
  noteWrite(bytes: number): boolean {
    this.#writtenBytes += bytes;
    const room = Math.max(0, this.#space.freeBytes - this.reserveBytes);
    return this.#isOld || this.#writtenBytes > room * READ_AFTER_SHARE;
  }

  /** Reads the space. If that fails, the last value stays. */
  refresh(): Promise<void> {
    this.#reading ??= this.#read().finally(() => {
      this.#reading = undefined;
    });
    return this.#reading;
  }

  get #isOld(): boolean {
    return performance.now() - this.#readAtMs >= READ_EVERY_MS;
  }

  async #read(): Promise<void> {
    this.#readAtMs = performance.now();
    this.#writtenBytes = 0;
    try {
      this.#space = await this.#options.disk.space();
    } catch {
      return;
    }
    this.#judge();
  }

  #judge(): void {
    const free = this.#space.freeBytes - this.#options.owedBytes();
    const limit = this.#isFull ? this.reserveBytes * (1 + RECOVERY_SHARE) : this.reserveBytes;
    const isFull = this.reserveBytes > 0 && free < limit;
    if (isFull === this.#isFull) return;
    this.#isFull = isFull;
    this.#options.onChange(isFull);
  }
}
