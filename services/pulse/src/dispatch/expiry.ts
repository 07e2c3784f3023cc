// Messages with a time to live: a message not consumed in time becomes a dead letter, durably and once.
import { every, type Clock, type RepeatingTimer } from "@platform/kernel/time";
import type { PartitionView } from "@platform/log";
import type { DeadLetterWriter } from "../deadletter/dead-letter-writer.ts";
import { toMessage } from "../message/message.ts";
import { readRecords } from "../store/read-records.ts";
import { readJson, type StateTable } from "../store/state.ts";
import { isColdError, type PendingRecord, type Store } from "../store/store.ts";
import type { Topic, Topics } from "../topic/topics.ts";
import type { Backlog } from "./backlog.ts";

/*
 * A partition with TTL messages has a state value ["ttl", topic, partition]: the lowest offset that may still expire, and
 * the expired ones above it. It is written with the first such message and with each dead letter, so a restart reads the
 * remaining messages from there on.
 */

/** The failure reason of expired messages. */
/** Reason of dead letters that have expired. */
export const EXPIRED_REASON = "message TTL expired";
/** Maximum number of dead letters in one entry. */
const EXPIRE_MAX = 500;
const RETRY_MS = 1_000;
/** Time until object storage that did not answer is asked again. */
const COLD_RETRY_MS = 5_000;
const TICK_MS = 20;
/** A partition without TTL messages is dropped after this time. */
const QUIET_MS = 60_000;

/** The shared subscriptions of a topic, as expiry needs them. */
export interface ExpiryGroups {
  /** True if every group has acknowledged the message; `undefined` if the topic has no groups. */
  isAcknowledged: (topic: Topic, partition: number, offset: number) => boolean | undefined;
  /** Acknowledges the message for every group. The returned records must be appended with its dead letter. */
  expire: (topic: Topic, partition: number, offset: number) => ExpiredForGroups;
}

/** Records to append with the dead letter, and a function to call when they are durable. */
export interface ExpiredForGroups {
  pendingRecords: PendingRecord[];
  apply: () => void;
}

interface StoredPlace {
  low: number;
  expired: number[];
}

interface Place {
  partition: PartitionView;
  waiting: Set<number>;
  /** Offsets being stored or expired: the saved position may not pass them. */
  underWay: Set<{ low: number }>;
  expired: Set<number>;
  /** True if the partition's state value is durable. */
  isMarked: boolean;
  markedAt: number;
  isUnsaved: boolean;
}

/** A TTL message being stored; call `settle` when it is durable, otherwise `release`. */
export interface ExpiringEntry {
  /** Records to append in the same entry. */
  pendingRecords: PendingRecord[];
  settle: (offset: number, expiresAt: number) => void;
  release: () => void;
}

interface Item {
  at: number;
  offset: number;
  place: Place;
}

/** Messages to load at a start, from an offset to below another. */
interface Loading {
  topic: Topic;
  place: Place;
  from: number;
  until: number;
}

interface ExpiryOptions {
  store: Store;
  state: StateTable;
  topics: Topics;
  backlog: Backlog;
  deadLetters: DeadLetterWriter;
  clock: Clock;
  onExpired: () => void;
  onError: (error: unknown) => void;
}

/** The TTL messages of all topics. */
export class Expiry {
  readonly #options: ExpiryOptions;
  readonly #places = new Map<PartitionView, Place>();
  /** A binary heap ordered by expiry time. */
  readonly #heap: Item[] = [];
  #groups: ExpiryGroups | undefined;
  #timer: RepeatingTimer | undefined;
  #isStopped = false;

