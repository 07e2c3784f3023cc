// A copy of the buckets beside the index, so that their configuration outlives it.
import { existsSync, readFileSync } from "node:fs";
import { closeFile, openFile, renameFile, syncData, writeAll } from "../blob/disk.ts";
import type { Bucket } from "./types.ts";

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

  /** Waits for the writing. */
  async close(): Promise<void> {
    await this.#running;
  }

  async #run(): Promise<void> {
    while (this.#next !== undefined) {
      const text = JSON.stringify({ format: FORMAT, buckets: this.#next });
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

/** Reads the copy; none where it is missing. */
export function readBucketsFile(path: string): Bucket[] {
  if (!existsSync(path)) return [];
  return (JSON.parse(readFileSync(path, "utf8")) as { buckets: Bucket[] }).buckets;
}
