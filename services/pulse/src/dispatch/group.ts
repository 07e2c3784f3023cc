// A consumer group on one topic: each message goes to one member, in turns, and again if that leaves without acknowledging.
import type { PartitionView } from "@platform/log";
import type { Message } from "../publish/message.ts";
import type { Topic } from "../topic/topics.ts";
import type { Feeds, Following, Stretch } from "./feed.ts";
import { OffsetRanges, type StoredRanges } from "./offset-ranges.ts";
import { PriorityQueue } from "./priority-queue.ts";
import { lookaheadMax, markGaps, type Sink } from "./subscription.ts";

const lookaheadBytesMax = 4 * 1024 * 1024;
/** Ranges of acknowledged messages above an unacknowledged one, at which no further messages are handed out. */
const rangesMax = 1_000;

/** One member. `prefetch` is how many messages it may hold unacknowledged. */
export type Member = { readonly held: Map<string, Message>; leave: () => void };

type Seat = Member & { sink: Sink; isManual: boolean; prefetch: number };

type Place = {
  partition: PartitionView;
  done: OffsetRanges;
  following: Following | undefined;
};

/** What a group tells its book. */
export type GroupListener = {
  /** Something was acknowledged: to be written down soon. */
  changed: (group: Group, partition: number) => void;
  /** A message went out. */
  taken: (message: Message) => void;
};

/** The group. Its cursors live as long as the broker knows the group, with members or without. */
export class Group {
  readonly tenant: string;
  readonly name: string;
  readonly topic: Topic;
  readonly #feeds: Feeds;
  readonly #listener: GroupListener;
  readonly #places: Place[] = [];
  readonly #queue = new PriorityQueue();
  readonly #seats: Seat[] = [];
  #turn = 0;
  #hadRoom = true;
  /** Monotonic ms at which the last member left; undefined while there are members. */
  emptySinceMs: number | undefined;

  constructor(
    identity: { tenant: string; name: string; topic: Topic },
    feeds: Feeds,
    listener: GroupListener,
    nowMs: number,
  ) {
    this.tenant = identity.tenant;
    this.name = identity.name;
    this.topic = identity.topic;
    this.#feeds = feeds;
    this.#listener = listener;
    this.emptySinceMs = nowMs;
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
  seek(partition: number, stored: StoredRanges): void {
    const view = this.topic.stored.partitions[partition]!;
    const before = this.#places[partition];
    if (before?.following !== undefined) this.#feeds.unfollow(view, before.following);
    this.#dropWaiting(partition);
    this.#places[partition] = {
      partition: view,
      done: new OffsetRanges(stored),
      following: undefined,
    };
    if (this.#seats.length > 0) this.#follow(this.#places[partition]);
    this.pump();
  }

  cursorOf(partition: number): StoredRanges | undefined {
    return this.#places[partition]?.done.toStored();
  }

  has(partition: number): boolean {
    return this.#places[partition] !== undefined;
  }

  isDone(partition: number, offset: number): boolean {
    return this.#places[partition]?.done.has(offset) ?? true;
  }

  /** Takes a member in. With `isManual` a message counts as acknowledged when `acknowledge` is called, else when sent. */
  join(sink: Sink, options: { isManual: boolean; prefetch: number }): Member {
    const seat: Seat = { held: new Map(), sink, ...options, leave: () => this.#leave(seat) };
    this.#seats.push(seat);
    this.emptySinceMs = undefined;
    if (this.#seats.length === 1) for (const place of this.#places) this.#follow(place);
    this.pump();
    return seat;
  }

  /** Acknowledges by message id or `partition:offset`; false if no member (or not this one) holds such a message. */
  acknowledge(id: string, member?: Member): boolean {
    const seats =
      member === undefined ? this.#seats : this.#seats.filter((seat) => seat === member);
    for (const seat of seats) {
      const message = take(seat.held, id);
      if (message === undefined) continue;
      this.#finish(message);
      this.pump();
      return true;
    }
    return false;
  }

  /** Takes a message back from the member that holds it: the next one in turn gets it. False if it holds none such. */
  giveBack(id: string, member: Member): boolean {
    const message = take(member.held, id);
    if (message === undefined) return false;
    this.#queue.putBack(message);
    this.pump();
    return true;
  }

  /** Acknowledges an expired message without a member. */
  expire(partition: number, offset: number): void {
    this.#queue.remove(partition, offset);
    for (const { held } of this.#seats) held.delete(`${partition}:${offset}`);
    this.#places[partition]?.done.add(offset);
  }

  /** Hands out what waits as long as members take it, in turns. */
  pump(): void {
    while (this.#queue.count > 0) {
      const seat = this.#nextSeat();
      if (seat === undefined) break;
      const message = this.#queue.shift()!;
      // A replay may have put the cursor past it.
      if (this.isDone(message.partition, message.offset)) continue;
      seat.held.set(placeOf(message), message);
      this.#listener.taken(message);
      seat.sink.send(message, () => {
        if (seat.isManual || !seat.held.delete(placeOf(message))) return;
        this.#finish(message);
      });
    }
    if (this.#hadRoom || !this.#hasRoom()) return;
    this.#hadRoom = true;
    for (const { partition, following } of this.#places) {
      if (following !== undefined) this.#feeds.resume(partition, following);
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
    for (const message of seat.held.values()) this.#queue.putBack(message);
    seat.held.clear();
    if (this.#seats.length > 0) {
      this.pump();
      return;
    }
    this.emptySinceMs = performance.now();
    this.#queue.clear();
    // Nobody is there to read for; the next member begins at the cursor again.
    for (const place of this.#places) {
      if (place.following !== undefined) this.#feeds.unfollow(place.partition, place.following);
      place.following = undefined;
    }
  }

  #follow(place: Place): void {
    const { partition, done } = place;
    done.raise(partition.logStart);
    place.following = this.#feeds.follow(this.topic, partition, done.low, {
      hasRoom: () => this.#hasRoom(),
      offer: (_topic, _partition, stretch) => {
        if (this.#places[partition.index] === place) this.#offer(place, stretch);
      },
      lose: () => this.end(),
    });
  }

  #offer({ done }: Place, { from, to, messages }: Stretch): void {
    markGaps(done, from, to, messages);
    for (const message of messages) if (!done.has(message.offset)) this.#queue.push(message);
    this.pump();
  }

  #hasRoom(): boolean {
    const hasRoom =
      this.#queue.count < lookaheadMax &&
      this.#queue.bytes < lookaheadBytesMax &&
      this.#places.every(({ done }) => done.rangeCount < rangesMax);
    if (!hasRoom) this.#hadRoom = false;
    return hasRoom;
  }

  #finish(message: Message): void {
    this.#places[message.partition]?.done.add(message.offset);
    this.#listener.changed(this, message.partition);
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
    for (const { held } of this.#seats) {
      for (const [key, message] of held) if (message.partition === partition) held.delete(key);
    }
  }
}

function placeOf({ partition, offset }: Message): string {
  return `${partition}:${offset}`;
}

/** Takes a message out by its place or its id. */
function take(held: Map<string, Message>, id: string): Message | undefined {
  const message = held.get(id) ?? held.values().find((one) => one.id === id);
  if (message !== undefined) held.delete(placeOf(message));
  return message;
}
