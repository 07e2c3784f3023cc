// A copy of the buckets beside the index, so that their configuration outlives it.
import { existsSync, readFileSync } from "node:fs";
import { crc32c } from "@node-rs/crc32";
import { closeFile, openFile, renameFile, syncData, writeAll } from "../disk/files.ts";
import type { Bucket } from "../model/bucket.ts";

const FORMAT = 1;

/** Writes the file anew when buckets change; what comes while it is written is written after. */
export class BucketsFile {
  readonly #path: string;
  #next: readonly Bucket[] | undefined;
  #running: Promise<void> | undefined;

  constructor(path: string) {
    this.#path = path;
  }

  /** Notes the buckets. The index is what counts: nobody waits for this copy, and one that fails is made up by the next. */
  save(buckets: readonly Bucket[]): void {
    this.#next = buckets;
    this.#running ??= this.#run()
      .catch(() => undefined)
      .finally(() => {
        this.#running = undefined;
      });
  }

  /** Writes the file where it is not as the index has it: it was damaged, or a start was cut short before it. */
  refresh(buckets: readonly Bucket[]): void {
    try {
      if (existsSync(this.#path) && readFileSync(this.#path, "utf8") === encode(buckets)) return;
    } catch {
      // It cannot be read: it is written anew.
    }
    if (buckets.length > 0 || existsSync(this.#path)) this.save(buckets);
  }

  /** Waits for the writing. */
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

/** Reads the copy; none where it is missing. Throws where it is damaged. */
export function readBucketsFile(path: string): Bucket[] {
  if (!existsSync(path)) return [];
  const text = readFileSync(path, "utf8");
  const { buckets, crc } = JSON.parse(text) as { buckets: Bucket[]; crc?: number };
  // Those of earlier versions have no checksum.
  if (crc !== undefined && encode(buckets) !== text) throw new Error(`${path} is damaged`);
  return buckets;
}

function encode(buckets: readonly Bucket[]): string {
  return JSON.stringify({ format: FORMAT, buckets, crc: crc32c(JSON.stringify(buckets)) });
}
