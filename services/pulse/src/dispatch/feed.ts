// Feeds durable records to subscriptions: each new batch is read and decoded once for all followers that are up to date.
import { LogError, type PartitionView } from "@platform/log";
import { decodeBatch, splitBatches } from "@platform/log/batch";
import { toMessage, type Message } from "../message/message.ts";
import { BATCH_BYTES_MAX, type Store } from "../store/store.ts";
import type { Topic, Topics } from "../topic/topics.ts";
import type { ReadAhead } from "./read-ahead.ts";

/** Bytes per read. */
const READ_BYTES = 256 * 1024;
const RETRY_MS = 1_000;

/** Messages of a range of offsets; offsets without a message were compacted away. */
export interface FeedBatch {
  from: number;
  to: number;
  messages: Message[];
}

/** A subscription that follows partitions. */
export interface Follower {
  /** True if the follower accepts more messages. When that becomes true again, it calls `Feeds.resume`. */
  hasRoom: () => boolean;
  /** The byte count of what was read for this follower and not yet sent. */
  readAhead: () => ReadAhead;
  /** True if messages offered now would be sent immediately. */
  canSend: () => boolean;
  /** Pauses reading: the follower first sends the messages it holds, then calls `Feeds.resume`. */
  rest: () => void;
  offer: (topic: Topic, partition: number, batch: FeedBatch) => void;
  /** The partition cannot be read any further: it was deleted, or a batch is damaged (`at` is after it). */
  lose: (topic: Topic, partition: number) => void;
}

/** A follower's position in one partition. */
export interface Following {
  next: number;
  isReading: boolean;
  readonly follower: Follower;
}

interface Feed {
  topic: Topic;
  partition: PartitionView;
  /** End of the messages delivered to the followers that are up to date. */
  position: number;
  followings: Set<Following>;
  isPumping: boolean;
}

/** The feeds of all followed partitions. */
export class Feeds {
  readonly #store: Store;
  readonly #feeds = new Map<PartitionView, Feed>();
  readonly #onError: (error: unknown) => void;
  readonly #unwatch: () => void;

  constructor(store: Store, topics: Topics, onError: (error: unknown) => void) {
    this.#store = store;
    this.#onError = onError;
    this.#unwatch = store.log.watch((partitions) => {
      if (this.#feeds.size === 0) return;
      for (const partition of partitions) {
        const feed = this.#feeds.get(partition);
        if (feed !== undefined) void this.#pump(feed);
      }
    });
    topics.watch({ deleted: (topic) => this.#lose(topic) });
  }

  /** Follows a partition from `offset` on, or from the log start if that is higher. */
  follow(topic: Topic, partition: PartitionView, offset: number, follower: Follower): Following {
    let feed = this.#feeds.get(partition);
    if (feed === undefined) {
      const position = partition.durableEnd;
      feed = { topic, partition, position, followings: new Set(), isPumping: false };
      this.#feeds.set(partition, feed);
    }
    const following = { next: Math.min(offset, partition.durableEnd), isReading: false, follower };
    feed.followings.add(following);
    this.resume(partition, following);
    return following;
  }

  unfollow(partition: PartitionView, following: Following): void {
    const feed = this.#feeds.get(partition);
    feed?.followings.delete(following);
    if (feed?.followings.size === 0) this.#feeds.delete(partition);
  }

  /** Continues reading for a follower that has room again. */
  resume(partition: PartitionView, following: Following): void {
    const feed = this.#feeds.get(partition);
    if (feed === undefined || following.isReading || following.next === feed.position) return;
    void this.#catchUp(feed, following);
  }

  close(): void {
    this.#unwatch();
    this.#feeds.clear();
  }

  async #pump(feed: Feed): Promise<void> {
    if (feed.isPumping) return;
    feed.isPumping = true;
    try {
      while (feed.position < feed.partition.durableEnd && this.#isFed(feed)) {
        const batch = await this.#read(feed, feed.position, READ_BYTES);
        feed.position = batch.to;
        for (const following of feed.followings) {
          if (following.next !== batch.from || following.isReading) continue;
          const { follower } = following;
          if (!follower.hasRoom()) continue;
          // Without room in the budget, the follower waits its turn and then reads separately.
          if (!mayOffer(follower)) void this.#catchUp(feed, following);
          else {
            following.next = batch.to;
            follower.offer(feed.topic, feed.partition.index, batch);
          }
        }
      }
    } catch (error) {
      this.#fail(feed, error);
    } finally {
      feed.isPumping = false;
    }
  }

