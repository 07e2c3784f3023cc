// A consumer group on one topic: each message goes to one member, in turns, and again if that does not acknowledge it.
import type { Clock } from "@platform/kernel/time";
import type { PartitionView } from "@platform/log";
import type { Message } from "../message.ts";
import type { Topic } from "../topic/topics.ts";
import type { Feeds, Following, Stretch } from "./feed.ts";
import { OffsetRanges, type StoredRanges } from "../store/offset-ranges.ts";
import { PriorityQueue } from "./priority-queue.ts";
import {
  computeBackoffMs,
  FailedDeliveries,
  PostponedMessages,
  type RedeliverySettings,
  type StoredFailures,
} from "./redelivery.ts";
import { lookaheadMax, markGaps, type Sink } from "./subscription.ts";

const lookaheadBytesMax = 4 * 1024 * 1024;
/** Ranges of acknowledged messages above an unacknowledged one, at which no further messages are handed out. */
const rangesMax = 1_000;

/** One member. */
export type Member = { leave: () => void };

/** How a member takes messages. */
export type MemberOptions = {
  /** A message counts as acknowledged when `acknowledge` is called, else when it has been sent. */
  isManual: boolean;
  /** Messages that it may hold unacknowledged. */
  prefetch: number;
  /** With `isManual`: a message that is not acknowledged for this time is taken back, in ms. */
  ackWaitMs: number;
};

type Held = { message: Message; deadlineMs: number };

/** `held` is in the order of deliveries, and so of deadlines. */
type Seat = Member & MemberOptions & { sink: Sink; held: Map<string, Held> };

type Place = {
  partition: PartitionView;
  done: OffsetRanges;
  failures: FailedDeliveries;
  following: Following | undefined;
};

/** What a group tells its book. */
export type GroupListener = {
  /** Something was acknowledged, or a delivery failed: to be written down soon. */
  changed: (group: Group, partition: number) => void;
  /** A message went out. */
  taken: (message: Message) => void;
  /** A message has failed as often as it may: `bury` when it has become a dead letter, or `retryLater`. */
  exhausted: (group: Group, message: Message, failures: number) => void;
  /** `tick` has to be called until it returns false. */
  pending: (group: Group) => void;
};

/** The parts that all groups share. */
export type GroupParts = {
  feeds: Feeds;
  clock: Clock;
  redelivery: RedeliverySettings;
  listener: GroupListener;
};

/** The group. Its cursors live as long as the broker knows the group, with members or without. */
export class Group {
  readonly tenant: string;
  readonly name: string;
  readonly topic: Topic;
  readonly #parts: GroupParts;
  readonly #places: Place[] = [];
  readonly #queue = new PriorityQueue();
  readonly #postponed = new PostponedMessages();
  readonly #seats: Seat[] = [];
  #turn = 0;
  #hadRoom = true;
  #isPending = false;
  /** Monotonic ms at which the last member left; undefined while there are members. */
  emptySinceMs: number | undefined;

  constructor(identity: { tenant: string; name: string; topic: Topic }, parts: GroupParts) {
    this.tenant = identity.tenant;
    this.name = identity.name;
    this.topic = identity.topic;
    this.#parts = parts;
    this.emptySinceMs = parts.clock.monotonicMs();
  }

  get memberCount(): number {
    return this.#seats.length;
  }

  /** Messages that are not acknowledged, delivered or not. */
  countBacklog(): number {
    let count = 0;
    for (const { partition, done } of this.#places) {
      done.raise(partition.logStart);
      count += done.countLeft(partition.durableEnd);
    }
    return count;
  }

  /** Sets where a partition goes on; for a new group, one that was read back, and a replay. */
  seek(partition: number, stored: StoredRanges, failures: StoredFailures = []): void {
    const view = this.topic.stored.partitions[partition]!;
    const before = this.#places[partition];
    if (before?.following !== undefined) this.#parts.feeds.unfollow(view, before.following);
    this.#dropWaiting(partition);
    this.#places[partition] = {
      partition: view,
      done: new OffsetRanges(stored),
      failures: new FailedDeliveries(failures),
      following: undefined,
    };
    if (this.#seats.length > 0) this.#follow(this.#places[partition]);
    this.pump();
  }

  cursorOf(partition: number): StoredRanges | undefined {
    return this.#places[partition]?.done.toStored();
  }

  /** The failed deliveries of a partition's messages. */
  failuresOf(partition: number): FailedDeliveries | undefined {
    return this.#places[partition]?.failures;
  }

  has(partition: number): boolean {
    return this.#places[partition] !== undefined;
  }

  isDone(partition: number, offset: number): boolean {
    return this.#places[partition]?.done.has(offset) ?? true;
  }

