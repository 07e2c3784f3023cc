// Appends whole record batches of Kafka clients: validates them, and decodes them only if the topic requires it.
import { PlatformError } from "@platform/kernel/errors";
import { LogError, type AppendResult, type PartitionView } from "@platform/log";
import { isControl, isTransactional, validateBatch } from "@platform/log/batch";
import type { Store } from "../store/store.ts";
import type { Topic } from "../topic/topics.ts";
import { UnfitBatch, type BatchShaper, type RecordFault } from "./batch-shaper.ts";
import type { TenantCounts } from "../tenant-counts.ts";

/** A batch v2 for a partition. The buffer must not be modified afterwards. */
export interface ProduceBatch {
  topic: Topic;
  partition: number;
  batch: Buffer;
}

/** Result of a batch. `transactional` batches are not supported, `unfit` ones violate the topic's schema. */
export type ProduceOutcome =
  | { kind: "stored"; result: AppendResult; logStart: number }
  | { kind: "refused"; error: LogError | PlatformError }
  | { kind: "unfit"; faults: readonly RecordFault[]; reason: string }
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
  /** The last batch in processing per partition: later batches wait for it. */
  readonly #shaping = new Map<PartitionView, Promise<unknown>>();

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
   * Appends each batch to its partition, in the order of calls and of batches per partition. Batches of topics without
   * schema and transform get their offsets before the first await. Resolves with one outcome per batch once all accepted
   * batches are durable. `timeoutMs`: time limit for schema and transform of a batch.
   */
  produce(batches: readonly ProduceBatch[], timeoutMs: number): Promise<ProduceOutcome[]> {
    const granted = Math.min(Math.max(timeoutMs, SHAPE_MS_MIN), SHAPE_MS_MAX);
    return Promise.all(batches.map((batch) => this.#produceOne(batch, granted)));
  }

  async #produceOne(produced: ProduceBatch, timeoutMs: number): Promise<ProduceOutcome> {
    try {
      const { topic, partition, batch } = produced;
      const view = topic.stored.partitions[partition];
      if (view === undefined) throw new LogError("unknown-topic", "no such partition");
      const { attributes, recordCount } = validateBatch(batch, this.#batchBytesMax);
      if (isTransactional(attributes) || isControl(attributes)) return { kind: "transactional" };
      const result =
        this.#shaping.has(view) || this.#shaper.isNeeded(topic)
          ? await this.#inTurn(view, () =>
              this.#appendShaped(view, topic, batch, recordCount, timeoutMs),
            )
          : await this.#append(view, topic, batch, recordCount);
      return { kind: "stored", result, logStart: view.logStart };
    } catch (error) {
      if (error instanceof UnfitBatch) {
        return { kind: "unfit", faults: error.faults, reason: error.message };
      }
      if (error instanceof LogError || error instanceof PlatformError) {
        return { kind: "refused", error };
      }
      throw error;
    }
  }

  async #append(
    view: PartitionView,
    topic: Topic,
    batch: Buffer,
    count: number,
  ): Promise<AppendResult> {
    const [result] = await this.#store.appendBatches([{ partition: view, batch, verified: true }]);
    if (!result!.duplicate) this.#countPublished(topic, count);
    return result!;
  }

  async #appendShaped(
    view: PartitionView,
    topic: Topic,
    batch: Buffer,
    count: number,
    timeoutMs: number,
  ): Promise<AppendResult> {
    const shaped = await this.#shaper.shape(topic, batch, timeoutMs);
    const [result] = await this.#store.appendBatches(
      [{ partition: view, batch: shaped.batch, verified: true }],
      shaped.deadLetters,
    );
    if (!result!.duplicate) {
      this.#countPublished(topic, count - shaped.deadLetters.length);
      this.counts.deadLettered += shaped.deadLetters.length;
    }
    return result!;
  }

  #countPublished({ tenant }: Topic, count: number): void {
    this.counts.published += count;
    this.#tenantCounts.addPublished(tenant, count);
  }

  /** Runs work after all earlier work of the partition, whatever its result. */
  #inTurn<T>(view: PartitionView, work: () => Promise<T>): Promise<T> {
    const before = this.#shaping.get(view) ?? Promise.resolve();
    const own = before.then(work, work);
    this.#shaping.set(view, own);
    const forget = () => {
      if (this.#shaping.get(view) === own) this.#shaping.delete(view);
    };
    own.then(forget, forget);
    return own;
  }
}
