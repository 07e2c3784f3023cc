// Restores the missing contents of a drive: shards from other shards, segments from their other copies.
import { readFile, stat } from "node:fs/promises";
import { describeShard } from "../blob/shard-writer.ts";
import { ShardFile } from "../blob/shard-file.ts";
import { measureShard } from "../blob/shard-layout.ts";
import type { GarbageCollectorOptions } from "./garbage-collector.ts";
import { closeFile, openFile, removeFile, renameFile, syncData, writeAll } from "../disk/files.ts";
import { BLOCK_BYTES, FRAME_BYTES } from "../blob/layout.ts";
import { scanRecords } from "../blob/record-scan.ts";
import type { BlobRecord } from "../model/blob.ts";
import type { IndexConnection } from "../index/schema.ts";
import { StoreError } from "../model/store-error.ts";
import type { Drive } from "../blob/drive/drive.ts";

/** Totals since the start. */
export interface HealTotals {
  shards: number;
  segments: number;
  bytes: number;
  /** Shards and segments that could not be healed for lack of other shards or copies. */
  failures: number;
}

const PAGE = 500;
const FRAME_BUFFER_BYTES = FRAME_BYTES + 4 * (FRAME_BYTES / BLOCK_BYTES);

/** Heals drives. */
export class Healer {
  readonly totals: HealTotals = { shards: 0, segments: 0, bytes: 0, failures: 0 };
  readonly #env: GarbageCollectorOptions;
  readonly #index: IndexConnection;
  readonly #bytesPerSecond: number;
  #isStopped = false;

  /** `bytesPerSecond` limits its writes. */
  constructor(
    environment: GarbageCollectorOptions,
    index: IndexConnection,
    bytesPerSecond: number,
  ) {
    this.#env = environment;
    this.#index = index;
    this.#bytesPerSecond = bytesPerSecond;
  }

  /** Aborts running work. */
  stop(): void {
    this.#isStopped = true;
  }

  /** Checks everything that the drive should have. Resolves to true if it is complete now. */
  async healDrive(drive: Drive): Promise<boolean> {
    const areShardsThere = await this.#healShards(drive);
    const areSegmentsThere = await this.#healSegments(drive);
    return areShardsThere && areSegmentsThere && !this.#isStopped;
  }

