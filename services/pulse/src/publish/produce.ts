// Appends whole record batches of Kafka clients: validates them, and decodes them only if the topic requires it.
import { PlatformError } from "@platform/kernel/errors";
import { LogError, type AppendResult, type PartitionView } from "@platform/log";
import { isControl, isTransactional, validateBatch } from "@platform/log/batch";
import type { Store } from "../store/store.ts";
import type { Topic } from "../topic/topics.ts";
import {
  UnfitBatch,
  type BatchShaper,
  type RecordFault,
  type RecordRule,
  type ShapedBatch,
  type TimeBounds,
} from "./batch-shaper.ts";
import type { TenantCounts } from "../tenant/tenant-counts.ts";

/** A batch v2 for a partition. The buffer must not be modified afterwards. */
export interface ProduceBatch {
  topic: Topic;
  partition: number;
  batch: Buffer;
  /** Bounds of the timestamps of its records. */
  times?: TimeBounds | undefined;
}

/** Result of a batch. `transactional` batches are not supported, records of `unfit` ones violate a rule. */
export type ProduceOutcome =
  | { kind: "stored"; result: AppendResult; logStart: number }
  | { kind: "refused"; error: LogError | PlatformError }
  | { kind: "unfit"; rule: RecordRule; faults: readonly RecordFault[]; reason: string }
  | { kind: "transactional" };

/** Counts of records. */
export interface ProduceCounts {
  published: number;
  deadLettered: number;
}

/** Maximum time for the schema and the transform of one batch, whatever the client allows. */
const SHAPE_MS_MAX = 30_000;
const SHAPE_MS_MIN = 1_000;

/** Appends batches of Kafka clients. */
export class BatchProducer {
  readonly counts: ProduceCounts = { published: 0, deadLettered: 0 };
  readonly #store: Store;
  readonly #shaper: BatchShaper;
  readonly #batchBytesMax: number;
  readonly #tenantCounts: TenantCounts;
  /** Of partitions with batches in processing: fulfilled when the last one has its offsets or is refused. */
  readonly #turns = new Map<PartitionView, Promise<void>>();

  /** `batchBytesMax`: largest accepted batch, as received (compressed or not). */
  constructor(
    store: Store,
    shaper: BatchShaper,
    batchBytesMax: number,
    tenantCounts: TenantCounts,
  ) {
    this.#store = store;
    this.#shaper = shaper;
    this.#batchBytesMax = batchBytesMax;
    this.#tenantCounts = tenantCounts;
  }

  /**
   * Appends each batch to its partition, in the order of calls and of batches per partition. Batches that
   * need not be decoded get their offsets before the first await. Resolves with one outcome per batch once all accepted
   * batches are durable. `timeoutMs`: time limit for schema and transform of a batch.
   */
  produce(batches: readonly ProduceBatch[], timeoutMs: number): Promise<ProduceOutcome[]> {
    const granted = Math.min(Math.max(timeoutMs, SHAPE_MS_MIN), SHAPE_MS_MAX);
    return Promise.all(batches.map((batch) => this.#produceOne(batch, granted)));
  }

  async #produceOne(produced: ProduceBatch, timeoutMs: number): Promise<ProduceOutcome> {
    try {
      const { topic, partition, batch, times } = produced;
      const view = topic.stored.partitions[partition];
      if (view === undefined) throw new LogError("unknown-topic", "no such partition");
      const { attributes, recordCount } = validateBatch(batch, this.#batchBytesMax);
      if (isTransactional(attributes) || isControl(attributes)) return { kind: "transactional" };
      const isShaped = this.#shaper.isNeeded(topic, batch, times);
      if (!isShaped) this.#shaper.check(batch, times);
      const result =
        isShaped || this.#turns.has(view)
          ? await this.#appendInTurn(view, recordCount, topic, () =>
              isShaped
                ? this.#shaper.shape(topic, batch, times, timeoutMs)
                : Promise.resolve({ batch, deadLetters: [] }),
            )
          : await this.#append(view, recordCount, topic, { batch, deadLetters: [] });
      return { kind: "stored", result, logStart: view.logStart };
    } catch (error) {
      if (error instanceof UnfitBatch) {
        const { rule, faults, message } = error;
        return { kind: "unfit", rule, faults, reason: message };
      }
      if (error instanceof LogError || error instanceof PlatformError) {
        return { kind: "refused", error };
      }
      throw error;
    }
  }

  /** Batches of a partition are shaped in parallel, and get their offsets in the order of calls. */
  async #appendInTurn(
    view: PartitionView,
    count: number,
    topic: Topic,
    shape: () => Promise<ShapedBatch>,
  ): Promise<AppendResult> {
    const before = this.#turns.get(view);
    const own = Promise.withResolvers<void>();
    this.#turns.set(view, own.promise);
    const endTurn = (): void => {
      own.resolve();
      if (this.#turns.get(view) === own.promise) this.#turns.delete(view);
    };
    const shaping = shape();
    shaping.catch(() => undefined);
    try {
      await before;
      const appending = this.#append(view, count, topic, await shaping);
      endTurn();
      return await appending;
    } finally {
      endTurn();
    }
  }

  // The log assigns the offsets before the first await.
  async #append(
    view: PartitionView,
    count: number,
    topic: Topic,
    { batch, deadLetters }: ShapedBatch,
  ): Promise<AppendResult> {
    const [result] = await this.#store.appendBatches(
      [{ partition: view, batch, verified: true }],
      deadLetters,
    );
    if (!result!.duplicate) {
      this.#countPublished(topic, count - deadLetters.length);
      this.counts.deadLettered += deadLetters.length;
    }
    return result!;
  }

  #countPublished({ tenant }: Topic, count: number): void {
    this.counts.published += count;
    this.#tenantCounts.addPublished(tenant, count);
  }
}
