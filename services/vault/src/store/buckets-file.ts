// A copy of the buckets outside the index, so that they survive its loss.
import { existsSync, readFileSync } from "node:fs";
import { crc32c } from "@node-rs/crc32";
import { closeFile, openFile, renameFile, syncData, writeAll } from "../disk/files.ts";
import type { Bucket } from "../model/bucket.ts";

const FORMAT = 1;

/** Rewrites the file when buckets change; changes during a write are written afterwards. */
export class BucketsFile {
  readonly #path: string;
  #next: readonly Bucket[] | undefined;
  #running: Promise<void> | undefined;

  constructor(path: string) {
    this.#path = path;
  }

  /**
   * Stores the buckets. The index is authoritative: callers do not wait for this copy, and the next call makes up for a
   * failure.
   */
  save(buckets: readonly Bucket[]): void {
    this.#next = buckets;
    this.#running ??= this.#run()
      .catch(() => undefined)
      .finally(() => {
        this.#running = undefined;
      });
  }

  /** Rewrites a file that differs from the index: it was damaged, or the last write was interrupted. */
  refresh(buckets: readonly Bucket[]): void {
    try {
      if (existsSync(this.#path) && readFileSync(this.#path, "utf8") === encode(buckets)) return;
    } catch {
      // Unreadable: it is rewritten.
    }
    if (buckets.length > 0 || existsSync(this.#path)) this.save(buckets);
  }

  /** Waits for a running write. */
  async close(): Promise<void> {
    await this.#running;
  }

  async #run(): Promise<void> {
    while (this.#next !== undefined) {
      const text = encode(this.#next);
      this.#next = undefined;
      const staged = `${this.#path}.new`;
      const fd = await openFile(staged, "w");
      try {
        await writeAll(fd, [Buffer.from(text)], 0);
        await syncData(fd);
      } finally {
        await closeFile(fd);
      }
      await renameFile(staged, this.#path);
    }
  }
}

/** Reads the copy; `undefined` if it is missing. Throws if it is damaged. */
export function readBucketsFile(path: string): Bucket[] {
  if (!existsSync(path)) return [];
  const text = readFileSync(path, "utf8");
  const { buckets, crc } = JSON.parse(text) as { buckets: Bucket[]; crc?: number };
  // Files of earlier versions have no checksum.
  if (crc !== undefined && encode(buckets) !== text) throw new Error(`${path} is damaged`);
  return buckets;
}

function encode(buckets: readonly Bucket[]): string {
  return JSON.stringify({ format: FORMAT, buckets, crc: crc32c(JSON.stringify(buckets)) });
}