  /** Rewrites the drive's shard of a body. */
  async healShard(drive: Drive, id: number): Promise<void> {
    const { blobs, bodies } = this.#env;
    const row = this.#findFile(id);
    const shard = blobs.drives.rankShards(id).indexOf(drive);
    if (row === undefined || shard < 0) return;
    const endLease = bodies.leases.begin();
    try {
      await this.#rebuildShard(drive, shard, {
        id,
        size: row.stored,
        stored: row.stored,
        extent: 0,
        place: { kind: "file", position: row.position },
      });
    } finally {
      endLease();
    }
    // Deleted meanwhile: the collector has already passed and would not see the new file.
    if (this.#findFile(id) === undefined) await this.#remove(drive, id);
    else this.totals.shards += 1;
  }

  /** Rewrites the drive's copy of a segment. */
  async healSegment(drive: Drive, segment: number): Promise<void> {
    const { blobs, bodies } = this.#env;
    const others = blobs.drives.rank(segment).filter((other) => other !== drive && other.isPresent);
    const alive = new Set(
      this.#index
        .sql("select id from blobs where segment = ?")
        .all(segment)
        .map((row) => Number(row["id"])),
    );
    const endLease = bodies.leases.begin();
    try {
      const whole = await this.#gatherSegment([...others, drive], segment, alive);
      const staged = `${drive.folders.staged(segment)}.seg`;
      const fd = await openFile(staged, "w");
      try {
        await writeAll(fd, [whole], 0);
        await syncData(fd);
      } finally {
        await closeFile(fd);
      }
      const path = drive.folders.segment(segment);
      await renameFile(staged, path);
      drive.files.forget(path);
      await drive.folderSync.sync(drive.folders.segments);
      this.totals.segments += 1;
      this.totals.bytes += whole.length;
    } finally {
      endLease();
    }
  }

  async #healShards(drive: Drive): Promise<boolean> {
    const { drives } = this.#env.blobs;
    let isWhole = true;
    for (let after = 0; ;) {
      const rows = this.#index
        .sql("select id from blobs where kind = 'file' and id > ? order by id limit ?")
        .all(after, PAGE);
      for (const row of rows) {
        after = Number(row["id"]);
        if (this.#isStopped || !drive.isPresent) return false;
        if (!drives.rankShards(after).includes(drive)) continue;
        if ((await measureFile(drive.folders.file(after))) !== undefined) continue;
        if (!(await this.#attempt(() => this.healShard(drive, after)))) isWhole = false;
      }
      if (rows.length < PAGE) return isWhole;
    }
  }

  async #healSegments(drive: Drive): Promise<boolean> {
    const { drives, segments } = this.#env.blobs;
    let isWhole = true;
    for (const row of this.#index.sql("select id from segments where live > 0").all()) {
      const id = Number(row["id"]);
      if (this.#isStopped || !drive.isPresent) return false;
      if (!drives.rankCopies(id).includes(drive)) continue;
      const bytes = await measureFile(drive.folders.segment(id));
      if (bytes !== undefined && bytes >= (await this.#measureSegment(id))) continue;
      // An open segment is healed once it is full or abandoned.
      const isOpen = segments.isPinned(id);
      if (isOpen || !(await this.#attempt(() => this.healSegment(drive, id)))) isWhole = false;
    }
    return isWhole;
  }

  // The minimum of all copies: a drive that was absent may have a shorter one.
  async #measureSegment(segment: number): Promise<number> {
    const { drives, segments } = this.#env.blobs;
    if (segments.isPinned(segment)) {
      const row = this.#index
        .sql("select max(position + stored) as bytes from blobs where segment = ?")
        .get(segment);
      return Number(row?.["bytes"] ?? 0);
    }
    const sizes = await Promise.all(
      drives.present.map(({ folders }) => measureFile(folders.segment(segment))),
    );
    return Math.max(0, ...sizes.map((size) => size ?? 0));
  }

  async #attempt(work: () => Promise<void>): Promise<boolean> {
    const begun = performance.now();
    const before = this.totals.bytes;
    try {
      await work();
    } catch {
      // Counted, and retried by the next walk.
      this.totals.failures += 1;
      return false;
    }
    const wanted = ((this.totals.bytes - before) / this.#bytesPerSecond) * 1000;
    const left = wanted - (performance.now() - begun);
    if (left > 1) await new Promise((resolve) => setTimeout(resolve, left));
    return true;
  }

  async #rebuildShard(drive: Drive, shard: number, blob: BlobRecord): Promise<void> {
    const { blobs } = this.#env;
    const { description, summary } = await this.#describe(drive, blob.id);
    const file = new ShardFile(
      drive,
      blob.id,
      measureShard(blob.stored, blobs.code.data),
      describeShard({ description, stored: blob.stored }, shard, blobs.code),
    );
    const source = blobs.openShards(blob);
    const frame = Buffer.allocUnsafeSlow(FRAME_BUFFER_BYTES);
    try {
      for await (const unit of source.rebuild(shard)) {
        unit.copy(frame);
        await file.write(frame, unit.length);
        this.totals.bytes += unit.length;
      }
      await file.publish(summary);
    } catch (error) {
      await file.discard();
      throw error;
    } finally {
      source.close();
    }
  }

  // The description in another shard of the body.
  async #describe(drive: Drive, id: number): Promise<{ description: object; summary: unknown }> {
    for (const other of this.#env.blobs.drives.rankShards(id)) {
      if (other === drive || !other.isPresent) continue;
      const lease = await other.files.use(other.folders.file(id)).catch(() => undefined);
      if (lease === undefined) continue;
      try {
        for await (const { id: found, description, summary } of scanRecords(lease.file)) {
          if (found === id) return { description: description as object, summary };
        }
      } finally {
        lease.release();
      }
    }
    throw new StoreError("InternalError", `No shard is readable (blob ${id.toString(16)})`);
  }

  // The first copy, with its damaged records replaced from other copies.
  async #gatherSegment(
    sources: readonly Drive[],
    segment: number,
    alive: ReadonlySet<number>,
  ): Promise<Buffer> {
    let whole: Buffer | undefined;
    const missing = new Set(alive);
    for (const drive of sources) {
      if (whole !== undefined && missing.size === 0) break;
      const path = drive.folders.segment(segment);
      const lease = await drive.files.use(path).catch(() => undefined);
      if (lease === undefined) continue;
      try {
        whole ??= await readFile(path);
        for await (const record of scanRecords(lease.file)) {
          if (!missing.has(record.id)) continue;
          const bytes = await record.read();
          if (bytes === undefined) continue;
          const start = record.framesAt - record.headBytes;
          if (whole.length < start + bytes.length) {
            whole = Buffer.concat([whole, Buffer.alloc(start + bytes.length - whole.length)]);
          }
          bytes.copy(whole, start);
          missing.delete(record.id);
        }
      } finally {
        lease.release();
      }
    }
    if (whole === undefined || missing.size > 0) {
      throw new StoreError("InternalError", `No copy is intact (segment ${segment.toString(16)})`);
    }
    return whole;
  }

  #findFile(id: number): { stored: number; position: number } | undefined {
    return this.#index
      .sql("select stored, position from blobs where id = ? and kind = 'file'")
      .get(id) as { stored: number; position: number } | undefined;
  }

  async #remove(drive: Drive, id: number): Promise<void> {
    const path = drive.folders.file(id);
    drive.files.forget(path);
    await removeFile(path).catch(() => undefined);
  }
}

async function measureFile(path: string): Promise<number | undefined> {
  try {
    return (await stat(path)).size;
  } catch {
    return undefined;
  }
}
