// The topics that a session reads, and its positions in them.
import type { FollowAccount } from "../../dispatch/followed-topics.ts";
import { addOffset, type StoredRanges } from "../../store/offset-ranges.ts";
import type { PendingRecord } from "../../store/store.ts";
import type { Topic } from "../../topic/topics.ts";
import { toMqttError } from "../publishing.ts";
import type { SessionConnection } from "./connection-port.ts";
import type { Deliveries } from "./deliveries.ts";
import type { SessionParts } from "./session-parts.ts";
import type { SavedSession } from "./session-saver.ts";
import {
  PartitionReader,
  TopicReader,
  type ReaderOwner,
  type SessionSubscription,
  type SubscriptionOwner,
} from "./topic-reader.ts";

/** A session, for its readers. */
interface ReadingSession extends ReaderOwner, SubscriptionOwner, SavedSession {
  readonly identity: { tenant: string };
  readonly connection: SessionConnection | undefined;
  readonly deliveries: Deliveries;
  readonly parts: SessionParts;
  readonly hasPositions: boolean;
  /** A reader has stopped. */
  forget(place: PartitionReader): void;
}

/** Start of reading: the stored position, the end, or the start of a new topic. */
type Start = "cursor" | "end" | "start";

/** The readers of one session. */
export class TopicReaders {
  readonly #session: ReadingSession;
  readonly #readers = new Map<Topic, TopicReader>();
  /** Positions of a session without a connection, and of readers before they begin. */
  readonly cursors = new Map<string, StoredRanges>();
  /** Counts each subscription and topic that it reads for it. */
  readonly account: FollowAccount;

  constructor(session: ReadingSession, account: FollowAccount) {
    this.#session = session;
    this.account = account;
  }

  get topics(): IteratorObject<Topic> {
    return this.#readers.keys();
  }

  find(topic: Topic): TopicReader | undefined {
    return this.#readers.get(topic);
  }

  /** True if a topic is read for a subscription. */
  isFollowed(topic: Topic, subscription: SessionSubscription): boolean {
    return this.#readers.get(topic)?.subscriptions.includes(subscription) === true;
  }

  /** Reads a topic for a subscription, if the client has the right. */
  attach(topic: Topic, subscription: SessionSubscription, start: Start): void {
    const { connection, hasPositions } = this.#session;
    if (connection?.rights.covers("subscribe", topic.name) !== true) return;
    if (!this.isFollowed(topic, subscription)) {
      const error = this.account.explain(1);
      if (error !== undefined) {
        const { reason, message } = toMqttError(error);
        connection.end(reason, message);
        return;
      }
      this.account.take(1);
    }
    const reader = this.#readers.get(topic) ?? this.#open(topic);
    reader.add(subscription);
    const isKept = hasPositions && reader.view.qos > 0;
    for (const partition of topic.stored.partitions) {
      const place =
        reader.partitions[partition.index] ?? this.#follow(reader, partition, isKept, start);
      if (!isKept) continue;
      place.keep(this.cursors.get(place.key));
      this.cursors.delete(place.key);
    }
  }