  // Without a follower that is up to date, no read can be shared: each follower reads separately when it has room.
  #isFed(feed: Feed): boolean {
    for (const { next, isReading } of feed.followings) {
      if (next === feed.position && !isReading) return true;
    }
    feed.position = feed.partition.durableEnd;
    return false;
  }

  async #catchUp(feed: Feed, following: Following): Promise<void> {
    following.isReading = true;
    const { follower } = following;
    try {
      while (follower.hasRoom() && feed.followings.has(following)) {
        if (following.next === feed.position || following.next >= feed.partition.durableEnd) break;
        const outcome = await this.#catchUpOnce(feed, following);
        if (outcome === "read") continue;
        if (outcome === "rest") follower.rest();
        else this.#resumeLater(feed, following);
        return;
      }
    } catch (error) {
      this.#fail(feed, error);
    } finally {
      following.isReading = false;
    }
    if (!feed.followings.has(following)) return;
    // Messages that arrived during the read may have been delivered without it.
    if (following.next < feed.partition.durableEnd && follower.hasRoom()) {
      if (following.next === feed.position) void this.#pump(feed);
      else setImmediate(() => this.resume(feed.partition, following));
    }
  }

  /**
   * Reads one batch for a follower that is behind.
   *
   * - `read`: the batch was offered, or the follower has left.
   * - `rest`: memory is short, and the follower cannot send now or already waits for memory. Nothing was read.
   * - `no-room`: waited for memory but got none. Nothing was read.
   */
  async #catchUpOnce(feed: Feed, following: Following): Promise<"read" | "rest" | "no-room"> {
    const { follower } = following;
    const { partition } = feed;
    const readAhead = follower.readAhead();
    const bytesMax = Math.max(READ_BYTES, Math.min(BATCH_BYTES_MAX, partition.bytes));
    if (readAhead.isTight && !follower.canSend()) return "rest";
    let claimed = readAhead.claim(bytesMax);
    if (claimed === undefined) {
      if (readAhead.isWaiting || !follower.canSend()) return "rest";
      claimed = await readAhead.claimInTurn(bytesMax);
      if (claimed === undefined) return "no-room";
    }
    try {
      if (!feed.followings.has(following)) return "read";
      const batch = await this.#read(feed, following.next, readAhead.limitRead(READ_BYTES));
      if (!feed.followings.has(following)) return "read";
      following.next = batch.to;
      follower.offer(feed.topic, partition.index, batch);
      return "read";
    } finally {
      readAhead.unclaim(claimed);
    }
  }

  async #read({ topic, partition }: Feed, offset: number, bytesMax: number): Promise<FeedBatch> {
    const from = Math.max(offset, partition.logStart);
    const { buffers, nextOffset } = await this.#store.readIntact(partition, from, bytesMax);
    const messages: Message[] = [];
    for (const batch of buffers.flatMap((buffer) => [...splitBatches(buffer)])) {
      try {
        for (const record of (await decodeBatch(batch)).records) {
          if (record.offset >= from) messages.push(toMessage(topic, partition.index, record));
        }
      } catch (error) {
        // A batch that cannot be decompressed must not block its readers.
        this.#onError(error);
      }
    }
    return { from: offset, to: Math.max(nextOffset, from), messages };
  }

  #fail(feed: Feed, error: unknown): void {
    if (!feed.partition.live || (error instanceof LogError && error.code === "closed")) return;
    this.#onError(error);
    setTimeout(() => {
      void this.#pump(feed);
      for (const following of feed.followings) this.resume(feed.partition, following);
    }, RETRY_MS).unref();
  }

  #resumeLater(feed: Feed, following: Following): void {
    setTimeout(() => {
      if (feed.followings.has(following)) this.resume(feed.partition, following);
    }, RETRY_MS).unref();
  }

  #lose(topic: Topic): void {
    for (const partition of topic.stored.partitions) {
      const feed = this.#feeds.get(partition);
      if (feed === undefined) continue;
      this.#feeds.delete(partition);
      for (const { follower } of feed.followings) follower.lose(topic, partition.index);
    }
  }
}

function mayOffer(follower: Follower): boolean {
  const readAhead = follower.readAhead();
  return readAhead.hasRoom && (!readAhead.isTight || follower.canSend());
}
