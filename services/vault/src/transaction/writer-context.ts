// The state that operations inside the writer use: statements, buckets, the sequence, totals, usage.
import type { StatementSync } from "node:sqlite";
import type { Bucket } from "../model/bucket.ts";
import type { ErrorCode } from "../model/errors.ts";
import { StoreError, type StoreErrorDetails } from "../model/store-error.ts";
import type { TaskKind } from "../model/task.ts";
import { readAllUsage, writeUsage } from "../index/usage-rows.ts";
import { UsageBook } from "./usage-book.ts";
import type { IndexMark } from "../index/mark.ts";
import { nameDriveMark, type IndexConnection } from "../index/schema.ts";
import { damagedRow, matchesSeal, sealBucket } from "../index/seal.ts";

/** A bucket with its number in the index. */
export interface BucketState {
  id: number;
  bucket: Bucket;
}

/** The result of one operation. */
export type Outcome =
  | { value: unknown }
  | { code: ErrorCode; message: string; details: StoreErrorDetails };

/** Numbers of tasks by their kind. */
export type TaskCounts = Readonly<Partial<Record<TaskKind, number>>>;

/** Totals that are updated with each commit. */
export interface IndexTotals {
  /** Over all buckets; current when a group is saved. */
  objects: number;
  /** As `objects`; includes the bytes of parts. */
  storageBytes: number;
  pendingEvents: number;
  droppedEvents: number;
  /** Tasks of each kind that were added since the start. Never changed, but replaced: a group that fails sets it back. */
  addedTasks: TaskCounts;
}

/** Limits of the writer. */
export interface WriterLimits {
  pendingEventsMax: number;
  bucketsMax: number;
  partBytesMin: number;
  /** The generation of this start is above it, regardless of the index. */
  generationMin?: number;
  /** Size of the index's log, in bytes, at which readers that keep it from restarting are ended. */
  logBytesMax: number;
  /** There are other copies of the index, which must stay identical. */
  isReplicated?: boolean;
}

interface BucketRow {
  id: number;
  name: string;
  document: string;
  seal: number | null;
}

// Sequence numbers are reserved in ranges, so that not every commit writes the counter.
const SEQUENCE_RANGE = 100_000;

/** The state of the writer, used only in the writer thread. */
export class WriterContext {
  readonly limits: WriterLimits;
  readonly buckets = new Map<string, BucketState>();
  /** Usage of each bucket. */
  readonly usage = new UsageBook();
  readonly totals: IndexTotals = {
    objects: 0,
    storageBytes: 0,
    pendingEvents: 0,
    droppedEvents: 0,
    addedTasks: {},
  };
  /** False for buckets that have had no vectors since they were asked; the others may have lost theirs. */
  readonly bucketsWithVectors = new Map<number, boolean>();
  /** Outcomes of the operations of the group so far. */
  outcomes: readonly Outcome[] = [];
  /** Of this start; the upper half of blob and segment ids. */
  readonly generation: number;
  readonly #connection: IndexConnection;
  #savedDroppedEvents = 0;
  #isGenerationSaved = false;
  #seq: number;
  #seqEnd: number;