  detach(reader: TopicReader): void {
    for (const place of reader.partitions) {
      place.unfollow(this.#session.parts.feeds);
      this.#session.forget(place);
    }
    reader.uncount();
    if (this.#readers.delete(reader.topic)) this.account.give(reader.subscriptions.length);
  }

  /** Stops all readers; their positions are kept. */
  suspend(): void {
    const { feeds } = this.#session.parts;
    for (const reader of this.#readers.values()) {
      for (const place of reader.partitions) {
        place.unfollow(feeds);
        if (place.done !== undefined) this.cursors.set(place.key, place.done.toStored());
      }
      reader.uncount();
      this.account.give(reader.subscriptions.length);
    }
    this.#readers.clear();
  }

  /** Positions at which a durable session begins to read a topic; new topics are read from their start. */
  keepPositions(topic: Topic): PendingRecord[] {
    const { id, parts } = this.#session;
    const reader = this.#readers.get(topic);
    const pending: PendingRecord[] = [];
    for (const partition of topic.stored.partitions) {
      const key = `${topic.stored.id.toString("hex")}:${partition.index}`;
      const place = reader?.partitions[partition.index];
      if (this.cursors.has(key) || place?.done !== undefined) continue;
      const stored: StoredRanges = { low: place?.position ?? partition.durableEnd, ranges: [] };
      this.cursors.set(key, stored);
      if (stored.low > 0) pending.push(parts.records.cursor(id, key, stored));
    }
    return pending;
  }

  /** Resolves when what is stored now was offered for a subscription, or when the session takes no more for now. */
  async catchUp(subscription: SessionSubscription): Promise<void> {
    const waits: Promise<void>[] = [];
    const { index } = this.#session.parts;
    for (const topic of index.match(this.#session.identity.tenant, subscription.filter)) {
      for (const place of this.#readers.get(topic)?.partitions ?? [])
        waits.push(place.reach(place.partition.durableEnd));
    }
    await Promise.all(waits);
  }

  /** Forgets the positions of a subscription that is gone; returns the records that delete them. */
  drop(subscription: SessionSubscription, topics: Iterable<Topic>): PendingRecord[] {
    const { id, parts } = this.#session;
    const pending: PendingRecord[] = [];
    for (const topic of topics) {
      const reader = this.#readers.get(topic);
      if (reader === undefined || !reader.remove(subscription)) continue;
      this.account.give(1);
      if (reader.subscriptions.length > 0) continue;
      for (const place of reader.partitions) {
        if (place.done !== undefined) pending.push(parts.records.cursor(id, place.key, null));
      }
      this.detach(reader);
    }
    for (const key of this.cursors.keys()) {
      if (this.#isSubscribed(key)) continue;
      this.cursors.delete(key);
      pending.push(parts.records.cursor(id, key, null));
    }
    return pending;
  }

  storedCursor(key: string): StoredRanges | undefined {
    return this.cursors.get(key) ?? this.#findPlace(key)?.done?.toStored();
  }

  /** The client has the message at an offset, or it is not for the client. */
  settle(place: PartitionReader, offset: number): void {
    if (place.done === undefined) return;
    // The client may have left and come back since: then another reader is at this place.
    if (this.#readers.get(place.reader.topic) === place.reader) place.done.add(offset);
    else this.markDone(place.key, offset);
    this.#session.parts.saver.markCursor(this.#session, place.key);
  }

  /** The client has a message; its reader may be another one than when it was sent. */
  markDone(key: string, offset: number): void {
    const place = this.#findPlace(key);
    if (place?.done !== undefined) place.done.add(offset);
    else this.cursors.set(key, addOffset(this.cursors.get(key), offset));
    this.#session.parts.saver.markCursor(this.#session, key);
  }

  #open(topic: Topic): TopicReader {
    const reader = new TopicReader(topic, this.#session.parts.subscriptions.countReader(topic));
    this.#readers.set(topic, reader);
    return reader;
  }

  #follow(
    reader: TopicReader,
    partition: PartitionReader["partition"],
    isKept: boolean,
    start: Start,
  ): PartitionReader {
    const place = new PartitionReader(reader, partition, this.#session);
    reader.partitions[partition.index] = place;
    const stored = isKept ? this.cursors.get(place.key) : undefined;
    const isFromStart = start === "start" || (start === "cursor" && isKept);
    if (isKept) this.#skipInFlight(place);
    // A stored position counts, also if the client subscribes again before the session has started.
    const from = stored?.low ?? (isFromStart ? 0 : partition.durableEnd);
    place.follow(this.#session.parts.feeds, from);
    return place;
  }

  /** Messages in flight are sent again by their packet identifiers, not read again. */
  #skipInFlight(place: PartitionReader): void {
    for (const { partition, offset } of this.#session.deliveries.outgoing.values()) {
      if (partition === place.partition) (place.skipped ??= new Set()).add(offset);
    }
  }

  /** True if a subscription may match the topic of a position without a reader. */
  #isSubscribed(key: string): boolean {
    const { topics, index } = this.#session.parts;
    const topic = topics.findByHexId(key.split(":")[0]!);
    if (topic === undefined) return false;
    return index.matchTopic(topic).some(({ session }) => session === this.#session);
  }

  #findPlace(key: string): PartitionReader | undefined {
    const [topicId, index] = key.split(":");
    const topic = this.#session.parts.topics.findByHexId(topicId!);
    return topic === undefined ? undefined : this.#readers.get(topic)?.partitions[Number(index)];
  }
}
