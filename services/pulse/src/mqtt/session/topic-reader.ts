// Reads a topic for one session, whichever of its subscriptions match.
import type { PartitionView } from "@platform/log";
import type { Feeds, FeedBatch, Follower, Following } from "../../dispatch/feed.ts";
import type { ReadAhead } from "../../dispatch/read-ahead.ts";
import { OffsetRanges, type StoredRanges } from "../../store/offset-ranges.ts";
import type { Topic } from "../../topic/topics.ts";
import type { Qos } from "../packet/packets.ts";
import type { TopicFilter } from "../topic/filter.ts";
import type { DeliveryForm } from "./connection-port.ts";
import type { StoredSubscription } from "./session-records.ts";

/** A session, for what finds its subscriptions. */
export interface SubscriptionOwner {
  /** A topic that matches a subscription was created, or has gained partitions. */
  noteTopic(topic: Topic, subscription: SessionSubscription): void;
}

/** A subscription of a session. */
export interface SessionSubscription {
  readonly session: SubscriptionOwner;
  readonly filter: TopicFilter;
  options: StoredSubscription;
}

/** The delivery of a message: all subscriptions that match it, together. */
export interface View extends DeliveryForm {
  /** The highest of the matching subscriptions (MQTT-3.3.4-2). */
  qos: Qos;
}

/** The session that a reader belongs to. */
export interface ReaderOwner {
  hasRoom(): boolean;
  canTake(): boolean;
  readAhead(): ReadAhead;
  take(place: PartitionReader, batch: FeedBatch): void;
  rest(place: PartitionReader): void;
  lose(topic: Topic): void;
}

/** The position of a session in a partition. */
export class PartitionReader implements Follower {
  readonly reader: TopicReader;
  readonly partition: PartitionView;
  readonly #owner: ReaderOwner;
  #following: Following | undefined;
  /** Offsets that the client has acknowledged; kept for sessions that outlive their connection. */
  done: OffsetRanges | undefined;
  /** Offsets in flight, which are not read again. */
  skipped: Set<number> | undefined;
  #waiting: { offset: number; resolve: () => void }[] = [];

  constructor(reader: TopicReader, partition: PartitionView, owner: ReaderOwner) {
    this.reader = reader;
    this.partition = partition;
    this.#owner = owner;
  }

  /** Identifies the partition in the records of a session. */
  get key(): string {
    return `${this.partition.topic.id.toString("hex")}:${this.partition.index}`;
  }

  /** The next offset to be read. */
  get position(): number {
    return this.#following?.next ?? 0;
  }

  follow(feeds: Feeds, from: number): void {
    const start = Math.min(Math.max(from, this.partition.logStart), this.partition.durableEnd);
    this.#following = feeds.follow(this.reader.topic, this.partition, start, this);
  }

  unfollow(feeds: Feeds): void {
    if (this.#following !== undefined) feeds.unfollow(this.partition, this.#following);
    this.#following = undefined;
    this.#wake(Number.POSITIVE_INFINITY);
  }

  /** Resolves when everything below `offset` was offered to the session, or when it takes no more for now. */
  reach(offset: number): Promise<void> {
    const isReached = this.#following === undefined || this.position >= offset;
    if (isReached || !this.#owner.hasRoom()) return Promise.resolve();
    return new Promise((resolve) => this.#waiting.push({ offset, resolve }));
  }

  resume(feeds: Feeds): void {
    if (this.#following !== undefined) feeds.resume(this.partition, this.#following);
  }

  /** Begins to keep what was acknowledged, from the position of reading on. */
  keep(stored?: StoredRanges): void {
    this.done ??= new OffsetRanges(stored ?? { low: this.position, ranges: [] });
  }

  hasRoom(): boolean {
    if (this.#owner.hasRoom()) return true;
    this.rest();
    return false;
  }

  readAhead(): ReadAhead {
    return this.#owner.readAhead();
  }

  canSend(): boolean {
    return this.#owner.canTake();
  }

  rest(): void {
    this.#owner.rest(this);
    this.#wake(Number.POSITIVE_INFINITY);
  }

  offer(_topic: Topic, _partition: number, batch: FeedBatch): void {
    this.#owner.take(this, batch);
    this.#wake(batch.to);
  }

  lose(): void {
    this.#owner.lose(this.reader.topic);
    this.#wake(Number.POSITIVE_INFINITY);
  }

  #wake(offset: number): void {
    if (this.#waiting.length === 0) return;
    const waiting = this.#waiting;
    this.#waiting = waiting.filter((one) => one.offset > offset);
    for (const one of waiting) if (one.offset <= offset) one.resolve();
  }
}

/** A session's reading of one topic. */
export class TopicReader {
  readonly topic: Topic;
  readonly subscriptions: SessionSubscription[] = [];
  readonly partitions: PartitionReader[] = [];
  readonly uncount: () => void;
  /** For messages of other sessions. */
  view: View = { qos: 0, ids: [], retainAsPublished: false };
  /** For messages of the session itself; undefined if no subscription takes them (no local). */
  ownView: View | undefined;

  constructor(topic: Topic, uncount: () => void) {
    this.topic = topic;
    this.uncount = uncount;
  }

  /** Adds a subscription, or takes changes of its options into account. */
  add(subscription: SessionSubscription): void {
    if (!this.subscriptions.includes(subscription)) this.subscriptions.push(subscription);
    this.#refresh();
  }

  /** Removes a subscription; false if there is no such. */
  remove(subscription: SessionSubscription): boolean {
    const at = this.subscriptions.indexOf(subscription);
    if (at < 0) return false;
    this.subscriptions.splice(at, 1);
    this.#refresh();
    return true;
  }

  #refresh(): void {
    this.view = toView(this.subscriptions);
    const remote = this.subscriptions.filter(({ options }) => !options.noLocal);
    if (remote.length === this.subscriptions.length) this.ownView = this.view;
    else this.ownView = remote.length === 0 ? undefined : toView(remote);
  }
}

/** The delivery of a message that matches these subscriptions. */
export function toView(subscriptions: readonly SessionSubscription[]): View {
  let qos: Qos = 0;
  let retainAsPublished = false;
  const ids: number[] = [];
  for (const { options } of subscriptions) {
    if (options.qos > qos) qos = options.qos;
    retainAsPublished ||= options.retainAsPublished;
    if (options.id !== undefined) ids.push(options.id);
  }
  return { qos, ids, retainAsPublished };
}
