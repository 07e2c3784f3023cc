// Removes unreferenced files after their readers have finished.
import { every, type RepeatingTimer } from "@platform/kernel/time";
import { stat } from "node:fs/promises";
import type { IndexConnection } from "../index/schema.ts";
import type { IndexWriter } from "../transaction/writer.ts";
import type { BodyOpener } from "../store/body.ts";
import type { BlobStore } from "../blob/blob-store.ts";
import { removeFile } from "../disk/files.ts";
import type { Drive } from "../blob/drive/drive.ts";

/** Options of the collector. */
export interface GarbageCollectorOptions {
  blobs: BlobStore;
  writer: IndexWriter;
  bodies: BodyOpener;
}

interface Batch {
  blobs: number[];
  /** With the bytes of each segment that the index knows. */
  segments: { id: number; bytes: number }[];
  /** Readers that began before this may still open the files. */
  mark: number;
}

/** Records are padded to a multiple of this. */
const ALIGNMENT_BYTES = 8;
const EVERY_MS = 1_000;
const BATCH_MAX = 500;

/** Collects in the background, one batch at a time. */
export class GarbageCollector {
  readonly #env: GarbageCollectorOptions;
  readonly #index: IndexConnection;
  #batch: Batch | undefined;
  #timer: RepeatingTimer | undefined;

  constructor(environment: GarbageCollectorOptions, index: IndexConnection) {
    this.#env = environment;
    this.#index = index;
  }

  start(): void {
    // Files that could not be removed are still garbage the next time.
    this.#timer = every(
      EVERY_MS,
      () => this.collect(),
      () => undefined,
    );
  }

  async stop(): Promise<void> {
    await this.#timer?.stop();
  }

  /** Unreferenced bytes in segments. */
  readGarbageBytes(): number {
    const row = this.#index.sql("select sum(bytes - live) as bytes from segments").get();
    return Number(row?.["bytes"] ?? 0);
  }

  /** One round: removes the batch of the previous round, as soon as its readers have finished, and selects another. */
  async collect(): Promise<void> {
    if (this.#batch !== undefined) {
      if (!this.#env.bodies.leases.isPast(this.#batch.mark)) return;
      await this.#remove(this.#batch);
      this.#batch = undefined;
    }
    const batch = this.#note();
    // The state of a single copy of the index may be lost with its drive; the other copies would still refer to the bytes.
    if (batch !== undefined && this.#env.blobs.drives.isErasureCoded) {
      await this.#env.writer.submit({ type: "confirm" });
    }
    this.#batch = batch;
  }

  #note(): Batch | undefined {
    const blobs = this.#index
      .sql(
        "select blob from garbage where not exists (select 1 from blobs where id = garbage.blob) " +
          "order by blob limit ?",
      )
      .all(BATCH_MAX)
      .map((row) => Number(row["blob"]));
    const segments = this.#index
      .sql(
        "select id, bytes from segments where live = 0 and " +
          "not exists (select 1 from blobs where segment = segments.id) limit ?",
      )
      .all(BATCH_MAX)
      .map((row) => ({ id: Number(row["id"]), bytes: Number(row["bytes"]) }))
      .filter(({ id }) => !this.#env.blobs.segments.isPinned(id));
    if (blobs.length === 0 && segments.length === 0) return undefined;
    return { blobs, segments, mark: this.#env.bodies.leases.mark() };
  }

  async #remove({ blobs, segments }: Batch): Promise<void> {
    const gone: number[] = [];
    for (const drive of this.#env.blobs.drives.present) {
      for (const id of blobs) await removePath(drive, drive.folders.file(id));
    }
    for (const segment of segments) {
      if (await this.#removeSegment(segment)) gone.push(segment.id);
    }
    await this.#env.writer.submit({ type: "forgetGarbage", blobs, segments: gone });
  }

  // Records beyond the end that the index knows were never acknowledged, or were written under another index.
  async #removeSegment({ id, bytes }: Batch["segments"][number]): Promise<boolean> {
    let isGone = true;
    for (const drive of this.#env.blobs.drives.present) {
      const path = drive.folders.segment(id);
      const size = (await stat(path).catch(() => undefined))?.size ?? 0;
      if (size <= bytes + ALIGNMENT_BYTES) await removePath(drive, path);
      else if (!(await this.#env.blobs.quarantine.take(drive, path))) isGone = false;
    }
    return isGone;
  }
}

async function removePath(drive: Drive, path: string): Promise<void> {
  drive.files.forget(path);
  await removeFile(path).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== "ENOENT") throw error;
  });
}
