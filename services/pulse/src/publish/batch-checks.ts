// Schema and transform for record batches of wire clients, which are taken apart only where a topic has either.
import type { Clock } from "@platform/kernel/time";
import { PlatformError } from "@platform/kernel/errors";
import type { IdSource } from "@platform/kernel/ids";
import { LogError, type PartitionView } from "@platform/log";
import { decodeBatch, encodeKept, type StoredRecord } from "@platform/log/batch";
import type { DeadLetterWriter } from "../deadletter/dead-letter-writer.ts";
import type { Schemas } from "../schema/schemas.ts";
import type { Draft } from "../store/store.ts";
import type { Topic } from "../topic/topics.ts";
import type { Transforms } from "../transform/transforms.ts";

/** Bytes that a checked batch may take when decompressed. */
const decompressedBytesMax = 16 * 1024 * 1024;
/** Records of one batch that are transformed at the same time. */
const transformsAtOnce = 8;

/** What became of a batch: the bytes to store with the dead letters of the same entry, or the first record that is wrong. */
export type CheckedBatch =
  | { kind: "passed"; batch: Buffer; recordCount: number; deadLetters: Draft[] }
  | { kind: "rejected"; record: number; reason: string };

type Parts = {
  schemas: Schemas;
  transforms: Transforms;
  deadLetters: DeadLetterWriter;
  idSource: IdSource;
  clock: Clock;
  /** Largest batch that a transform may make. */
  batchBytesMax: number;
};

/**
 * Checks batches, one after another for each partition, so that what a producer sends in order is stored in order.
 * Tombstones pass as they are. A record whose transform fails becomes a dead letter; its offset stays empty.
 */
export class BatchChecks {
  readonly #parts: Parts;
  readonly #turns = new Map<PartitionView, Promise<unknown>>();

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  /** Whether batches for the partition have to go through `inTurn`. */
  concern(topic: Topic, partition: PartitionView): boolean {
    const { schemas, transforms } = this.#parts;
    return schemas.find(topic) !== undefined || transforms.has(topic) || this.#turns.has(partition);
  }

  /** Checks a batch when the earlier ones of its partition have been handed to `store`, and hands it over. */
  inTurn<T>(
    topic: Topic,
    partition: PartitionView,
    batch: Buffer,
    store: (checked: CheckedBatch) => Promise<T>,
  ): Promise<T> {
    const before = this.#turns.get(partition) ?? Promise.resolve();
    const checked = before.then(() => this.#check(topic, partition, batch));
    const turn = checked.catch(() => undefined);
    this.#turns.set(partition, turn);
    void turn.then(() => {
      if (this.#turns.get(partition) === turn) this.#turns.delete(partition);
    });
    return checked.then(store);
  }

  async #check(topic: Topic, partition: PartitionView, batch: Buffer): Promise<CheckedBatch> {
    const { schemas, transforms, batchBytesMax } = this.#parts;
    const { header, records } = await decodeBatch(batch, decompressedBytesMax);
    const { recordCount } = header;
    for (const [index, { value }] of records.entries()) {
      if (value === null) continue;
      const reason = explainRefusal(() => schemas.check(topic, value));
      if (reason !== undefined) return { kind: "rejected", record: index, reason };
    }
    if (!transforms.has(topic)) return { kind: "passed", batch, recordCount, deadLetters: [] };
    const kept: StoredRecord[] = [];
    const deadLetters: Draft[] = [];
    for (let at = 0; at < records.length; at += transformsAtOnce) {
      const few = records.slice(at, at + transformsAtOnce);
      const results = await Promise.all(few.map((record) => this.#transform(topic, record)));
      for (const result of results) {
        if (result.kind === "kept") kept.push(result.record);
        else deadLetters.push(await this.#draftLetter(topic, partition, result));
      }
    }
    const changed = encodeKept(header, kept);
    if (changed.length > batchBytesMax) {
      throw new LogError("too-large", `the transform made a batch of ${changed.length} bytes`);
    }
    return { kind: "passed", batch: changed, recordCount: kept.length, deadLetters };
  }

  async #transform(topic: Topic, record: StoredRecord) {
    if (record.value === null) return { kind: "kept" as const, record };
    try {
      const result = await this.#parts.transforms.run(topic, record.value);
      return result.kind === "done"
        ? { kind: "kept" as const, record: { ...record, value: result.payload } }
        : { kind: "failed" as const, record, reason: result.reason };
    } catch (error) {
      if (!(error instanceof PlatformError)) throw error;
      throw new LogError("overloaded", error.message, { cause: error });
    }
  }

  async #draftLetter(
    topic: Topic,
    partition: PartitionView,
    { record, reason }: { record: StoredRecord; reason: string },
  ): Promise<Draft> {
    const { deadLetters, idSource, clock } = this.#parts;
    return deadLetters.draft(await deadLetters.ensure(topic), {
      sourceTopic: topic.name,
      id: idSource.uuid(),
      key: record.key,
      payload: record.value ?? Buffer.alloc(0),
      headers: record.headers,
      priority: 0,
      retryCount: 0,
      reason: `${reason} (record of a batch for partition ${partition.index})`,
      at: clock.now(),
    });
  }
}

function explainRefusal(check: () => void): string | undefined {
  try {
    check();
    return undefined;
  } catch (error) {
    if (error instanceof PlatformError) return error.message;
    throw error;
  }
}
