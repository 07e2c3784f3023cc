// Background compaction of topics with a compact policy, up to the records that are still needed.
import { every, type RepeatingTimer } from "@platform/kernel/time";
import type { PartitionView } from "@platform/log";
import type { Expiry } from "../dispatch/expiry.ts";
import type { SharedSubscriptions } from "../dispatch/shared-subscriptions.ts";
import type { Store } from "../store/store.ts";
import type { Topic, Topics } from "../topic/topics.ts";

const SWEEP_MS = 5_000;
/** Minimum of new bytes before a partition is compacted; never less than what it keeps. */
const UNCLEAN_BYTES_MIN = 1024 * 1024;
/** Growth after which a fruitless pass is repeated. */
const GROWTH_MIN = 1.25;

interface CompactorOptions {
  store: Store;
  topics: Topics;
  groups: SharedSubscriptions;
  expiry: Expiry;
  onError: (error: unknown) => void;
}

/** Compacts partitions in the background, one at a time. */
export class Compactor {
  readonly #options: CompactorOptions;
  /** Partitions whose last pass was fruitless, with their uncompacted bytes at that time. */
  readonly #fruitless = new WeakMap<PartitionView, number>();
  #timer: RepeatingTimer | undefined;
  #isStopped = false;

  constructor(options: CompactorOptions) {
    this.#options = options;
  }

  start(): void {
    this.#timer = every(SWEEP_MS, () => this.#sweep(), this.#options.onError);
  }

  /** Starts no further pass; resolves when the current one is done. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    await this.#timer?.stop();
  }

  async #sweep(): Promise<void> {
    for (const topic of this.#options.topics.all()) {
      if (topic.stored.config.cleanupPolicy === "delete") continue;
      for (const partition of topic.stored.partitions) {
        if (this.#isStopped) return;
        if (this.#isDue(partition)) await this.#compact(topic, partition);
      }
    }
  }

  #isDue(partition: PartitionView): boolean {
    const unclean = this.#options.store.log.uncleanBytes(partition);
    const clean = partition.bytes - unclean;
    const before = this.#fruitless.get(partition) ?? 0;
    return unclean >= Math.max(UNCLEAN_BYTES_MIN, clean, before * GROWTH_MIN);
  }

  async #compact(topic: Topic, partition: PartitionView): Promise<void> {
    const { groups, expiry, store } = this.#options;
    const before = Math.min(
      groups.lowestOf(topic, partition.index) ?? partition.durableEnd,
      expiry.lowestOf(partition) ?? partition.durableEnd,
    );
    try {
      for (let more = true; more && !this.#isStopped;) {
        const result = await store.log.compact(partition, before);
        more = result.more && result.bytesBefore > 0;
        if (result.bytesBefore > 0) this.#fruitless.delete(partition);
        else this.#fruitless.set(partition, store.log.uncleanBytes(partition));
      }
    } catch (error) {
      // A partition that was deleted meanwhile needs nothing; a damaged one must not block the others.
      if (partition.live) this.#options.onError(error);
      this.#fruitless.set(partition, partition.live ? store.log.uncleanBytes(partition) : 0);
    }
  }
}
