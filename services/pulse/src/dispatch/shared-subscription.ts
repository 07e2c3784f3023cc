// A shared subscription to one topic: each message goes to one member in turn, and to another one if it is not acknowledged.
import type { Clock } from "@platform/kernel/time";
import type { PartitionView } from "@platform/log";
import { isAt, placeOf, type Message } from "../message/message.ts";
import type { Topic } from "../topic/topics.ts";
import type { Feeds, Following, FeedBatch } from "./feed.ts";
import { OffsetRanges, type StoredRanges } from "../store/offset-ranges.ts";
import {
  canTake,
  type GroupMember,
  type MemberHandle,
  type MemberOptions,
} from "./group-member.ts";
import { PriorityQueue } from "./priority-queue.ts";
import {
  computeBackoffMs,
  FailedDeliveries,
  PostponedMessages,
  type RedeliverySettings,
  type StoredFailures,
} from "./redelivery.ts";
import { LOOKAHEAD_MAX, markGaps, TOPIC_DELETED, type Sink } from "./subscription.ts";

const LOOKAHEAD_BYTES_MAX = 4 * 1024 * 1024;
/** Ranges of acknowledged messages above an unacknowledged one, at which delivery pauses. */
const RANGES_MAX = 1_000;

interface Place {
  partition: PartitionView;
  done: OffsetRanges;
  failures: FailedDeliveries;
  following: Following | undefined;
}

/** Events of a shared subscription. */
export interface SharedSubscriptionListener {
  /** A message was acknowledged or a delivery failed: the state should be saved soon. */
  changed: (group: SharedSubscription, partition: number) => void;
  /** A message was delivered. */
  consumed: (message: Message) => void;
  /** A message has failed too often: call `bury` when it has become a dead letter, otherwise `retryLater`. */
  exhausted: (group: SharedSubscription, message: Message, failures: number) => void;
  /** `tick` must be called until it returns false. */
  pending: (group: SharedSubscription) => void;
}

/** Options shared by all subscriptions. */
export interface SharedSubscriptionOptions {
  feeds: Feeds;
  clock: Clock;
  redelivery: RedeliverySettings;
  listener: SharedSubscriptionListener;
}

/** A shared subscription. Its cursors exist as long as the group, with or without members. */
export class SharedSubscription {
  readonly tenant: string;
  readonly name: string;
  readonly topic: Topic;
  readonly #options: SharedSubscriptionOptions;
  readonly #places = new Map<number, Place>();
  readonly #queue = new PriorityQueue();
  readonly #postponed = new PostponedMessages();
  readonly #members: GroupMember[] = [];
  #turn = 0;
  #hadRoom = true;
  #isPending = false;
  /** Monotonic ms at which the last member left; `undefined` while there are members. */
  emptySinceMs: number | undefined;

  constructor(
    identity: { tenant: string; name: string; topic: Topic },
    options: SharedSubscriptionOptions,
  ) {
    this.tenant = identity.tenant;
    this.name = identity.name;
    this.topic = identity.topic;
    this.#options = options;
    this.emptySinceMs = options.clock.monotonicMs();
  }

  get memberCount(): number {
    return this.#members.length;
  }

  /** Number of unacknowledged messages, delivered or not. */
  countBacklog(): number {
    let count = 0;
    for (const { partition, done } of this.#places.values()) {
      done.raise(partition.logStart);
      count += done.countLeft(partition.durableEnd);
    }
    return count;
  }

