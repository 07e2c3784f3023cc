// Reads everything that is stored, slowly, against its checksums; finds files that nothing refers to.
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import type { IndexConnection } from "../index/schema.ts";
import type { CollectorEnvironment } from "./garbage-collector.ts";
import { scanRecords } from "./record-scan.ts";
import type { Drive } from "../drive/drive.ts";
import { removeFile } from "./disk.ts";

/** What a round has found. */
export interface ScrubReport {
  files: number;
  bytes: number;
  /** Numbers of blobs that the index refers to and that are damaged. */
  damaged: number[];
  /** Numbers of blobs whose file is gone. */
  missing: number[];
  /** Shards and copies of segments that were damaged or missing and have been written anew. */
  healed: number;
  /** Files that nothing referred to; they are removed. */
  orphans: number;
}

/** Writes anew what is damaged on one of several drives. */
export interface DamageHealer {
  healShard(drive: Drive, blob: number): Promise<void>;
  healSegment(drive: Drive, segment: number): Promise<void>;
}

const PAGE = 500;

/** Scrubs. */
export class Scrubber {
  readonly #env: CollectorEnvironment;
  readonly #index: IndexConnection;
  readonly #bytesPerSecond: number;
  readonly #healer: DamageHealer | undefined;
  #isStopped = false;

  /** `bytesPerSecond` bounds what it takes of the disk; `healer` is there where there are several. */
  constructor(
    environment: CollectorEnvironment,
    index: IndexConnection,
    bytesPerSecond: number,
    healer: DamageHealer | undefined,
  ) {
    this.#env = environment;
    this.#index = index;
    this.#bytesPerSecond = bytesPerSecond;
    this.#healer = healer;
  }

  /** Ends a round early. */
  stop(): void {
    this.#isStopped = true;
  }

  /** One round over everything. */
  async run(): Promise<ScrubReport> {
    const report: ScrubReport = {
      files: 0,
      bytes: 0,
      damaged: [],
      missing: [],
      healed: 0,
      orphans: 0,
    };
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
        await this.#scrubBody(after, report);
        report.files += 1;
      }
      if (rows.length < PAGE) return;
    }
  }

  async #scrubBody(id: number, report: ScrubReport): Promise<void> {
    for (const drive of this.#env.blobs.drives.rankShards(id)) {
      if (!drive.isPresent) continue;
      const found = await this.#scrubFile(drive, drive.folders.file(id), report);
      // One without a readable record is damaged as well.
      const isWhole = found !== undefined && found.whole.has(id);
      if (isWhole || !this.#isReferred(id)) continue;
      if (found === undefined) report.missing.push(id);
      else report.damaged.push(id);
      await this.#heal(report, (healer) => healer.healShard(drive, id));
    }
  }

  async #scrubSegments(report: ScrubReport): Promise<void> {
    const { drives, segments } = this.#env.blobs;
    for (const row of this.#index.sql("select id from segments where live > 0 order by id").all()) {
      const id = Number(row["id"]);
      for (const drive of drives.rankCopies(id)) {
        if (this.#isStopped) return;
        if (segments.isPinned(id) || !drive.isPresent) continue;
        await this.#scrubSegment(drive, id, report);
      }
      report.files += 1;
    }
  }

  async #scrubSegment(drive: Drive, id: number, report: ScrubReport): Promise<void> {
    const alive = this.#index
      .sql("select id from blobs where segment = ?")
      .all(id)
      .map((blob) => Number(blob["id"]));
    const found = await this.#scrubFile(drive, drive.folders.segment(id), report);
    // A record whose head or trailer is damaged is not found at all.
    const lost = alive.filter(
      (blob) => found?.whole.has(blob) !== true && this.#isReferred(blob, id),
    );
    if (lost.length === 0) return;
    report.damaged.push(...lost);
    await this.#heal(report, (healer) => healer.healSegment(drive, id));
  }

  async #heal(report: ScrubReport, work: (healer: DamageHealer) => Promise<void>): Promise<void> {
    if (this.#healer === undefined) return;
    try {
      await work(this.#healer);
      report.healed += 1;
    } catch {
      // It stays among the damaged ones of the report.
    }
  }

  // The records that are whole; undefined where the file is missing.
  async #scrubFile(
    drive: Drive,
    path: string,
    report: ScrubReport,
  ): Promise<{ whole: Set<number> } | undefined> {
    const whole = new Set<number>();
    const lease = await drive.files.use(path).catch((error: NodeJS.ErrnoException) => {
      if (error.code === "ENOENT") return undefined;
      throw error;
    });
    if (lease === undefined) return undefined;
    try {
      for await (const record of scanRecords(lease.file)) {
        const begun = performance.now();
        const corrupt = await record.verify();
        if (corrupt < 0) whole.add(record.id);
        else drive.reader.corruptBlocks += 1;
        report.bytes += record.extent;
        await this.#pause(record.extent, begun);
      }
    } finally {
      lease.release();
    }
    return { whole };
  }

  // Files of this start may belong to uploads under way, those of earlier ones cannot.
  async #removeOrphans(report: ScrubReport): Promise<void> {
    const { drives, firstId } = this.#env.blobs;
    for (const drive of drives.present) {
      const { folders } = drive;
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
