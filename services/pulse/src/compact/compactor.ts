// Key compaction of the topics that ask for it, by itself, up to what nobody waits for any more.
import { every, type RepeatingTimer } from "@platform/kernel/time";
import type { PartitionView } from "@platform/log";
import type { Expiry } from "../dispatch/expiry.ts";
import type { SharedSubscriptions } from "../dispatch/shared-subscriptions.ts";
import type { Store } from "../store/store.ts";
import type { Topic, Topics } from "../topic/topics.ts";

const SWEEP_MS = 5_000;
/** Bytes that came since the last time before a partition is compacted, at least; never less than what it keeps. */
const UNCLEAN_BYTES_MIN = 1024 * 1024;
/** A pass that could not do anything is tried again when so much more has come. */
const GROWTH_MIN = 1.25;

interface CompactorOptions {
  store: Store;
  topics: Topics;
  groups: SharedSubscriptions;
  expiry: Expiry;
  onError: (error: unknown) => void;
}

/** Compacts in the background, one partition at a time. */
export class Compactor {
  readonly #options: CompactorOptions;
  /** Partitions in which the last pass found nothing to do, with their unclean bytes then. */
  readonly #fruitless = new WeakMap<PartitionView, number>();
  #timer: RepeatingTimer | undefined;
  #isStopped = false;

  constructor(options: CompactorOptions) {
    this.#options = options;
  }

  start(): void {
    this.#timer = every(SWEEP_MS, () => this.#sweep(), this.#options.onError);
  }

  /** Begins nothing more; resolves when what is under way is done. */
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
      // One that was deleted meanwhile needs nothing; a damaged one must not keep the others waiting.
      if (partition.live) this.#options.onError(error);
      this.#fruitless.set(partition, partition.live ? store.log.uncleanBytes(partition) : 0);
    }
  }
}
