// What every operation inside the writer works with: statements, buckets, the sequence, totals, the outbox.
import type { StatementSync } from "node:sqlite";
import type { Bucket } from "../model/bucket.ts";
import { StoreError } from "../model/store-error.ts";
import { readAllUsage, writeUsage } from "../index/usage-rows.ts";
import { UsageBook } from "./usage-book.ts";
import type { IndexMark } from "../index/mark.ts";
import { nameDriveMark, type IndexConnection } from "../index/schema.ts";
import { damagedRow, matchesSeal, sealBucket } from "../index/seal.ts";

/** A bucket with the number that rows refer to it by. */
export interface BucketState {
  id: number;
  bucket: Bucket;
}

/** What is counted with each commit and kept in the index. */
export interface IndexTotals {
  /** Of all buckets; up to date when a group is saved. */
  objects: number;
  /** As `objects`; with the bytes of parts. */
  storageBytes: number;
  pendingEvents: number;
  droppedEvents: number;
}

/** Bounds that the writer keeps. */
export interface WriterLimits {
  pendingEventsMax: number;
  bucketsMax: number;
  partBytesMin: number;
  /** The generation of this start is above it, whatever the index says. */
  generationMin?: number;
  /** There are other copies of the index, which must stay the same as this one. */
  isReplicated?: boolean;
}

interface BucketRow {
  id: number;
  name: string;
  document: string;
  seal: number | null;
}

// Sequence numbers are taken from the index in ranges, so that not every commit writes the counter.
const SEQUENCE_RANGE = 100_000;

/** The writer's state. Lives in the writer thread and nowhere else. */
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
  };
  /** Of this start; the upper half of blob and segment numbers. */
  readonly generation: number;
  readonly #connection: IndexConnection;
  #savedDroppedEvents = 0;
  #isGenerationSaved = false;
  #seq: number;
  #seqEnd: number;

  /** `generation` is given to a copy of the index that joins a start which is under way. */
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

  /** Reads anew what is kept in memory: at the start, and after a group that was undone. */
  reload(): void {
    this.buckets.clear();
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

  /** The bucket, or `NoSuchBucket`. */
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

  /** Goes on from another number; what is reserved is reserved anew when it is reached. */
  set sequence(sequence: number) {
    if (sequence === this.#seq) return;
    this.#seq = sequence;
    this.#seqEnd = Math.min(this.#seqEnd, sequence);
  }

  /** The next number in the order of commits; numbers of undone operations are not used again. */
  nextSequence(): number {
    if (this.#seq >= this.#seqEnd) {
      this.#seqEnd = this.#seq + SEQUENCE_RANGE;
      this.#writeMeta("sequence", this.#seqEnd);
    }
    this.#seq += 1;
    return this.#seq;
  }

  /** Writes the counts that changed: a row for each bucket that was written to; part of each group. */
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

  /** Writes the number of a group, and of the start that it belongs to; part of it. */
  saveCommit(commit: number): void {
    this.#writeMeta("commit", commit);
    if (this.#isGenerationSaved) return;
    this.#writeMeta("commit_generation", this.generation);
    this.#isGenerationSaved = true;
  }

  readCommit(): number {
    return this.#readMeta("commit");
  }

  /** The state that the index is in. */
  readPosition(): IndexMark {
    return { commitGeneration: this.#readMeta("commit_generation"), commit: this.readCommit() };
  }

  /** Notes whether a drive lacks something. */
  markDrive(slot: number, isBehind: boolean): void {
    this.#writeMeta(nameDriveMark(slot), isBehind ? 1 : 0);
  }

  /** The drives that lack something. */
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
