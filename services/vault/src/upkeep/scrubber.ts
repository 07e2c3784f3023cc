// Reads all stored data slowly against its checksums, and finds unreferenced files.
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { IndexConnection } from "../index/schema.ts";
import type { GarbageCollectorOptions } from "./garbage-collector.ts";
import { scanRecords } from "../blob/record-scan.ts";
import type { Drive } from "../blob/drive/drive.ts";

/** The result of a round. */
export interface ScrubReport {
  files: number;
  bytes: number;
  /** Ids of referenced blobs that are damaged and could not be healed. */
  damaged: number[];
  /** Ids of blobs whose file is missing and could not be rewritten. */
  missing: number[];
  /** Damaged or missing shards and copies of segments that were rewritten. */
  healed: number;
  /** Unreferenced files that were moved to quarantine. */
  quarantined: number;
  /** Unreferenced files that stay, because the quarantine is full. */
  unknown: number;
  /** True if the round was completed. */
  isComplete: boolean;
}

/** The progress of a round. */
export interface ScrubProgress {
  filesDone: number;
  /** As counted at the beginning of the round. */
  filesTotal: number;
  bytesDone: number;
}

/** Rewrites the damaged contents of one of several drives. */
export interface DamageHealer {
  healShard(drive: Drive, blob: number): Promise<void>;
  healSegment(drive: Drive, segment: number): Promise<void>;
}

const PAGE = 500;

/** Checks the stored data. */
export class Scrubber {
  readonly #env: GarbageCollectorOptions;
  readonly #index: IndexConnection;
  readonly #bytesPerSecond: number;
  readonly #healer: DamageHealer | undefined;
  #signal: AbortSignal = AbortSignal.abort();
  #filesTotal = 0;
  #report: ScrubReport | undefined;

  /** `bytesPerSecond` limits its reads; `healer` exists if there are several drives. */
  constructor(
    environment: GarbageCollectorOptions,
    index: IndexConnection,
    bytesPerSecond: number,
    healer: DamageHealer | undefined,
  ) {
    this.#env = environment;
    this.#index = index;
    this.#bytesPerSecond = bytesPerSecond;
    this.#healer = healer;
  }

  /** Of the running round. */
  get progress(): ScrubProgress {
    const { files = 0, bytes = 0 } = this.#report ?? {};
    return { filesDone: files, filesTotal: Math.max(files, this.#filesTotal), bytesDone: bytes };
  }

  /** Runs a round over everything; one at a time. */
  async run(signal: AbortSignal): Promise<ScrubReport> {
    this.#signal = signal;
    const report: ScrubReport = {
      files: 0,
      bytes: 0,
      damaged: [],
      missing: [],
      healed: 0,
      quarantined: 0,
      unknown: 0,
      isComplete: false,
    };
    this.#report = report;
    this.#filesTotal = await this.#countFiles();
    await this.#scrubFiles(report);
    await this.#scrubSegments(report);
    await this.#quarantineUnknown(report);
    report.isComplete = !signal.aborted;
    return report;
  }

  // Files of bodies on one drive, and segments. Other queries would need the whole index.
  async #countFiles(): Promise<number> {
    const row = this.#index.sql("select count(*) as n from segments where live > 0").get();
    const segments = Number(row?.["n"]);
    const [drive] = this.#env.blobs.drives.present;
    if (drive === undefined) return segments;
    let files = 0;
    for (const folder of await readdir(drive.folders.files)) {
      files += (await readdir(join(drive.folders.files, folder))).length;
    }
    return segments + files;
  }

  async #scrubFiles(report: ScrubReport): Promise<void> {
    let after = 0;
    for (;;) {
      const rows = this.#index
        .sql("select id, kind from blobs where id > ? order by id limit ?")
        .all(after, PAGE);
      for (const row of rows) {
        after = Number(row["id"]);
        if (this.#signal.aborted) return;
        if (row["kind"] !== "file") continue;
        await this.#scrubBody(after, report);
        report.files += 1;
      }
      if (rows.length < PAGE) return;
      // Yields between pages: most rows may be inline bodies.
      await new Promise(setImmediate);
    }
  }

  async #scrubBody(id: number, report: ScrubReport): Promise<void> {
    for (const drive of this.#env.blobs.drives.rankShards(id)) {
      if (!drive.isPresent) continue;
      const found = await this.#scrubFile(drive, drive.folders.file(id), report);
      // A file without a readable record is damaged as well.
      const isWhole = found !== undefined && found.whole.has(id);
      // A drive that was lost meanwhile is healed when it returns.
      if (isWhole || !drive.isPresent || !this.#isReferred(id)) continue;
      if (await this.#heal(report, (healer) => healer.healShard(drive, id))) continue;
      const list = found === undefined ? report.missing : report.damaged;
      if (!list.includes(id)) list.push(id);
    }
  }

  async #scrubSegments(report: ScrubReport): Promise<void> {
    const { drives, segments } = this.#env.blobs;
    for (const row of this.#index.sql("select id from segments where live > 0 order by id").all()) {
      const id = Number(row["id"]);
      for (const drive of drives.rankCopies(id)) {
        if (this.#signal.aborted) return;
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
    // A record with a damaged head or trailer is not found at all.
    const lost = alive.filter(
      (blob) => found?.whole.has(blob) !== true && this.#isReferred(blob, id),
    );
    if (lost.length === 0 || !drive.isPresent) return;
    if (await this.#heal(report, (healer) => healer.healSegment(drive, id))) return;
    const list = found === undefined ? report.missing : report.damaged;
    list.push(...lost.filter((blob) => !list.includes(blob)));
  }

  async #heal(
    report: ScrubReport,
    work: (healer: DamageHealer) => Promise<void>,
  ): Promise<boolean> {
    if (this.#healer === undefined) return false;
    try {
      await work(this.#healer);
      report.healed += 1;
      return true;
    } catch {
      // The report lists it among the damaged blobs.
      return false;
    }
  }

  // The intact records; `undefined` if the file is missing.
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

  // Files of this start may belong to uploads in progress; files of earlier starts cannot.
  async #quarantineUnknown(report: ScrubReport): Promise<void> {
    const { drives, firstId, quarantine } = this.#env.blobs;
    for (const drive of drives.present) {
      const { folders } = drive;
      await quarantine.measure(drive);
      const take = async (path: string) => {
        if (await quarantine.take(drive, path)) report.quarantined += 1;
        else report.unknown += 1;
      };
      for (const folder of await readdir(folders.files)) {
        for (const name of await readdir(join(folders.files, folder))) {
          if (this.#signal.aborted) return;
          const id = readId(name, ".blob");
          if (id === undefined || id >= firstId || this.#isKnown(id)) continue;
          await take(join(folders.files, folder, name));
        }
      }
      for (const name of await readdir(folders.segments)) {
        const id = readId(name, ".seg");
        if (id === undefined || id >= firstId) continue;
        if (this.#index.sql("select 1 from segments where id = ?").get(id) !== undefined) continue;
        await take(join(folders.segments, name));
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
    // A large body is one record, whose pause may take minutes.
    if (left > 1) await sleep(left, undefined, { signal: this.#signal }).catch(() => undefined);
  }
}

function readId(path: string, ending: string): number | undefined {
  const found = new RegExp(`([0-9a-f]{14})\\${ending}$`).exec(path);
  return found === null ? undefined : Number.parseInt(found[1]!, 16);
}
