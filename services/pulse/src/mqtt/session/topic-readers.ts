// The topics that a session reads, and its positions in them.
import { addOffset, type StoredRanges } from "../../store/offset-ranges.ts";
import type { PendingRecord } from "../../store/store.ts";
import type { Topic } from "../../topic/topics.ts";
import { MqttError, REASON } from "../packet/reason-codes.ts";
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
  readonly connection: SessionConnection | undefined;
  readonly deliveries: Deliveries;
  readonly parts: SessionParts;
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

  constructor(session: ReadingSession) {
    this.#session = session;
  }

  get topics(): IteratorObject<Topic> {
    return this.#readers.keys();
  }

  find(topic: Topic): TopicReader | undefined {
    return this.#readers.get(topic);
  }

  /** Reads a topic for a subscription, if the client has the right. */
  attach(topic: Topic, subscription: SessionSubscription, start: Start): void {
    const { connection, isDurable } = this.#session;
    if (connection?.rights.covers("subscribe", topic.name) !== true) return;
    const reader = this.#readers.get(topic) ?? this.#open(topic, connection);
    if (reader === undefined) return;
    reader.add(subscription);
    const isKept = isDurable && reader.view.qos > 0;
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
    if (this.#readers.delete(reader.topic)) this.#session.parts.readers.count--;
  }

  /** Stops all readers; their positions are kept. */
  suspend(): void {
    const { feeds, readers } = this.#session.parts;
    for (const reader of this.#readers.values()) {
      for (const place of reader.partitions) {
        place.unfollow(feeds);
        if (place.done !== undefined) this.cursors.set(place.key, place.done.toStored());
      }
      reader.uncount();
    }
    readers.count -= this.#readers.size;
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

  /** Forgets the positions of a subscription that is gone; returns the records that delete them. */
  drop(subscription: SessionSubscription, topics: Iterable<Topic>): PendingRecord[] {
    const { id, parts } = this.#session;
    const pending: PendingRecord[] = [];
    for (const topic of topics) {
      const reader = this.#readers.get(topic);
      if (reader === undefined || reader.remove(subscription)) continue;
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

  #open(topic: Topic, connection: SessionConnection): TopicReader | undefined {
    const { readers, subscriptions } = this.#session.parts;
    if (!readers.hasRoom(1)) {
      const { reason, message } = createReaderError();
      connection.end(reason, message);
      return undefined;
    }
    readers.count++;
    const reader = new TopicReader(topic, subscriptions.countReader(topic));
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

/** The error of a client that would follow more topics than all clients together may. */
export function createReaderError(): MqttError {
  return new MqttError(REASON.quotaExceeded, "the clients of this broker follow too many topics");
}
