// What every operation inside the writer works with: statements, buckets, the sequence, totals, the outbox.
import type { StatementSync } from "node:sqlite";
import type { Bucket } from "../bucket/types.ts";
import { StoreError } from "../store-error.ts";
import type { IndexConnection } from "./schema.ts";

/** A bucket with the number that rows refer to it by. */
export interface BucketState {
  id: number;
  bucket: Bucket;
}

/** What is counted with each commit and kept in the index. */
export interface IndexTotals {
  objects: number;
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
}

// Sequence numbers are taken from the index in ranges, so that not every commit writes the counter.
const SEQUENCE_RANGE = 100_000;

/** The writer's state. Lives in the writer thread and nowhere else. */
export class WriterContext {
  readonly limits: WriterLimits;
  readonly buckets = new Map<string, BucketState>();
  readonly totals: IndexTotals = {
    objects: 0,
    storageBytes: 0,
    pendingEvents: 0,
    droppedEvents: 0,
  };
  /** Of this start; the upper half of blob and segment numbers. */
  readonly generation: number;
  readonly #connection: IndexConnection;
  #savedTotals = "";
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
    for (const row of this.sql("select id, name, document from buckets").iterate()) {
      const { id, name, document } = row as { id: number; name: string; document: string };
      this.buckets.set(name, { id, bucket: JSON.parse(document) as Bucket });
    }
    this.totals.objects = this.#readMeta("objects");
    this.totals.storageBytes = this.#readMeta("storage_bytes");
    this.totals.droppedEvents = this.#readMeta("dropped_events");
    this.totals.pendingEvents = Number(this.sql("select count(*) n from events").get()?.["n"]);
    this.#savedTotals = this.#describeTotals();
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

  /** Writes the totals if they changed; part of each group. */
  saveTotals(): void {
    const now = this.#describeTotals();
    if (now === this.#savedTotals) return;
    this.#writeMeta("objects", this.totals.objects);
    this.#writeMeta("storage_bytes", this.totals.storageBytes);
    this.#writeMeta("dropped_events", this.totals.droppedEvents);
    this.#savedTotals = now;
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

  #describeTotals(): string {
    return `${this.totals.objects} ${this.totals.storageBytes} ${this.totals.droppedEvents}`;
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

/** The name in the index under which it stands whether a drive lacks something. */
export function nameDriveMark(slot: number | ""): string {
  return `drive_behind_${slot}`;
}
