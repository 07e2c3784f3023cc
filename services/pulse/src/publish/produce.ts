// Whole record batches as wire clients send them: checked, then appended without being taken apart.
import { LogError, type AppendResult } from "@platform/log";
import { isControl, isTransactional, validateBatch } from "@platform/log/batch";
import type { Store } from "../store/store.ts";
import type { Topic } from "../topic/topics.ts";

/** One batch v2 for one partition. The buffer is taken over: nobody may write to it afterwards. */
export type ProduceBatch = { topic: Topic; partition: number; batch: Buffer };

/** What became of a batch; `error` has a code of the log, or `transactional` for what is refused as such. */
export type ProduceOutcome =
  | { kind: "stored"; result: AppendResult; logStart: number }
  | { kind: "refused"; error: LogError }
  | { kind: "transactional" };

/** What was taken in, in records. */
export type ProduceCounts = { published: number };

/** Takes batches in. */
export class BatchProducer {
  readonly counts: ProduceCounts = { published: 0 };
  readonly #store: Store;
  readonly #batchBytesMax: number;

  /** `batchBytesMax`: largest batch that is taken, as it comes (compressed or not). */
  constructor(store: Store, batchBytesMax: number) {
    this.#store = store;
    this.#batchBytesMax = batchBytesMax;
  }

  /**
   * Appends each batch to its partition; offsets are given in the order of calls and of batches, before the first
   * await. Resolves when what could be stored is durable, with one outcome per batch. Never rejects.
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
      const [result] = await this.#store.appendBatches([
        { partition: view, batch, verified: true },
      ]);
      if (!result!.duplicate) this.counts.published += recordCount;
      return { kind: "stored", result: result!, logStart: view.logStart };
    } catch (error) {
      if (error instanceof LogError) return { kind: "refused", error };
      throw error;
    }
  }
}