  /** Takes a member in. */
  join(sink: Sink, options: MemberOptions): Member {
    const seat: Seat = { held: new Map(), sink, ...options, leave: () => this.#leave(seat) };
    this.#seats.push(seat);
    this.emptySinceMs = undefined;
    if (this.#seats.length === 1) for (const place of this.#places) this.#follow(place);
    this.pump();
    return seat;
  }

  /** Acknowledges by message id or `partition:offset`; false if no member (or not this one) holds such a message. */
  acknowledge(id: string, member?: Member): boolean {
    const message = this.#takeFrom(member, id);
    if (message === undefined) return false;
    this.#finish(message.partition, message.offset);
    this.pump();
    return true;
  }

  /**
   * Takes a message back that a member could not handle: the next one in turn gets it after a back-off, until it has
   * failed too often. False if no member (or not this one) holds such a message.
   */
  giveBack(id: string, member?: Member): boolean {
    const message = this.#takeFrom(member, id);
    if (message === undefined) return false;
    this.#fail(message, true);
    this.pump();
    return true;
  }

  /** Acknowledges an expired message without a member. */
  expire(partition: number, offset: number): void {
    this.#queue.remove(partition, offset);
    this.#postponed.remove((message) => isAt(message, partition, offset));
    for (const { held } of this.#seats) held.delete(`${partition}:${offset}`);
    this.#places[partition]?.done.add(offset);
    this.#places[partition]?.failures.forget(offset);
  }

  /** A message that was given up has become a dead letter. */
  bury(message: Message): void {
    this.#postponed.remove((other) => isAt(other, message.partition, message.offset));
    this.#finish(message.partition, message.offset);
    this.pump();
  }

  /** A message that was given up could not become a dead letter: it is delivered again after the longest back-off. */
  retryLater(message: Message): void {
    const place = this.#places[message.partition];
    if (place === undefined || place.done.has(message.offset)) return;
    this.#postponed.remove((other) => isAt(other, message.partition, message.offset));
    this.#postpone(place, message, this.#parts.redelivery.backoffMsMax);
  }

  /** Delivers what is due again, and takes back what was not acknowledged in time; false when nothing is left to do. */
  tick(nowMs: number): boolean {
    const due = this.#postponed.takeDue(nowMs);
    for (const message of due) this.#queue.putBack(message);
    let isHeld = false;
    for (const { held, isManual } of this.#seats) {
      if (!isManual) continue;
      for (const [key, { message, deadlineMs }] of held) {
        if (deadlineMs > nowMs) break;
        held.delete(key);
        this.#fail(message, false);
      }
      isHeld ||= held.size > 0;
    }
    this.#isPending = isHeld || this.#postponed.count > 0;
    this.pump();
    return this.#isPending;
  }

  /** Hands out what waits as long as members take it, in turns. */
  pump(): void {
    const { listener } = this.#parts;
    while (this.#queue.count > 0) {
      const seat = this.#nextSeat();
      if (seat === undefined) break;
      const message = this.#queue.shift()!;
      const { partition, offset } = message;
      const place = this.#places[partition];
      // A replay may have put the cursor past it.
      if (place === undefined || place.done.has(offset)) continue;
      this.#hold(seat, message);
      listener.taken(message);
      const failures = place.failures.countOf(offset);
      const delivered =
        failures === 0 ? message : { ...message, retryCount: message.retryCount + failures };
      seat.sink.send(delivered, () => {
        if (!seat.isManual && seat.held.delete(placeOf(message))) this.#finish(partition, offset);
      });
    }
    if (this.#hadRoom || !this.#hasRoom()) return;
    this.#hadRoom = true;
    for (const { partition, following } of this.#places) {
      if (following !== undefined) this.#parts.feeds.resume(partition, following);
    }
  }

  /** The topic is gone. */
  end(): void {
    for (const { sink } of Array.from(this.#seats)) sink.end("the topic was deleted");
  }

  #leave(seat: Seat): void {
    const at = this.#seats.indexOf(seat);
    if (at < 0) return;
    this.#seats.splice(at, 1);
    const left = Array.from(seat.held.values(), ({ message }) => message);
    seat.held.clear();
    for (const message of left) {
      if (seat.isManual) this.#fail(message, false);
      else this.#queue.putBack(message);
    }
    if (this.#seats.length > 0) {
      this.pump();
      return;
    }
    this.emptySinceMs = this.#parts.clock.monotonicMs();
    this.#queue.clear();
    this.#postponed.clear();
    // Nobody is there to read for; the next member begins at the cursor again.
    for (const place of this.#places) {
      if (place.following !== undefined) {
        this.#parts.feeds.unfollow(place.partition, place.following);
      }
      place.following = undefined;
    }
  }

  #follow(place: Place): void {
    const { partition, done, failures } = place;
    done.raise(partition.logStart);
    failures.forgetBelow(done.low);
    place.following = this.#parts.feeds.follow(this.topic, partition, done.low, {
      hasRoom: () => this.#hasRoom(),
      offer: (_topic, _partition, stretch) => {
        if (this.#places[partition.index] === place) this.#offer(place, stretch);
      },
      lose: () => this.end(),
    });
  }

  #offer({ done, failures }: Place, { from, to, messages }: Stretch): void {
    markGaps(done, from, to, messages);
    const nowMs = this.#parts.clock.monotonicMs();
    for (const message of messages) {
      const { offset } = message;
      if (done.has(offset) || failures.isExhausted(offset)) continue;
      const dueMs = failures.dueMsOf(offset);
      if (dueMs > nowMs) this.#wait(message, dueMs);
      else this.#queue.push(message);
    }
    this.pump();
  }

  #hasRoom(): boolean {
    const hasRoom =
      this.#queue.count + this.#postponed.count < lookaheadMax &&
      this.#queue.bytes + this.#postponed.bytes < lookaheadBytesMax &&
      this.#places.every(({ done }) => done.rangeCount < rangesMax);
    if (!hasRoom) this.#hadRoom = false;
    return hasRoom;
  }

  #finish(partition: number, offset: number): void {
    const place = this.#places[partition];
    if (place === undefined) return;
    place.done.add(offset);
    place.failures.forget(offset);
    this.#parts.listener.changed(this, partition);
  }

