// A plain subscription: every message of one topic, or of all that a pattern matches, from a place on.
import type { PartitionView } from "@platform/log";
import type { Message } from "../message.ts";
import type { Topic, Topics } from "../topic/topics.ts";
import type { Backlog } from "./backlog.ts";
import type { Feeds, Following, FeedBatch } from "./feed.ts";
import { OffsetRanges } from "../store/offset-ranges.ts";
import { PriorityQueue } from "./priority-queue.ts";

/** Messages that a subscription looks ahead for higher priorities, and their bytes. */
export const LOOKAHEAD_MAX = 10_000;
const LOOKAHEAD_BYTES_MAX = 4 * 1024 * 1024;
/** Longest position of a pattern's subscription; it comes back as a header of a request. */
const POSITION_TEXT_MAX = 10_000;
/** Topics of which a pattern's subscription tells the position with each message, on average. */
const TOPICS_PER_EVENT = 8;

/** Where to begin: offsets by partition, -1 for the log's start, undefined for what comes from now on. */
export type StartAt = (topic: Topic, partition: PartitionView) => number | undefined;

/** Where messages go. */
export interface Sink {
  /** Whether the connection takes more at the moment; when it does again, it calls `pump`. */
  canSend: () => boolean;
  /** `done` is called when the message has left for the network. */
  send: (message: Message, done: () => void) => void;
  /** The topic is gone; nothing more will come. */
  end: (reason: string) => void;
}

interface Place {
  topic: Topic;
  partition: PartitionView;
  following: Following;
  done: OffsetRanges;
}

/** One subscriber's queue and places. */
export class Subscription {
  readonly #feeds: Feeds;
  readonly #backlog: Backlog;
  readonly #sink: Sink;
  readonly #queue = new PriorityQueue();
  readonly #places = new Map<Topic, Place[]>();
  readonly #isPattern: boolean;
  #hadRoom = true;
  #isClosed = false;
  #sentSincePosition = Number.POSITIVE_INFINITY;

  constructor(feeds: Feeds, backlog: Backlog, sink: Sink, isPattern: boolean) {
    this.#feeds = feeds;
    this.#backlog = backlog;
    this.#sink = sink;
    this.#isPattern = isPattern;
  }

  /** Adds a topic. */
  add(topic: Topic, startAt: StartAt): void {
    if (this.#places.has(topic) || this.#isClosed) return;
    const places: Place[] = [];
    this.#places.set(topic, places);
    for (const partition of topic.stored.partitions) this.#addPartition(topic, partition, startAt);
  }

  /** Partitions of a topic may have been added; those are followed from their beginning. */
  addNewPartitions(): void {
    for (const [topic, places] of this.#places) {
      for (const partition of topic.stored.partitions.slice(places.length)) {
        this.#addPartition(topic, partition, () => 0);
      }
    }
  }

  /**
   * Where a new subscription would have to go on so that nothing is missed: `partition:offset`, comma separated; for
   * a pattern `*` and then `topic:partition:offset` with the first eight hex digits of topics' ids. A pattern over many
   * topics tells it with some messages only, and not at all where it would be too long: undefined.
   */
  positionAfter(message: Message): string | undefined {
    if (this.#isPattern) return this.#positionOfAll();
    const places = this.#places.get(message.topic) ?? [];
    const own = `${message.partition}:${places[message.partition]!.done.low - 1}`;
    if (places.length === 1) return own;
    const others = places
      .filter(({ partition }) => partition.index !== message.partition)
      .map(({ partition, done }) => `${partition.index}:${done.low - 1}`);
    return [own, ...others].join(",");
  }

  /** Sends what waits as long as the sink takes it. */
  pump(): void {
    while (!this.#isClosed && this.#sink.canSend()) {
      const message = this.#queue.shift();
      if (message === undefined) break;
      const place = this.#places.get(message.topic)?.[message.partition];
      if (place === undefined) continue;
      place.done.add(message.offset);
      // It waited here for too long; its dead letter is the expiry's business.
      if (message.expiresAt !== undefined && message.expiresAt <= Date.now()) continue;
      this.#sink.send(message, () => {
        this.#backlog.noteConsumed(message.topic, message.partition, place.done.low);
      });
    }
    if (this.#hadRoom || !this.#hasRoom()) return;
    this.#hadRoom = true;
    for (const places of this.#places.values()) {
      for (const { partition, following } of places) this.#feeds.resume(partition, following);
    }
  }

  close(): void {
    this.#isClosed = true;
    this.#queue.clear();
    for (const places of this.#places.values()) {
      for (const { partition, following } of places) this.#feeds.unfollow(partition, following);
    }
    this.#places.clear();
  }

  #positionOfAll(): string | undefined {
    this.#sentSincePosition++;
    if (this.#sentSincePosition < this.#places.size / TOPICS_PER_EVENT) return undefined;
    this.#sentSincePosition = 0;
    let text = "";
    for (const [topic, places] of this.#places) {
      for (const { partition, done } of places) {
        text += `${text === "" ? "*" : ","}${shortId(topic)}:${partition.index}:${done.low - 1}`;
      }
      if (text.length > POSITION_TEXT_MAX) return undefined;
    }
    return text;
  }

  #addPartition(topic: Topic, partition: PartitionView, startAt: StartAt): void {
    const places = this.#places.get(topic)!;
    const asked = startAt(topic, partition) ?? partition.durableEnd;
    const from = Math.min(Math.max(asked, partition.logStart), partition.durableEnd);
    const done = new OffsetRanges({ low: from, ranges: [] });
    const follower = {
      hasRoom: () => this.#hasRoom(),
      offer: (_topic: Topic, _partition: number, batch: FeedBatch) => this.#offer(done, batch),
      lose: () => this.#lose(topic),
    };
    const following = this.#feeds.follow(topic, partition, from, follower);
    places.push({ topic, partition, done, following });
  }

