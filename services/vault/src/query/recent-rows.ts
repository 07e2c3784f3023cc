// Rows of live versions that were read recently, so that a repeated read costs no query.
//
//   read ──► kept ──────────────────────────────(memory is full, and it was not read since)──► dropped
//             │
//   group sent to the writer: its rows are dropped, and not kept again ──► group settled: they may be kept again
//
// So a row is never served after a change of it was acknowledged, and while it is unknown whether the change is on disk, each
// read asks the index. All reads of single rows and all acknowledgements are on the event loop: nothing lies between a query
// and keeping its result.
import type { BucketState } from "../transaction/writer-context.ts";
import { findChangedRow, type GroupWatcher } from "../transaction/group-watcher.ts";
import type { Operation } from "../transaction/operations.ts";
import type { StoredVersion } from "./stored-version.ts";

interface Kept {
  found: StoredVersion;
  bytes: number;
  /** Read again since the last search for room. */
  isUsed: boolean;
}

/** An estimate of a row's objects and short texts. */
const ROW_BYTES = 1_024;

/** Bytes of all rows. Default of `RecentRows`. */
const BYTES_MAX = 16 * 1024 * 1024;

/** Holds rows up to a number of bytes, with the bodies that are stored in them. */
export class RecentRows implements GroupWatcher {
  readonly #bytesMax: number;
  // By bucket and key; bucket names have no slash. The oldest ones come first.
  readonly #rows = new Map<string, Kept>();
  // The rows of the group that is being written.
  readonly #changing = new Set<string>();
  #bytes = 0;

  constructor(bytesMax: number = BYTES_MAX) {
    this.#bytesMax = bytesMax;
  }

  /** Bytes of the rows, as estimated. */
  get bytes(): number {
    return this.#bytes;
  }

  /** The live version of a key. */
  find({ id, bucket }: BucketState, key: string): StoredVersion | undefined {
    const kept = this.#rows.get(nameRow(bucket.name, key));
    // A bucket of the same name may have been created meanwhile.
    if (kept === undefined || kept.found.row.bucket !== id) return undefined;
    kept.isUsed = true;
    return kept.found;
  }

  /** Keeps a live version that has just been read with its blob. */
  keep({ bucket }: BucketState, key: string, found: StoredVersion): void {
    const place = found.blob?.place;
    // Compaction moves bodies in segments, and local copies of bodies in remotes, to other segments.
    if (place === undefined || place.kind === "segment" || place.kind === "remote") return;
    const name = nameRow(bucket.name, key);
    if (this.#changing.has(name)) return;
    const { row } = found;
    const bodyBytes = place.kind === "inline" ? place.data.length : 0;
    const textBytes = 2 * (name.length + row.detail.length + (row.tags?.length ?? 0));
    const bytes = ROW_BYTES + bodyBytes + textBytes;
    if (bytes > this.#bytesMax) return;
    this.#drop(name);
    this.#makeRoom(bytes);
    // The bytes of a key share their memory with other short buffers, all of which would be kept.
    const own = { ...found, row: { ...row, key: new Uint8Array(row.key) } };
    this.#rows.set(name, { found: own, bytes, isUsed: false });
    this.#bytes += bytes;
  }

  /** Drops all rows: another copy of the index is read from now on. */
  clear(): void {
    this.#rows.clear();
    this.#bytes = 0;
  }

  begin(operations: readonly Operation[]): void {
    for (const operation of operations) {
      const changed = findChangedRow(operation);
      if (changed === undefined) continue;
      if (changed.key === undefined) {
        this.#dropBucket(changed.bucket);
        continue;
      }
      const name = nameRow(changed.bucket, changed.key);
      this.#changing.add(name);
      this.#drop(name);
    }
  }

  end(): void {
    this.#changing.clear();
  }

  #drop(name: string): void {
    const kept = this.#rows.get(name);
    if (kept === undefined) return;
    this.#rows.delete(name);
    this.#bytes -= kept.bytes;
  }

  // Only an empty bucket is deleted, and rows have the number of their bucket: this frees their memory.
  #dropBucket(bucket: string): void {
    const prefix = nameRow(bucket, "");
    for (const name of this.#rows.keys()) if (name.startsWith(prefix)) this.#drop(name);
  }

  // The oldest rows go; those that were read again get a second turn.
  #makeRoom(bytes: number): void {
    for (const [name, kept] of this.#rows) {
      if (this.#bytes + bytes <= this.#bytesMax) return;
      this.#rows.delete(name);
      if (kept.isUsed) {
        kept.isUsed = false;
        this.#rows.set(name, kept);
      } else {
        this.#bytes -= kept.bytes;
      }
    }
  }
}

function nameRow(bucket: string, key: string): string {
  return `${bucket}/${key}`;
}