  #hold(seat: Seat, message: Message): void {
    const deadlineMs = seat.isManual ? this.#parts.clock.monotonicMs() + seat.ackWaitMs : 0;
    seat.held.set(placeOf(message), { message, deadlineMs });
    if (seat.isManual) this.#markPending();
  }

  /** Counts a failed delivery: the message waits for its next one, or has had its last. */
  #fail(message: Message, isDelayed: boolean): void {
    const { offset, partition } = message;
    const place = this.#places[partition];
    if (place === undefined || place.done.has(offset)) return;
    const { redelivery, listener } = this.#parts;
    const failures = place.failures.add(offset);
    listener.changed(this, partition);
    if (redelivery.maxDeliveries > 0 && failures >= redelivery.maxDeliveries) {
      place.failures.exhaust(offset);
      this.#postponed.add(message, Number.POSITIVE_INFINITY);
      listener.exhausted(this, message, failures);
    } else if (isDelayed) {
      this.#postpone(place, message, computeBackoffMs(redelivery, failures));
    } else this.#queue.putBack(message);
  }

  #postpone({ failures }: Place, message: Message, waitMs: number): void {
    const dueMs = this.#parts.clock.monotonicMs() + waitMs;
    failures.postpone(message.offset, dueMs);
    // Without members the next one reads it again.
    if (this.#seats.length > 0) this.#wait(message, dueMs);
  }

  #wait(message: Message, dueMs: number): void {
    this.#postponed.add(message, dueMs);
    this.#markPending();
  }

  #markPending(): void {
    if (this.#isPending) return;
    this.#isPending = true;
    this.#parts.listener.pending(this);
  }

  /** Takes a message out of the hands of a member, or of whichever holds it, by its place or its id. */
  #takeFrom(member: Member | undefined, id: string): Message | undefined {
    for (const seat of this.#seats) {
      if (member !== undefined && seat !== member) continue;
      const found =
        seat.held.get(id) ?? seat.held.values().find(({ message }) => message.id === id);
      if (found === undefined) continue;
      seat.held.delete(placeOf(found.message));
      return found.message;
    }
    return undefined;
  }

  #nextSeat(): Seat | undefined {
    for (let step = 0; step < this.#seats.length; step++) {
      const at = (this.#turn + step) % this.#seats.length;
      const seat = this.#seats[at]!;
      if (seat.held.size >= seat.prefetch || !seat.sink.canSend()) continue;
      this.#turn = at + 1;
      return seat;
    }
    return undefined;
  }

  #dropWaiting(partition: number): void {
    const kept: Message[] = [];
    for (let message = this.#queue.shift(); message !== undefined; message = this.#queue.shift()) {
      if (message.partition !== partition) kept.push(message);
    }
    for (const message of kept) this.#queue.push(message);
    this.#postponed.remove((message) => message.partition === partition);
    for (const { held } of this.#seats) {
      for (const [key, { message }] of held) if (message.partition === partition) held.delete(key);
    }
  }
}

function placeOf({ partition, offset }: Message): string {
  return `${partition}:${offset}`;
}

function isAt(message: Message, partition: number, offset: number): boolean {
  return message.partition === partition && message.offset === offset;
}