  constructor(options: ExpiryOptions) {
    this.#options = options;
    options.topics.watch({ deleted: (topic) => this.#forget(topic) });
  }

  /** Loads the remaining TTL messages. */
  async open(): Promise<void> {
    const { state, topics, store } = this.#options;
    for (const { key, value } of state.take("ttl")) {
      const topic = topics.findByHexId(String(key[1]));
      const partition = topic?.stored.partitions[Number(key[2])];
      if (topic === undefined || partition === undefined) continue;
      const stored = readJson(value) as StoredPlace;
      const place = this.#makePlace(partition);
      place.isMarked = true;
      for (const offset of stored.expired) place.expired.add(offset);
      const from = Math.max(partition.logStart, Math.min(stored.low, partition.durableEnd));
      const loading = { topic, place, from, until: partition.durableEnd };
      // The broker starts without its object storage as well.
      if (store.log.isRemote(partition, from)) this.#loadLater(loading);
      else await this.#load(loading);
    }
  }

  async #load({ topic, place, from, until }: Loading): Promise<void> {
    const { partition } = place;
    for await (const record of readRecords(this.#options.store, partition, from, until)) {
      const { expiresAt, offset } = toMessage(topic, partition.index, record);
      if (expiresAt === undefined || place.expired.has(offset) || place.waiting.has(offset))
        continue;
      this.#note(place, offset, expiresAt);
    }
  }

  /** Loads messages while others expire; a restart before the end loads them again. */
  #loadLater(loading: Loading): void {
    const { place, from } = loading;
    const bound = { low: from };
    place.underWay.add(bound);
    const attempt = async (): Promise<void> => {
      if (!place.partition.live || this.#isStopped) return;
      try {
        await this.#load(loading);
        place.underWay.delete(bound);
      } catch (error) {
        if (!isColdError(error)) this.#options.onError(error);
        setTimeout(() => void attempt(), COLD_RETRY_MS).unref();
      }
    };
    void attempt();
  }

  /** Starts the timer; `groups` reports which messages are acknowledged. */
  start(groups: ExpiryGroups): void {
    this.#groups = groups;
    this.#timer = every(TICK_MS, () => this.#tick(), this.#options.onError);
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    await this.#timer?.stop();
  }

  get count(): number {
    return this.#heap.length;
  }

  /** The lowest offset of a partition that may still expire; `undefined` if there is none. */
  lowestOf(partition: PartitionView): number | undefined {
    let lowest: number | undefined;
    for (const offset of this.#places.get(partition)?.waiting ?? []) {
      if (offset < (lowest ?? Number.POSITIVE_INFINITY)) lowest = offset;
    }
    return lowest;
  }

  /** Registers a TTL message about to be stored; its entry must be appended in the same turn. */
  begin(partition: PartitionView): ExpiringEntry {
    const place = this.#places.get(partition) ?? this.#makePlace(partition);
    place.markedAt = this.#options.clock.monotonicMs();
    const bound = { low: partition.durableEnd };
    place.underWay.add(bound);
    return {
      pendingRecords: place.isMarked ? [] : [this.#toPendingPlace(place)],
      settle: (offset, expiresAt) => {
        place.underWay.delete(bound);
        place.isMarked = true;
        if (partition.live) this.#note(place, offset, expiresAt);
      },
      release: () => void place.underWay.delete(bound),
    };
  }

  /** Saves the positions of partitions without remaining TTL messages. */
  async save(): Promise<void> {
    const pendingRecords: PendingRecord[] = [];
    const now = this.#options.clock.monotonicMs();
    for (const [partition, place] of this.#places) {
      const isEmpty = place.waiting.size === 0 && place.underWay.size === 0;
      if (isEmpty && now - place.markedAt > QUIET_MS) {
        this.#places.delete(partition);
        pendingRecords.push(this.#options.state.toPending(keyOf(partition), null));
      } else if (place.isUnsaved) pendingRecords.push(this.#toPendingPlace(place));
    }
    await this.#options.store.append(pendingRecords);
  }

  #note(place: Place, offset: number, expiresAt: number): void {
    place.waiting.add(offset);
    push(this.#heap, { at: expiresAt, offset, place });
  }

  #makePlace(partition: PartitionView): Place {
    const place: Place = {
      partition,
      waiting: new Set(),
      underWay: new Set(),
      expired: new Set(),
      isMarked: false,
      markedAt: this.#options.clock.monotonicMs(),
      isUnsaved: false,
    };
    this.#places.set(partition, place);
    return place;
  }

  #toPendingPlace(place: Place): PendingRecord {
    let low = place.partition.durableEnd;
    for (const offset of place.waiting) if (offset < low) low = offset;
    for (const bound of place.underWay) if (bound.low < low) low = bound.low;
    for (const offset of place.expired) if (offset < low) place.expired.delete(offset);
    place.isUnsaved = false;
    const stored: StoredPlace = { low, expired: [...place.expired] };
    return this.#options.state.toPendingJson(keyOf(place.partition), stored);
  }

  #tick(): Promise<void> | void {
    const due = this.#heap[0];
    if (due !== undefined && due.at <= this.#options.clock.now()) return this.#expireDue();
  }

  async #expireDue(): Promise<void> {
    const now = this.#options.clock.now();
    const items: Item[] = [];
    const bounds: { place: Place; low: number }[] = [];
    const postponed = new Set<Item>();
    while (items.length < EXPIRE_MAX && this.#heap.length > 0 && this.#heap[0]!.at <= now) {
      items.push(pop(this.#heap));
    }
    try {
      const pendingRecords: PendingRecord[] = [];
      const places = new Set<Place>();
      const expired: { topic: Topic; item: Item; apply: () => void }[] = [];
      for (const item of items) {
        const { place, offset } = item;
        // A restart must find the message until its dead letter is durable.
        const bound = { place, low: offset };
        bounds.push(bound);
        place.underWay.add(bound);
        place.waiting.delete(offset);
        place.isUnsaved = true;
        const topic = this.#options.topics.ofPartition(place.partition);
        if (topic === undefined || this.#isConsumed(topic, item)) continue;
        const letter = await this.#toPendingLetter(topic, item);
        if (letter === "cold") {
          this.#postpone(item, now);
          postponed.add(item);
        }
        if (letter === undefined || letter === "cold") continue;
        // The message may have been acknowledged during the read.
        if (this.#isConsumed(topic, item)) continue;
        place.expired.add(offset);
        const groups = this.#groups!.expire(topic, place.partition.index, offset);
        pendingRecords.push(letter, ...groups.pendingRecords);
        places.add(place);
        expired.push({ topic, item, apply: groups.apply });
      }
      for (const place of places) pendingRecords.push(this.#toPendingPlace(place));
      await this.#options.store.append(pendingRecords);
      for (const { topic, item, apply } of expired) {
        apply();
        this.#options.backlog.noteExpired(topic, item.place.partition.index, item.offset);
        this.#options.onExpired();
      }
    } catch (error) {
      this.#options.onError(error);
      for (const item of items) {
        if (!item.place.partition.live || postponed.has(item)) continue;
        item.place.expired.delete(item.offset);
        item.place.waiting.add(item.offset);
        push(this.#heap, item);
      }
      await new Promise((resolve) => setTimeout(resolve, RETRY_MS).unref());
    } finally {
      for (const bound of bounds) bound.place.underWay.delete(bound);
    }
  }

  #isConsumed(topic: Topic, { place, offset }: Item): boolean {
    const { index, logStart } = place.partition;
    if (offset < logStart) return true;
    const acknowledged = this.#groups!.isAcknowledged(topic, index, offset);
    return acknowledged ?? this.#options.backlog.isConsumed(topic, index, offset);
  }

  // A message in object storage that does not answer expires later; the others do not wait for it.
  #postpone(item: Item, now: number): void {
    item.place.waiting.add(item.offset);
    push(this.#heap, { ...item, at: now + COLD_RETRY_MS });
  }

  async #toPendingLetter(topic: Topic, item: Item): Promise<PendingRecord | "cold" | undefined> {
    try {
      return await this.#readLetter(topic, item);
    } catch (error) {
      if (isColdError(error)) return "cold";
      throw error;
    }
  }

  async #readLetter(topic: Topic, { place, offset }: Item): Promise<PendingRecord | undefined> {
    const { store, deadLetters, clock } = this.#options;
    const deadLetterTopic = await deadLetters.ensure(topic);
    for await (const record of readRecords(store, place.partition, offset, offset + 1)) {
      const message = toMessage(topic, place.partition.index, record);
      return deadLetters.toPending(deadLetterTopic, {
        ...message,
        sourceTopic: topic.name,
        reason: EXPIRED_REASON,
        at: clock.now(),
      });
    }
    return undefined;
  }

  #forget(topic: Topic): void {
    const pendingRecords: PendingRecord[] = [];
    for (const partition of topic.stored.partitions) {
      if (this.#places.delete(partition)) {
        pendingRecords.push(this.#options.state.toPending(keyOf(partition), null));
      }
    }
    // If this write is lost, the next start ignores the entry.
    this.#options.store.append(pendingRecords).catch(() => undefined);
  }
}

function keyOf(partition: PartitionView): ["ttl", string, number] {
  return ["ttl", partition.topic.id.toString("hex"), partition.index];
}

function push(heap: Item[], item: Item): void {
  let at = heap.length;
  heap.push(item);
  while (at > 0) {
    const parent = (at - 1) >> 1;
    if (heap[parent]!.at <= item.at) break;
    heap[at] = heap[parent]!;
    at = parent;
  }
  heap[at] = item;
}

function pop(heap: Item[]): Item {
  const top = heap[0]!;
  const last = heap.pop()!;
  if (heap.length === 0) return top;
  let at = 0;
  for (;;) {
    let child = at * 2 + 1;
    if (child >= heap.length) break;
    if (child + 1 < heap.length && heap[child + 1]!.at < heap[child]!.at) child++;
    if (heap[child]!.at >= last.at) break;
    heap[at] = heap[child]!;
    at = child;
  }
  heap[at] = last;
  return top;
}