  /** `generation` is set for a copy of the index that joins a running start. */
  constructor(connection: IndexConnection, limits: WriterLimits, generation?: number) {
    this.#connection = connection;
    this.limits = limits;
    this.generation =
      generation ?? Math.max(this.#readMeta("generation"), limits.generationMin ?? 0) + 1;
    this.#seq = this.#readMeta("sequence");
    this.#seqEnd = this.#seq;
    this.#connection.database.exec("begin immediate");
    this.#writeMeta("generation", this.generation);
    this.#connection.database.exec("commit");
    this.reload();
  }

  /** Reloads the state in memory: at the start, and after a group was undone. */
  reload(): void {
    this.buckets.clear();
    this.bucketsWithVectors.clear();
    for (const row of this.sql("select id, name, document, seal from buckets").iterate()) {
      const { id, name, document, seal } = row as unknown as BucketRow;
      if (!matchesSeal(seal, sealBucket(name, document))) throw damagedRow(`bucket ${name}`);
      this.buckets.set(name, { id, bucket: JSON.parse(document) as Bucket });
    }
    const usages = readAllUsage(this);
    this.usage.load(usages);
    this.totals.objects = 0;
    this.totals.storageBytes = 0;
    for (const { objects, bytes, uploadBytes } of usages.values()) {
      this.totals.objects += objects;
      this.totals.storageBytes += bytes + uploadBytes;
    }
    this.totals.droppedEvents = this.#readMeta("dropped_events");
    this.totals.pendingEvents = Number(this.sql("select count(*) n from events").get()?.["n"]);
    this.#savedDroppedEvents = this.totals.droppedEvents;
    this.#isGenerationSaved = false;
    this.#seqEnd = this.#seq;
  }

  /** A prepared statement. */
  sql(text: string): StatementSync {
    return this.#connection.sql(text);
  }

  /** The bucket; throws `NoSuchBucket`. */
  requireBucket(name: string): BucketState {
    const state = this.buckets.get(name);
    if (state === undefined) {
      throw new StoreError("NoSuchBucket", "The specified bucket does not exist", { bucket: name });
    }
    return state;
  }

  /** The last number in the order of operations. */
  get sequence(): number {
    return this.#seq;
  }

  /** Continues from another number; the range is reserved again when it is reached. */
  set sequence(sequence: number) {
    if (sequence === this.#seq) return;
    this.#seq = sequence;
    this.#seqEnd = Math.min(this.#seqEnd, sequence);
  }

  /** The next number in the order of commits. Numbers of undone operations are not reused. */
  nextSequence(): number {
    if (this.#seq >= this.#seqEnd) {
      this.#seqEnd = this.#seq + SEQUENCE_RANGE;
      this.#writeMeta("sequence", this.#seqEnd);
    }
    this.#seq += 1;
    return this.#seq;
  }

  /** Writes the changed counts as part of each group: a row for each changed bucket. */
  saveCounts(): void {
    const { totals } = this;
    for (const { bucket, before, now } of this.usage.takeChanges()) {
      writeUsage(this, bucket, now);
      totals.objects += now.objects - before.objects;
      totals.storageBytes += now.bytes - before.bytes + now.uploadBytes - before.uploadBytes;
    }
    if (totals.droppedEvents === this.#savedDroppedEvents) return;
    this.#writeMeta("dropped_events", totals.droppedEvents);
    this.#savedDroppedEvents = totals.droppedEvents;
  }

  /** Writes the number of a group and of its start, as part of the group. */
  saveCommit(commit: number): void {
    this.#writeMeta("commit", commit);
    if (this.#isGenerationSaved) return;
    this.#writeMeta("commit_generation", this.generation);
    this.#isGenerationSaved = true;
  }

  readCommit(): number {
    return this.#readMeta("commit");
  }

  /** The last commit group of the index: the generation that committed it, and its number. */
  readPosition(): IndexMark {
    return { commitGeneration: this.#readMeta("commit_generation"), commit: this.readCommit() };
  }

  /** Marks a drive as incomplete or complete. */
  markDrive(slot: number, isBehind: boolean): void {
    this.#writeMeta(nameDriveMark(slot), isBehind ? 1 : 0);
  }

  readDrivesBehind(): number[] {
    return this.sql("select name from meta where name like 'drive_behind_%' and value = 1")
      .all()
      .map((row) => Number(String(row["name"]).slice(nameDriveMark("").length)));
  }

  #readMeta(name: string): number {
    return Number(this.sql("select value from meta where name = ?").get(name)?.["value"] ?? 0);
  }

  #writeMeta(name: string, value: number): void {
    this.sql("insert into meta values (?, ?) on conflict do update set value = excluded.value").run(
      name,
      value,
    );
  }
}
