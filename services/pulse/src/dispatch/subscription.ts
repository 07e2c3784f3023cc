// A plain subscription: every message of a topic, or of all topics that match a pattern, from a position on.
import type { PartitionView } from "@platform/log";
import type { Message } from "../message/message.ts";
import type { Topic, Topics } from "../topic/topics.ts";
import type { Backlog } from "./backlog.ts";
import type { Feeds, Following, FeedBatch } from "./feed.ts";
import { OffsetRanges } from "../store/offset-ranges.ts";
import {
  FollowedTopics,
  type FollowAccount,
  type FollowedTopicsLimits,
} from "./followed-topics.ts";
import { PriorityQueue } from "./priority-queue.ts";
import type { ReadAhead } from "./read-ahead.ts";
import { TopicPatterns, type PatternRequest } from "./topic-patterns.ts";
import { Turns } from "./turns.ts";

/** Maximum number of messages read ahead to find higher priorities. */
export const LOOKAHEAD_MAX = 10_000;
/** Reason of the end of a subscription whose topic was deleted. */
export const TOPIC_DELETED = "the topic was deleted";
/** Maximum bytes of the messages read ahead. */
const LOOKAHEAD_BYTES_MAX = 4 * 1024 * 1024;
/** Longest position of a pattern subscription; clients return it as a request header. */
const POSITION_TEXT_MAX = 10_000;
/** Topics whose position is reported with each message of a pattern subscription, on average. */
const TOPICS_PER_EVENT = 8;

/** Start offsets by partition: -1 for the log start, `undefined` for new messages only. */
export type StartAt = (topic: Topic, partition: PartitionView) => number | undefined;

/** The receiver of messages. */
export interface Sink {
  /** True if the connection accepts more messages. When that becomes true again, it calls `pump`. */
  canSend: () => boolean;
  /** The byte count of what was read for the connection and not yet sent. */
  readonly readAhead: ReadAhead;
  /** Sends a message; calls `done` when it was handed to the network. */
  send: (message: Message, done: () => void) => void;
  /** Called when the topic was deleted; no further messages follow. */
  end: (reason: string) => void;
}

interface Place {
  topic: Topic;
  partition: PartitionView;
  following: Following;
  done: OffsetRanges;
}

/** An open subscription, and what ends it. */
export interface OpenedSubscription {
  subscription: Subscription;
  close: () => void;
}

/** The queue and positions of one subscriber. */
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

  /** Follows the partitions that a topic has gained, from their start. */
  addNewPartitions(topic: Topic): void {
    const places = this.#places.get(topic);
    if (places === undefined) return;
    for (const partition of topic.stored.partitions.slice(places.length)) {
      this.#addPartition(topic, partition, () => 0);
    }
  }

  /**
   * The position from which a new subscription misses nothing: `partition:offset`, comma separated; for a pattern `*`
   * followed by `topic:partition:offset` with the first eight hex digits of topic ids. For patterns over many topics it is
   * reported only with some messages, and is `undefined` if it would be too long.
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

  /** The position before the next message, in the form of `positionAfter`. */
  position(): string | undefined {
    if (this.#isPattern) return this.#positionOfAll();
    const [places = []] = this.#places.values();
    return places.map(({ partition, done }) => `${partition.index}:${done.low - 1}`).join(",");
  }

  /** Sends waiting messages while the sink accepts them. */
  pump(): void {
    while (!this.#isClosed && this.#sink.canSend()) {
      const message = this.#queue.shift();
      if (message === undefined) break;
      const place = this.#places.get(message.topic)?.[message.partition];
      if (place === undefined) continue;
      place.done.add(message.offset);
      // The message expired while it waited; `expiry.ts` writes its dead letter.
      if (message.expiresAt !== undefined && message.expiresAt <= Date.now()) continue;
      this.#sink.send(message, () => {
        this.#backlog.noteConsumed(message.topic, message.partition, place.done.low);
      });
    }
    this.#sink.readAhead.countQueued(this.#queue.bytes);
    if (this.#hadRoom || !this.#hasRoom()) return;
    this.#hadRoom = true;
    for (const places of this.#places.values()) {
      for (const { partition, following } of places) this.#feeds.resume(partition, following);
    }
  }

  close(): void {
    this.#isClosed = true;
    this.#queue.clear();
    this.#sink.readAhead.countQueued(0);
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
      readAhead: () => this.#sink.readAhead,
      canSend: () => this.#queue.count === 0 && this.#sink.canSend(),
      rest: () => {
        this.#hadRoom = false;
      },
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
    if (!this.#isPattern) this.#sink.end(TOPIC_DELETED);
  }
}

