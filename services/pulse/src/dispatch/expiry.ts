// Messages with a time to live: whoever is not consumed by then becomes a dead letter, durably and once.
import type { Clock } from "@platform/kernel/time";
import type { PartitionView } from "@platform/log";
import type { DeadLetterWriter } from "../deadletter/dead-letter-writer.ts";
import { toMessage } from "../message.ts";
import { readRecords } from "../store/read-records.ts";
import { readJson, type StateTable } from "../store/state.ts";
import type { Draft, Store } from "../store/store.ts";
import type { Topic, Topics } from "../topic/topics.ts";
import type { Backlog } from "./backlog.ts";

/*
 * A partition that has messages with a TTL has a fact ["ttl", topic, partition]: the lowest offset that may still expire,
 * and those above it that have. It is written with the first such message, and with each dead letter, so a restart
 * finds what is left by reading from there on.
 */

/** The reason that expired messages carry. */
export const expiredReason = "message TTL expired";
/** Dead letters that one entry holds at most. */
const expireMax = 500;
const retryMs = 1_000;
const tickMs = 20;
/** A partition without anything left to expire is forgotten after this. */
const quietMs = 60_000;

/** What the groups of a topic have to say when a message expires. */
export type ExpiryGroups = {
  /** Whether every group has acknowledged the message; undefined where the topic has no groups. */
  isAcknowledged: (topic: Topic, partition: number, offset: number) => boolean | undefined;
  /** Acknowledges the message for every group. */
  expire: (topic: Topic, partition: number, offset: number) => ExpiredForGroups;
};

/** The drafts that belong into the entry of the dead letter, and what to call when that is durable. */
export type ExpiredForGroups = { drafts: Draft[]; apply: () => void };

type StoredPlace = { low: number; expired: number[] };

type Place = {
  partition: PartitionView;
  waiting: Set<number>;
  /** Offsets at or below what is being stored or expired right now: the stored place may not pass them. */
  underWay: Set<{ low: number }>;
  expired: Set<number>;
  /** Whether the partition's fact is durable. */
  isMarked: boolean;
  markedAt: number;
  isUnsaved: boolean;
};

/** A message with a TTL on its way into the log; ended by `settle` when it is durable, or by `release`. */
export type ExpiringEntry = {
  /** What its entry has to hold as well. */
  drafts: Draft[];
  settle: (offset: number, expiresAt: number) => void;
  release: () => void;
};

type Item = { at: number; offset: number; place: Place };

type Parts = {
  store: Store;
  state: StateTable;
  topics: Topics;
  backlog: Backlog;
  deadLetters: DeadLetterWriter;
  clock: Clock;
  onExpired: () => void;
  onError: (error: unknown) => void;
};

/** The messages of all topics that can expire. */
export class Expiry {
  readonly #parts: Parts;
  readonly #places = new Map<PartitionView, Place>();
  /** A binary heap, the next one to expire first. */
  readonly #heap: Item[] = [];
  #groups: ExpiryGroups | undefined;
  #working: Promise<void> | undefined;
  #timer: NodeJS.Timeout | undefined;