  /** Sets the position in a partition: of a new group, of a restored one, or for a replay. */
  seek(partition: number, stored: StoredRanges, failures: StoredFailures = []): void {
    const view = this.topic.stored.partitions[partition]!;
    const before = this.#places.get(partition);
    if (before?.following !== undefined) this.#options.feeds.unfollow(view, before.following);
    this.#dropWaiting(partition);
    const place: Place = {
      partition: view,
      done: new OffsetRanges(stored),
      failures: new FailedDeliveries(failures),
      following: undefined,
    };
    this.#places.set(partition, place);
    if (this.#members.length > 0) this.#follow(place);
    this.pump();
  }

  cursorOf(partition: number): StoredRanges | undefined {
    return this.#places.get(partition)?.done.toStored();
  }

  /** Failed deliveries in a partition. */
  failuresOf(partition: number): FailedDeliveries | undefined {
    return this.#places.get(partition)?.failures;
  }

  has(partition: number): boolean {
    return this.#places.get(partition) !== undefined;
  }

  isDone(partition: number, offset: number): boolean {
    return this.#places.get(partition)?.done.has(offset) ?? true;
  }

  /** Adds a member. */
  join(sink: Sink, options: MemberOptions): MemberHandle {
    const member: GroupMember = {
      held: new Map(),
      sink,
      ...options,
      leave: () => this.#leave(member),
    };
    this.#members.push(member);
    this.emptySinceMs = undefined;
    if (this.#members.length === 1) for (const place of this.#places.values()) this.#follow(place);
    this.pump();
    return member;
  }

  /** Acknowledges by message id or `partition:offset`; false if no member (or not the given one) holds the message. */
  acknowledge(id: string, membership?: MemberHandle): boolean {
    const message = this.#takeFrom(membership, id);
    if (message === undefined) return false;
    this.#finish(message.partition, message.offset);
    this.pump();
    return true;
  }

  /**
   * Handles a negative acknowledgement: the next member gets the message after a delay, until it has failed too often.
   * False if no member (or not the given one) holds the message.
   */
  giveBack(id: string, membership?: MemberHandle): boolean {
    const message = this.#takeFrom(membership, id);
    if (message === undefined) return false;
    this.#fail(message, true);
    this.pump();
    return true;
  }

  /** Acknowledges an expired message. */
  expire(partition: number, offset: number): void {
    this.#queue.remove(partition, offset);
    this.#postponed.remove((message) => isAt(message, partition, offset));
    for (const { held } of this.#members) held.delete(`${partition}:${offset}`);
    this.#places.get(partition)?.done.add(offset);
    this.#places.get(partition)?.failures.forget(offset);
  }

  /** An exhausted message has become a dead letter. */
  bury(message: Message): void {
    this.#postponed.remove((other) => isAt(other, message.partition, message.offset));
    this.#finish(message.partition, message.offset);
    this.pump();
  }

  /** An exhausted message could not become a dead letter: it is delivered again after the longest delay. */
  retryLater(message: Message): void {
    const place = this.#places.get(message.partition);
    if (place === undefined || place.done.has(message.offset)) return;
    this.#postponed.remove((other) => isAt(other, message.partition, message.offset));
    this.#postpone(place, message, this.#options.redelivery.backoffMsMax);
  }

  /** Redelivers due messages and those that were not acknowledged in time; false if no work is left. */
  tick(nowMs: number): boolean {
    const due = this.#postponed.takeDue(nowMs);
    for (const message of due) this.#queue.putBack(message);
    let isHeld = false;
    for (const { held, isManual } of this.#members) {
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

  /** Delivers waiting messages to members in turn while they accept them. */
  pump(): void {
    const { listener } = this.#options;
    while (this.#queue.count > 0) {
      const member = this.#nextMember();
      if (member === undefined) break;
      const message = this.#queue.shift()!;
      const { partition, offset } = message;
      const place = this.#places.get(partition);
      // A replay may have moved the cursor past it.
      if (place === undefined || place.done.has(offset)) continue;
      this.#hold(member, message);
      listener.consumed(message);
      const failures = place.failures.countOf(offset);
      const delivered =
        failures === 0 ? message : { ...message, retryCount: message.retryCount + failures };
      member.sink.send(delivered, () => {
        if (!member.isManual && member.held.delete(placeOf(message)))
          this.#finish(partition, offset);
      });
    }
    this.#members[0]?.sink.readAhead.countQueued(this.#queue.bytes);
    if (this.#hadRoom || !this.#hasRoom()) return;
    this.#hadRoom = true;
    for (const { partition, following } of this.#places.values()) {
      if (following !== undefined) this.#options.feeds.resume(partition, following);
    }
  }

  /** True if a member has not acknowledged a message, by `partition:offset`. */
  isHeldBy(member: MemberHandle, place: string): boolean {
    return this.#members.find((other) => other === member)?.held.has(place) === true;
  }

  /** Ends the subscription for all members. */
  end(reason: string): void {
    for (const { sink } of Array.from(this.#members)) sink.end(reason);
  }

  #leave(member: GroupMember): void {
    const at = this.#members.indexOf(member);
    if (at < 0) return;
    this.#members.splice(at, 1);
    // The queue counts for the first member.
    member.sink.readAhead.countQueued(0);
    const left = Array.from(member.held.values(), ({ message }) => message);
    member.held.clear();
    for (const message of left) {
      if (member.isManual) this.#fail(message, false);
      else this.#queue.putBack(message);
    }
    if (this.#members.length > 0) {
      this.pump();
      return;
    }
    this.emptySinceMs = this.#options.clock.monotonicMs();
    this.#queue.clear();
    this.#postponed.clear();
    // Without members nothing is read; the next member starts at the cursor.
    for (const place of this.#places.values()) {
      if (place.following !== undefined) {
        this.#options.feeds.unfollow(place.partition, place.following);
      }
      place.following = undefined;
    }
  }

  #follow(place: Place): void {
    const { partition, done, failures } = place;
    done.raise(partition.logStart);
    failures.forgetBelow(done.low);
    place.following = this.#options.feeds.follow(this.topic, partition, done.low, {
      hasRoom: () => this.#hasRoom(),
      readAhead: () => this.#members[0]!.sink.readAhead,
      canSend: () => this.#queue.count === 0 && this.#members.some(canTake),
      rest: () => void (this.#hadRoom = false),
      offer: (_topic, _partition, batch) => {
        if (this.#places.get(partition.index) === place) this.#offer(place, batch);
      },
      lose: () => this.end(TOPIC_DELETED),
    });
  }

  #offer({ done, failures }: Place, { from, to, messages }: FeedBatch): void {
    markGaps(done, from, to, messages);
    const nowMs = this.#options.clock.monotonicMs();
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
      this.#queue.count + this.#postponed.count < LOOKAHEAD_MAX &&
      this.#queue.bytes + this.#postponed.bytes < LOOKAHEAD_BYTES_MAX &&
      this.#places.values().every(({ done }) => done.rangeCount < RANGES_MAX);
    if (!hasRoom) this.#hadRoom = false;
    return hasRoom;
  }

  #finish(partition: number, offset: number): void {
    const place = this.#places.get(partition);
    if (place === undefined) return;
    place.done.add(offset);
    place.failures.forget(offset);
    this.#options.listener.changed(this, partition);
  }

  #hold(member: GroupMember, message: Message): void {
    const deadlineMs = member.isManual ? this.#options.clock.monotonicMs() + member.ackWaitMs : 0;
    member.held.set(placeOf(message), { message, deadlineMs });
    if (member.isManual) this.#markPending();
  }

  /** Counts a failed delivery and schedules the next one, unless it was the last. */
  #fail(message: Message, isDelayed: boolean): void {
    const { offset, partition } = message;
    const place = this.#places.get(partition);
    if (place === undefined || place.done.has(offset)) return;
    const { redelivery, listener } = this.#options;
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
    const dueMs = this.#options.clock.monotonicMs() + waitMs;
    failures.postpone(message.offset, dueMs);
    // Without members the message is read again later.
    if (this.#members.length > 0) this.#wait(message, dueMs);
  }

  #wait(message: Message, dueMs: number): void {
    this.#postponed.add(message, dueMs);
    this.#markPending();
  }

  #markPending(): void {
    if (this.#isPending) return;
    this.#isPending = true;
    this.#options.listener.pending(this);
  }

  /** Removes a message from the member that holds it, by position or id. */
  #takeFrom(membership: MemberHandle | undefined, id: string): Message | undefined {
    for (const member of this.#members) {
      if (membership !== undefined && member !== membership) continue;
      const found =
        member.held.get(id) ?? member.held.values().find(({ message }) => message.id === id);
      if (found === undefined) continue;
      member.held.delete(placeOf(found.message));
      return found.message;
    }
    return undefined;
  }

  #nextMember(): GroupMember | undefined {
    for (let step = 0; step < this.#members.length; step++) {
      const at = (this.#turn + step) % this.#members.length;
      const member = this.#members[at]!;
      if (!canTake(member)) continue;
      this.#turn = at + 1;
      return member;
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
    for (const { held } of this.#members) {
      for (const [key, { message }] of held) if (message.partition === partition) held.delete(key);
    }
  }
}
