// Reads everything that is stored, slowly, against its checksums; finds files that nothing refers to.
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import type { IndexConnection } from "../index/schema.ts";
import type { CollectorEnvironment } from "./garbage-collector.ts";
import { scanRecords } from "./record-scan.ts";
import { removeFile } from "./disk.ts";

/** What a round has found. */
export interface ScrubReport {
  files: number;
  bytes: number;
  /** Numbers of blobs that the index refers to and that are damaged. */
  damaged: number[];
  /** Numbers of blobs whose file is gone. */
  missing: number[];
  /** Files that nothing referred to; they are removed. */
  orphans: number;
}

const PAGE = 500;

/** Scrubs. */
export class Scrubber {
  readonly #env: CollectorEnvironment;
  readonly #index: IndexConnection;
  readonly #bytesPerSecond: number;
  #isStopped = false;

  /** `bytesPerSecond` bounds what it takes of the disk. */
  constructor(environment: CollectorEnvironment, index: IndexConnection, bytesPerSecond: number) {
    this.#env = environment;
    this.#index = index;
    this.#bytesPerSecond = bytesPerSecond;
  }

  /** Ends a round early. */
  stop(): void {
    this.#isStopped = true;
  }

  /** One round over everything. */
  async run(): Promise<ScrubReport> {
    const report: ScrubReport = { files: 0, bytes: 0, damaged: [], missing: [], orphans: 0 };
    await this.#scrubFiles(report);
    await this.#scrubSegments(report);
    await this.#removeOrphans(report);
    return report;
  }

  async #scrubFiles(report: ScrubReport): Promise<void> {
    let after = 0;
    for (;;) {
      const rows = this.#index
        .sql("select id from blobs where kind = 'file' and id > ? order by id limit ?")
        .all(after, PAGE);
      for (const row of rows) {
        after = Number(row["id"]);
        if (this.#isStopped) return;
        const path = this.#env.blobs.folders.file(after);
        await this.#scrubFile(path, report, (id) => this.#isReferred(id));
        report.files += 1;
      }
      if (rows.length < PAGE) return;
    }
  }

  async #scrubSegments(report: ScrubReport): Promise<void> {
    const { folders, segments } = this.#env.blobs;
    for (const row of this.#index.sql("select id from segments order by id").all()) {
      const id = Number(row["id"]);
      if (this.#isStopped) return;
      if (segments.isPinned(id)) continue;
      const alive = new Set(
        this.#index
          .sql("select id from blobs where segment = ?")
          .all(id)
          .map((blob) => Number(blob["id"])),
      );
      const found = await this.#scrubFile(folders.segment(id), report, (blob) => alive.has(blob));
      // A record whose head or trailer is damaged is not found at all.
      for (const blob of alive) {
        if (!found.has(blob) && this.#isReferred(blob, id)) report.damaged.push(blob);
      }
      report.files += 1;
    }
  }

  async #scrubFile(
    path: string,
    report: ScrubReport,
    isAlive: (blob: number) => boolean,
  ): Promise<Set<number>> {
    const found = new Set<number>();
    const lease = await this.#env.blobs.files.use(path).catch((error: NodeJS.ErrnoException) => {
      if (error.code === "ENOENT") return undefined;
      throw error;
    });
    if (lease === undefined) {
      this.#noteMissing(path, report);
      return found;
    }
    try {
      for await (const record of scanRecords(lease.fd)) {
        found.add(record.id);
        const begun = performance.now();
        const corrupt = await record.verify();
        if (corrupt >= 0 && isAlive(record.id)) {
          report.damaged.push(record.id);
          this.#env.blobs.reader.corruptBlocks += 1;
        }
        report.bytes += record.extent;
        await this.#pause(record.extent, begun);
      }
    } finally {
      lease.release();
    }
    if (found.size === 0) this.#noteUnreadable(path, report);
    return found;
  }

  #noteMissing(path: string, report: ScrubReport): void {
    const id = readId(path, ".blob");
    if (id !== undefined && this.#isReferred(id)) report.missing.push(id);
  }

  #noteUnreadable(path: string, report: ScrubReport): void {
    const id = readId(path, ".blob");
    if (id !== undefined && this.#isReferred(id)) report.damaged.push(id);
  }

  // Files of this start may belong to uploads under way, those of earlier ones cannot.
  async #removeOrphans(report: ScrubReport): Promise<void> {
    const { folders, firstId } = this.#env.blobs;
    for (const folder of await readdir(folders.files)) {
      for (const name of await readdir(join(folders.files, folder))) {
        if (this.#isStopped) return;
        const id = readId(name, ".blob");
        if (id === undefined || id >= firstId || this.#isKnown(id)) continue;
        await removeFile(join(folders.files, folder, name));
        report.orphans += 1;
      }
    }
    for (const name of await readdir(folders.segments)) {
      const id = readId(name, ".seg");
      if (id === undefined || id >= firstId) continue;
      if (this.#index.sql("select 1 from segments where id = ?").get(id) !== undefined) continue;
      await removeFile(join(folders.segments, name));
      report.orphans += 1;
    }
  }

  #isReferred(blob: number, segment?: number): boolean {
    const row = this.#index.sql("select segment from blobs where id = ?").get(blob);
    return row !== undefined && (segment === undefined || row["segment"] === segment);
  }

  #isKnown(blob: number): boolean {
    return (
      this.#isReferred(blob) ||
      this.#index.sql("select 1 from garbage where blob = ?").get(blob) !== undefined
    );
  }

  async #pause(bytes: number, begun: number): Promise<void> {
    const wanted = (bytes / this.#bytesPerSecond) * 1000;
    const left = wanted - (performance.now() - begun);
    if (left > 1) await new Promise((resolve) => setTimeout(resolve, left));
  }
}

function readId(path: string, ending: string): number | undefined {
  const found = new RegExp(`([0-9a-f]{14})\\${ending}$`).exec(path);
  return found === null ? undefined : Number.parseInt(found[1]!, 16);
}
