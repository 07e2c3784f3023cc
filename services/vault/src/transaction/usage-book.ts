// Usage of all buckets inside the writer: updated by each operation, written once per group.
import type { BucketUsage } from "../model/usage.ts";
import { createUsage, isSameUsage } from "../index/usage-rows.ts";

interface Entry {
  now: BucketUsage;
  /** As stored in the table. */
  saved: BucketUsage;
}

/** The counts of a bucket that a group has changed. */
export interface UsageChange {
  bucket: number;
  before: BucketUsage;
  now: BucketUsage;
}

const EMPTY: Readonly<BucketUsage> = Object.freeze(createUsage());

/** The counts of the writer, by the number of the bucket. */
export class UsageBook {
  /** Incremented by each change. */
  revision = 0;
  readonly #entries = new Map<number, Entry>();
  readonly #changed = new Map<number, Entry>();
  // The counts before the operation that runs in a savepoint.
  #kept: Map<Entry, BucketUsage> | undefined;

  /** Replaces all counts by those of the table. */
  load(usages: ReadonlyMap<number, BucketUsage>): void {
    this.#entries.clear();
    this.#changed.clear();
    this.#kept = undefined;
    for (const [bucket, usage] of usages) {
      this.#entries.set(bucket, { now: usage, saved: { ...usage } });
    }
  }

  /** The counts of a bucket, read-only. */
  read(bucket: number): Readonly<BucketUsage> {
    return this.#entries.get(bucket)?.now ?? EMPTY;
  }

  /** The counts of a bucket, for a change. */
  edit(bucket: number): BucketUsage {
    let entry = this.#entries.get(bucket);
    if (entry === undefined) {
      entry = { now: createUsage(), saved: createUsage() };
      this.#entries.set(bucket, entry);
    }
    this.revision += 1;
    this.#changed.set(bucket, entry);
    if (this.#kept !== undefined && !this.#kept.has(entry)) {
      this.#kept.set(entry, { ...entry.now });
    }
    return entry.now;
  }

  /** Changes from now on can be undone. */
  beginSavepoint(): void {
    this.#kept = new Map();
  }

  /** Keeps the changes since the savepoint. */
  releaseSavepoint(): void {
    this.#kept = undefined;
  }

  /** Undoes the changes since the savepoint. */
  undoSavepoint(): void {
    for (const [entry, before] of this.#kept ?? []) Object.assign(entry.now, before);
    this.#kept = undefined;
  }

  /** Buckets whose counts differ from the table's; afterwards they count as saved. */
  *takeChanges(): Generator<UsageChange> {
    for (const [bucket, { now, saved }] of this.#changed) {
      if (isSameUsage(now, saved)) continue;
      yield { bucket, before: saved, now };
      Object.assign(saved, now);
      // Deleted buckets are not kept.
      if (isSameUsage(now, EMPTY)) this.#entries.delete(bucket);
    }
    this.#changed.clear();
  }
}