  constructor(parts: Parts) {
    this.#parts = parts;
    parts.topics.watch({ deleted: (topic) => this.#forget(topic) });
  }

  /** Reads back what was left to expire. */
  async open(): Promise<void> {
    const { state, topics, store } = this.#parts;
    for (const { key, value } of state.take("ttl")) {
      const topic = topics.findByHexId(String(key[1]));
      const partition = topic?.stored.partitions[Number(key[2])];
      if (topic === undefined || partition === undefined) continue;
      const stored = readJson(value) as StoredPlace;
      const place = this.#makePlace(partition);
      place.isMarked = true;
      for (const offset of stored.expired) place.expired.add(offset);
      const from = Math.max(partition.logStart, Math.min(stored.low, partition.durableEnd));
      for await (const record of readRecords(store, partition, from)) {
        const { expiresAt, offset } = toMessage(topic, partition.index, record);
        if (expiresAt === undefined || place.expired.has(offset)) continue;
        this.#note(place, offset, expiresAt);
      }
    }
  }

  /** Begins to look; `groups` says what the topics' groups have acknowledged. */
  start(groups: ExpiryGroups): void {
    this.#groups = groups;
    this.#timer = setInterval(() => this.#tick(), tickMs);
  }

  async stop(): Promise<void> {
    clearInterval(this.#timer);
    await this.#working;
  }

  get count(): number {
    return this.#heap.length;
  }

  /** The lowest offset of a partition that may still expire; undefined if there is none. */
  lowestOf(partition: PartitionView): number | undefined {
    let lowest: number | undefined;
    for (const offset of this.#places.get(partition)?.waiting ?? []) {
      if (offset < (lowest ?? Number.POSITIVE_INFINITY)) lowest = offset;
    }
    return lowest;
  }

  /** Begins to store a message with a TTL; its entry has to be handed to the log in the same turn. */
  begin(partition: PartitionView): ExpiringEntry {
    const place = this.#places.get(partition) ?? this.#makePlace(partition);
    place.markedAt = this.#parts.clock.monotonicMs();
    const bound = { low: partition.durableEnd };
    place.underWay.add(bound);
    return {
      drafts: place.isMarked ? [] : [this.#draftPlace(place)],
      settle: (offset, expiresAt) => {
        place.underWay.delete(bound);
        place.isMarked = true;
        if (partition.live) this.#note(place, offset, expiresAt);
      },
      release: () => void place.underWay.delete(bound),
    };
  }

  /** Writes down where nothing is left; now and then. */
  async save(): Promise<void> {
    const drafts: Draft[] = [];
    const now = this.#parts.clock.monotonicMs();
    for (const [partition, place] of this.#places) {
      const isEmpty = place.waiting.size === 0 && place.underWay.size === 0;
      if (isEmpty && now - place.markedAt > quietMs) {
        this.#places.delete(partition);
        drafts.push(this.#parts.state.draft(keyOf(partition), null));
      } else if (place.isUnsaved) drafts.push(this.#draftPlace(place));
    }
    await this.#parts.store.append(drafts);
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
      markedAt: this.#parts.clock.monotonicMs(),
      isUnsaved: false,
    };
    this.#places.set(partition, place);
    return place;
  }

  #draftPlace(place: Place): Draft {
    let low = place.partition.durableEnd;
    for (const offset of place.waiting) if (offset < low) low = offset;
    for (const bound of place.underWay) if (bound.low < low) low = bound.low;
    for (const offset of place.expired) if (offset < low) place.expired.delete(offset);
    place.isUnsaved = false;
    const stored: StoredPlace = { low, expired: [...place.expired] };
    return this.#parts.state.draftJson(keyOf(place.partition), stored);
  }

  #tick(): void {
    const due = this.#heap[0];
    if (due === undefined || due.at > this.#parts.clock.now() || this.#working !== undefined)
      return;
    this.#working = this.#expireDue().finally(() => {
      this.#working = undefined;
    });
  }

  async #expireDue(): Promise<void> {
    const now = this.#parts.clock.now();
    const items: Item[] = [];
    const bounds: { place: Place; low: number }[] = [];
    while (items.length < expireMax && this.#heap.length > 0 && this.#heap[0]!.at <= now) {
      items.push(pop(this.#heap));
    }
    try {
      const drafts: Draft[] = [];
      const places = new Set<Place>();
      const expired: { topic: Topic; item: Item; apply: () => void }[] = [];
      for (const item of items) {
        const { place, offset } = item;
        // Until its dead letter is durable, a restart has to find it.
        const bound = { place, low: offset };
        bounds.push(bound);
        place.underWay.add(bound);
        place.waiting.delete(offset);
        place.isUnsaved = true;
        const topic = this.#parts.topics.ofPartition(place.partition);
        if (topic === undefined || this.#isConsumed(topic, item)) continue;
        const letter = await this.#draftLetter(topic, item);
        if (letter === undefined) continue;
        // It may have been acknowledged while it was read.
        if (this.#isConsumed(topic, item)) continue;
        place.expired.add(offset);
        const groups = this.#groups!.expire(topic, place.partition.index, offset);
        drafts.push(letter, ...groups.drafts);
        places.add(place);
        expired.push({ topic, item, apply: groups.apply });
      }
      for (const place of places) drafts.push(this.#draftPlace(place));
      await this.#parts.store.append(drafts);
      for (const { topic, item, apply } of expired) {
        apply();
        this.#parts.backlog.noteExpired(topic, item.place.partition.index, item.offset);
        this.#parts.onExpired();
      }
    } catch (error) {
      this.#parts.onError(error);
      for (const item of items) {
        if (!item.place.partition.live) continue;
        item.place.expired.delete(item.offset);
        item.place.waiting.add(item.offset);
        push(this.#heap, item);
      }
      await new Promise((resolve) => setTimeout(resolve, retryMs).unref());
    } finally {
      for (const bound of bounds) bound.place.underWay.delete(bound);
    }
  }

  #isConsumed(topic: Topic, { place, offset }: Item): boolean {
    const { index, logStart } = place.partition;
    if (offset < logStart) return true;
    const acknowledged = this.#groups!.isAcknowledged(topic, index, offset);
    return acknowledged ?? this.#parts.backlog.isTaken(topic, index, offset);
  }

  async #draftLetter(topic: Topic, { place, offset }: Item): Promise<Draft | undefined> {
    const { store, deadLetters, clock } = this.#parts;
    const deadLetterTopic = await deadLetters.ensure(topic);
    for await (const record of readRecords(store, place.partition, offset, offset + 1)) {
      const message = toMessage(topic, place.partition.index, record);
      return deadLetters.draft(deadLetterTopic, {
        ...message,
        sourceTopic: topic.name,
        reason: expiredReason,
        at: clock.now(),
      });
    }
    return undefined;
  }

  #forget(topic: Topic): void {
    const drafts: Draft[] = [];
    for (const partition of topic.stored.partitions) {
      if (this.#places.delete(partition)) {
        drafts.push(this.#parts.state.draft(keyOf(partition), null));
      }
    }
    // If it is lost, the next start leaves it out.
    this.#parts.store.append(drafts).catch(() => undefined);
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