/** The first eight hex digits of a topic's id, which distinguish a client's topics, also from deleted ones of the same name. */
export function shortId(topic: Topic): string {
  return topic.stored.id.toString("hex", 0, 4);
}

/** Marks the offsets of a batch that have no message as complete. */
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

/** All plain subscriptions; those on patterns also follow new topics. */
export class Subscriptions {
  /** Counts of the topics that subscriptions of all kinds follow. */
  readonly followed: FollowedTopics;
  readonly turns = new Turns();
  readonly patterns: TopicPatterns;
  readonly #feeds: Feeds;
  readonly #backlog: Backlog;
  readonly #byTopic = new Map<Topic, number>();
  readonly #open = new Set<Subscription>();

  constructor(feeds: Feeds, topics: Topics, backlog: Backlog, limits: FollowedTopicsLimits) {
    this.#feeds = feeds;
    this.#backlog = backlog;
    this.followed = new FollowedTopics(limits);
    this.patterns = new TopicPatterns(topics, this.turns);
    topics.watch({
      grown: (topic) => this.#open.forEach((open) => open.addNewPartitions(topic)),
    });
  }

  get count(): number {
    return this.#open.size;
  }

  /** Number of plain subscribers of a topic, including those on patterns. */
  countOf(topic: Topic): number {
    return this.#byTopic.get(topic) ?? 0;
  }

  /** Subscribes to one topic. Throws the error of the account if it has no room. */
  open(topic: Topic, startAt: StartAt, sink: Sink, account: FollowAccount): OpenedSubscription {
    account.take(1);
    const subscription = new Subscription(this.#feeds, this.#backlog, sink, false);
    subscription.add(topic, startAt);
    this.#change(topic, 1);
    this.#open.add(subscription);
    let isOpen = true;
    return {
      subscription,
      close: () => {
        if (!isOpen) return;
        isOpen = false;
        account.give(1);
        subscription.close();
        this.#change(topic, -1);
        this.#open.delete(subscription);
      },
    };
  }

  /**
   * Subscribes to all selected topics of a pattern, including later ones, whose first message is the first one that it
   * receives. Throws as `TopicPatterns.follow` does.
   */
  async openPattern(
    request: PatternRequest,
    startAt: StartAt,
    sink: Sink,
  ): Promise<OpenedSubscription> {
    const subscription = new Subscription(this.#feeds, this.#backlog, sink, true);
    this.#open.add(subscription);
    const added = new Set<Topic>();
    const end = (): void => {
      subscription.close();
      this.#open.delete(subscription);
    };
    try {
      const unfollow = await this.patterns.follow(request, {
        add: (topic, isNew) => {
          subscription.add(topic, isNew ? () => 0 : startAt);
          added.add(topic);
          this.#change(topic, 1);
        },
        remove: (topic) => {
          if (added.delete(topic)) this.#change(topic, -1);
        },
        exceed: ({ detail }) => sink.end(detail),
      });
      const close = (): void => {
        end();
        unfollow();
      };
      return { subscription, close };
    } catch (error) {
      end();
      throw error;
    }
  }

  /** Counts a reader of a topic that has no `Subscription`, until the returned function is called. */
  countReader(topic: Topic): () => void {
    this.#change(topic, 1);
    return () => this.#change(topic, -1);
  }

  #change(topic: Topic, change: number): void {
    const count = (this.#byTopic.get(topic) ?? 0) + change;
    if (count === 0) this.#byTopic.delete(topic);
    else this.#byTopic.set(topic, count);
  }
}
