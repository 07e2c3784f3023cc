// Frees the space of deleted bodies in segments: live bodies move to the open segment, the old one is deleted.
import type { FileLease } from "@platform/kernel/files";
import type { IndexConnection } from "../index/schema.ts";
import type { GarbageCollectorOptions } from "./garbage-collector.ts";
import { type ScannedRecord, scanRecords } from "../blob/record-scan.ts";
import { replaceCipher } from "../blob/rewrite-heads.ts";
import type { WrappedCipher } from "../model/blob.ts";

/** A segment is compacted when less than this share of it is alive. */
const LIVE_SHARE_MAX = 0.5;
/** Bytes that are copied before other disk users get a turn. */
const PAUSE_EVERY_BYTES = 8 * 1024 * 1024;

/** Compacts one segment at a time. */
export class Compactor {
  readonly #env: GarbageCollectorOptions;
  readonly #index: IndexConnection;

  constructor(environment: GarbageCollectorOptions, index: IndexConnection) {
    this.#env = environment;
    this.#index = index;
  }

  /** Compacts the segment with the most garbage, if that is worthwhile. Returns the number of bodies moved. */
  async run(signal: AbortSignal): Promise<number> {
    const segment = this.#choose();
    return segment === undefined ? 0 : this.#compact(segment, signal);
  }

  #choose(): number | undefined {
    return this.#index
      .sql(
        "select id from segments where live > 0 and live < bytes * ? order by bytes - live desc limit 10",
      )
      .all(LIVE_SHARE_MAX)
      .map((row) => Number(row["id"]))
      .find((id) => !this.#env.blobs.segments.isPinned(id));
  }

  // Bodies are copied, synced, then moved in the index only if their location has not changed. When no live body is left,
  // the garbage collector removes the file after its readers have finished.
  async #compact(segment: number, signal: AbortSignal): Promise<number> {
    const { blobs, writer } = this.#env;
    const lease = await this.#open(segment);
    if (lease === undefined) return 0;
    let moved = 0;
    let copied = 0;
    try {
      for await (const record of scanRecords(lease.file)) {
        if (signal.aborted) break;
        if (!this.#isAlive(record.id, segment, record.framesAt)) continue;
        const bytes = await record.read();
        if (bytes === undefined) continue;
        const cipher = this.#renewHead(record, bytes);
        const endWrite = blobs.writes.begin();
        let pinned: number | undefined;
        try {
          const at = await blobs.segments.append([bytes]);
          pinned = at.segment;
          const result = await writer.submit({
            type: "moveBlob",
            blob: record.id,
            from: { segment, position: record.framesAt },
            to: { segment: at.segment, position: at.position + record.headBytes },
            ...(cipher === undefined ? {} : { cipher }),
          });
          if (result.moved) moved += 1;
        } finally {
          if (pinned !== undefined) blobs.segments.unpin(pinned);
          endWrite();
        }
        copied += bytes.length;
        if (copied < PAUSE_EVERY_BYTES) continue;
        copied = 0;
        await new Promise((resolve) => setTimeout(resolve, 50));
      }
    } finally {
      lease.release();
    }
    return moved;
  }

  // A key that was wrapped again since is written to the head of the copy.
  #renewHead(record: ScannedRecord, bytes: Buffer): { from: string; to: string } | undefined {
    const row = this.#index
      .sql(
        "select cipher from blobs where id = ? and kind <> 'remote' and cipher ->> '$.head' is not null",
      )
      .get(record.id);
    if (row === undefined) return undefined;
    const from = String(row["cipher"]);
    const { head: _, ...cipher } = JSON.parse(from) as WrappedCipher;
    const head = replaceCipher(record, cipher);
    head?.copy(bytes);
    return head === undefined ? undefined : { from, to: JSON.stringify(cipher) };
  }

  // With several drives, the first copy. Damaged bodies stay, for the scrubber to heal.
  async #open(segment: number): Promise<FileLease<number> | undefined> {
    for (const drive of this.#env.blobs.drives.rank(segment)) {
      if (!drive.isPresent) continue;
      try {
        return await drive.files.use(drive.folders.segment(segment));
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
      }
    }
    return undefined;
  }

  #isAlive(blob: number, segment: number, position: number): boolean {
    return (
      this.#index
        .sql("select 1 from blobs where id = ? and segment = ? and position = ?")
        .get(blob, segment, position) !== undefined
    );
  }
}