  #hasRoom(): boolean {
    const hasRoom = this.#queue.count < LOOKAHEAD_MAX && this.#queue.bytes < LOOKAHEAD_BYTES_MAX;
    if (!hasRoom) this.#hadRoom = false;
    return hasRoom;
  }

  #offer(done: OffsetRanges, { from, to, messages }: FeedBatch): void {
    markGaps(done, from, to, messages);
    const now = Date.now();
    for (const message of messages) {
      if (message.expiresAt !== undefined && message.expiresAt <= now) done.add(message.offset);
      else this.#queue.push(message);
    }
    this.pump();
  }

  #lose(topic: Topic): void {
    this.#places.delete(topic);
    if (!this.#isPattern) this.#sink.end("the topic was deleted");
  }
}

/** The first eight hex digits of a topic's id: enough to tell a client's topics apart, and new ones of an old name. */
export function shortId(topic: Topic): string {
  return topic.stored.id.toString("hex", 0, 4);
}

/** Marks the offsets of a stretch that hold no message as done. */
export function markGaps(
  done: OffsetRanges,
  from: number,
  to: number,
  messages: readonly Message[],
): void {
  if (messages.length === to - from) return;
  let next = from;
  for (const { offset } of messages) {
    for (; next < offset; next++) done.add(next);
    next = offset + 1;
  }
  for (; next < to; next++) done.add(next);
}

/** The plain subscriptions, those on patterns hearing of topics that come. */
export class Subscriptions {
  readonly #feeds: Feeds;
  readonly #topics: Topics;
  readonly #backlog: Backlog;
  readonly #byTopic = new Map<Topic, number>();
  #count = 0;

  constructor(feeds: Feeds, topics: Topics, backlog: Backlog) {
    this.#feeds = feeds;
    this.#topics = topics;
    this.#backlog = backlog;
  }

  get count(): number {
    return this.#count;
  }

  /** Plain subscribers of a topic, those on patterns included. */
  countOf(topic: Topic): number {
    return this.#byTopic.get(topic) ?? 0;
  }

  /** Subscribes to one topic. */
  open(topic: Topic, startAt: StartAt, sink: Sink): { subscription: Subscription; close(): void } {
    const subscription = new Subscription(this.#feeds, this.#backlog, sink, false);
    subscription.add(topic, startAt);
    this.#change(topic, 1);
    this.#count++;
    return {
      subscription,
      close: () => {
        subscription.close();
        this.#change(topic, -1);
        this.#count--;
      },
    };
  }

  /** Subscribes to all topics of a tenant that match, those to come included. Dead letters never match. */
  openPattern(
    tenant: string,
    matches: (name: string) => boolean,
    startAt: StartAt,
    sink: Sink,
  ): { subscription: Subscription; close(): void } {
    const subscription = new Subscription(this.#feeds, this.#backlog, sink, true);
    const added = new Set<Topic>();
    const add = (topic: Topic, at: StartAt) => {
      if (topic.tenant !== tenant || !matches(topic.name)) return;
      subscription.add(topic, at);
      added.add(topic);
      this.#change(topic, 1);
    };
    for (const topic of this.#topics.list(tenant)) add(topic, startAt);
    // A topic that is made later is new altogether: its first message counts.
    const unwatch = this.#topics.watch({ created: (topic) => add(topic, () => 0) });
    this.#count++;
    return {
      subscription,
      close: () => {
        unwatch();
        subscription.close();
        for (const topic of added) this.#change(topic, -1);
        this.#count--;
      },
    };
  }

  #change(topic: Topic, change: number): void {
    const count = (this.#byTopic.get(topic) ?? 0) + change;
    if (count === 0) this.#byTopic.delete(topic);
    else this.#byTopic.set(topic, count);
  }
}
