// Whole record batches as wire clients send them: checked, then appended; taken apart only for a schema or a transform.
import { LogError, type AppendResult, type PartitionView } from "@platform/log";
import { isControl, isTransactional, validateBatch } from "@platform/log/batch";
import type { Draft, Store } from "../store/store.ts";
import type { Topic } from "../topic/topics.ts";
import type { BatchChecks } from "./batch-checks.ts";

/** One batch v2 for one partition. The buffer is taken over: nobody may write to it afterwards. */
export type ProduceBatch = { topic: Topic; partition: number; batch: Buffer };

/**
 * What became of a batch: `refused` with a code of the log, `rejected` where a record (its index) does not fit the topic's
 * schema, `transactional` for what is refused as such.
 */
export type ProduceOutcome =
  | { kind: "stored"; result: AppendResult; logStart: number }
  | { kind: "refused"; error: LogError }
  | { kind: "rejected"; record: number; reason: string }
  | { kind: "transactional" };

/** What was taken in, in records. */
export type ProduceCounts = { published: number; deadLettered: number };

/** Takes batches in. */
export class BatchProducer {
  readonly counts: ProduceCounts = { published: 0, deadLettered: 0 };
  readonly #store: Store;
  readonly #batchBytesMax: number;
  readonly #checks: BatchChecks | undefined;

  /** `batchBytesMax`: largest batch that is taken, as it comes (compressed or not). `checks`: what topics ask of records. */
  constructor(store: Store, batchBytesMax: number, checks?: BatchChecks) {
    this.#store = store;
    this.#batchBytesMax = batchBytesMax;
    this.#checks = checks;
  }

  /**
   * Appends each batch to its partition; offsets are given in the order of calls and of batches. Resolves when what could be stored is durable, with one outcome per batch. Never rejects.
   */
  produce(batches: readonly ProduceBatch[]): Promise<ProduceOutcome[]> {
    return Promise.all(batches.map((batch) => this.#produceOne(batch)));
  }

  async #produceOne({ topic, partition, batch }: ProduceBatch): Promise<ProduceOutcome> {
    try {
      const view = topic.stored.partitions[partition];
      if (view === undefined) throw new LogError("unknown-topic", "no such partition");
      const { attributes, recordCount } = validateBatch(batch, this.#batchBytesMax);
      if (isTransactional(attributes) || isControl(attributes)) return { kind: "transactional" };
      if (this.#checks?.concern(topic, view) !== true) {
        return await this.#append(view, batch, recordCount, []);
      }
      return await this.#checks.inTurn(topic, view, batch, async (checked) =>
        checked.kind === "rejected"
          ? checked
          : this.#append(view, checked.batch, checked.recordCount, checked.deadLetters),
      );
    } catch (error) {
      if (error instanceof LogError) return { kind: "refused", error };
      throw error;
    }
  }

  async #append(
    partition: PartitionView,
    batch: Buffer,
    recordCount: number,
    deadLetters: readonly Draft[],
  ): Promise<ProduceOutcome> {
    const append = { partition, batch, verified: true };
    const [result] = await this.#store.appendBatches([append], deadLetters);
    if (!result!.duplicate) {
      this.counts.published += recordCount;
      this.counts.deadLettered += deadLetters.length;
    }
    return { kind: "stored", result: result!, logStart: partition.logStart };
  }
}
