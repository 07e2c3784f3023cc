// Counts the messages waiting in each topic and refuses more above a limit.
import { readRecords } from "../store/read-records.ts";
import { readJson, type StateTable } from "../store/state.ts";
import type { PendingRecord, Store } from "../store/store.ts";
import { toMessage } from "../message/message.ts";
import type { Topic, Topics } from "../topic/topics.ts";
import { BacklogRoom, createBacklogError } from "./backlog-room.ts";

/** Bytes searched at the first publish after a start; older messages no longer count. */
const LOOK_BACK_BYTES = 32 * 1024 * 1024;

interface Waiting {
  /** Offsets published over HTTP and not consumed yet, ascending, by partition. */
  unconsumed: number[][];
  /** The first offset not consumed yet, by partition. */
  consumed: number[];
  delayed: number;
  /** Messages admitted but not stored yet. */
  inFlight: number;
  /** Set until the messages that the topic had before have been counted. */
  opening: Promise<void> | undefined;
}

/** A group, for the backlog of its topic. */
export interface WatchedGroup {
  countBacklog(): number;
  /** True if it has a member. */
  isTaken(): boolean;
}

/**
 * Queue depths by topic. For topics with shared subscriptions it is the largest of their backlogs, for others the number
 * of published messages that were not consumed yet. Delayed messages count.
 */
export class Backlog {
  readonly #store: Store;
  readonly #state: StateTable;
  readonly #depthMax: number;
  readonly #byTopic = new Map<Topic, Waiting>();
  readonly #groups = new Map<Topic, Set<WatchedGroup>>();
  readonly #room: BacklogRoom;
  readonly #stored = new Map<string, number>();
  readonly #unsaved = new Map<Topic, Set<number>>();

  /** `depthMax`: messages that may wait in a topic; 0 for no limit. */
  constructor(store: Store, state: StateTable, topics: Topics, depthMax: number) {
    this.#store = store;
    this.#state = state;
    this.#depthMax = depthMax;
    this.#room = new BacklogRoom(depthMax, {
      depthOf: (topic) => this.depthOf(topic) + this.#of(topic).inFlight,
      isTaken: (topic, count) => this.#isTaken(topic, count),
      add: (topic, count) => (this.#of(topic).inFlight += count),
    });
    for (const { key, value } of state.take("taken")) {
      const [, id, partition] = key as [string, string, number];
      if (topics.findByHexId(id) !== undefined) {
        this.#stored.set(`${id} ${partition}`, Number(readJson(value)));
      }
    }
    topics.watch({ deleted: (topic) => this.#forget(topic) });
  }

  /** Messages that may wait in a topic; 0 for no limit. */
  get depthMax(): number {
    return this.#depthMax;
  }

  /** Settles when the messages that wait in a topic have been counted; undefined if they have. */
  opening(topic: Topic): Promise<void> | undefined {
    return this.#of(topic).opening;
  }

  /** Admits a message, or throws `ERR_BACKPRESSURE`. Call `opening` before, and `settle` after each admission. */
  admit(topic: Topic): void {
    const waiting = this.#of(topic);
    if (this.#depthMax > 0 && this.depthOf(topic) + waiting.inFlight >= this.#depthMax) {
      throw createBacklogError(this.#depthMax);
    }
    waiting.inFlight++;
  }

  /**
   * Admits messages of a client that can be paced, when the groups of the topic have room for them: see `BacklogRoom.enter`.
   * Call `settle` afterwards.
   */
  enter(topic: Topic, count: number): Promise<void> {
    return this.#room.enter(topic, count);
  }

  /** Ends an admission of `count` messages, whatever its result. */
  settle(topic: Topic, count = 1): void {
    const waiting = this.#byTopic.get(topic);
    if (waiting !== undefined) waiting.inFlight -= count;
  }

  /** Counts a message published over HTTP. */
  noteStored(topic: Topic, partition: number, offset: number): void {
    if (this.#depthMax === 0) return;
    const waiting = this.#byTopic.get(topic);
    if (waiting === undefined || offset < (waiting.consumed[partition] ?? 0)) return;
    const offsets = (waiting.unconsumed[partition] ??= []);
    // Beyond the limit the exact number does not matter; requeues are not refused.
    if (offsets.length <= this.#depthMax) offsets.push(offset);
  }

  /** Counts delayed messages: accepted ones, or, negative, delivered ones. */
  noteDelayed(topic: Topic, change: number): void {
    const waiting = this.#of(topic);
    waiting.delayed = Math.max(0, waiting.delayed + change);
  }

  /** Marks everything of a partition below `nextOffset` as consumed. */
  noteConsumed(topic: Topic, partition: number, nextOffset: number): void {
    const waiting = this.#byTopic.get(topic);
    if (waiting === undefined) {
      // Nothing was published since startup: only the position is kept, and the log is not searched.
      const key = `${topic.stored.id.toString("hex")} ${partition}`;
      if (nextOffset <= (this.#stored.get(key) ?? 0)) return;
      this.#stored.set(key, nextOffset);
      this.#markUnsaved(topic, partition);
      return;
    }
    if (nextOffset <= (waiting.consumed[partition] ?? 0)) return;
    waiting.consumed[partition] = nextOffset;
    const offsets = waiting.unconsumed[partition];
    if (offsets !== undefined && offsets.length > 0) {
      let count = 0;
      while (count < offsets.length && offsets[count]! < nextOffset) count++;
      offsets.splice(0, count);
    }
    this.#markUnsaved(topic, partition);
  }

  #markUnsaved(topic: Topic, partition: number): void {
    const partitions = this.#unsaved.get(topic) ?? new Set<number>();
    partitions.add(partition);
    this.#unsaved.set(topic, partitions);
  }

  /** Removes an expired message. */
  noteExpired(topic: Topic, partition: number, offset: number): void {
    const offsets = this.#byTopic.get(topic)?.unconsumed[partition];
    const at = offsets?.indexOf(offset) ?? -1;
    if (at >= 0) offsets!.splice(at, 1);
  }

  /** True if an offset was consumed. */
  isConsumed(topic: Topic, partition: number, offset: number): boolean {
    return offset < (this.#of(topic).consumed[partition] ?? 0);
  }

  /** True if a shared subscription to the topic counts its backlog. */
  hasGroups(topic: Topic): boolean {
    return this.#groups.has(topic);
  }

  #isTaken(topic: Topic, count: number): boolean {
    const room = this.#depthMax - count - this.#of(topic).inFlight;
    for (const group of this.#groups.get(topic) ?? []) {
      if (!group.isTaken() && group.countBacklog() > room) return false;
    }
    return true;
  }

  /** Adds a group's backlog until the returned function is called. */
  watchGroup(topic: Topic, group: WatchedGroup): () => void {
    const groups = this.#groups.get(topic) ?? new Set();
    groups.add(group);
    this.#groups.set(topic, groups);
    return () => {
      groups.delete(group);
      if (groups.size === 0) this.#groups.delete(topic);
    };
  }

  /** Messages waiting in a topic. */
  depthOf(topic: Topic): number {
    const waiting = this.#byTopic.get(topic);
    const delayed = waiting?.delayed ?? 0;
    const groups = this.#groups.get(topic);
    if (groups !== undefined) {
      let depth = 0;
      for (const group of groups) depth = Math.max(depth, group.countBacklog());
      return depth + delayed;
    }
    let depth = delayed;
    for (const offsets of waiting?.unconsumed ?? []) depth += offsets?.length ?? 0;
    return depth;
  }

  /** Messages waiting in all topics. */
  totalDepth(): number {
    let depth = 0;
    for (const topic of new Set([...this.#byTopic.keys(), ...this.#groups.keys()])) {
      depth += this.depthOf(topic);
    }
    return depth;
  }

  /** Saves the consumed offsets, periodically and at shutdown. After a crash, unsaved ones count as waiting again. */
  async save(): Promise<void> {
    const pendingRecords: PendingRecord[] = [];
    for (const [topic, partitions] of this.#unsaved) {
      const id = topic.stored.id.toString("hex");
      for (const partition of partitions) {
        const waiting = this.#byTopic.get(topic);
        const consumed =
          waiting?.consumed[partition] ?? this.#stored.get(`${id} ${partition}`) ?? 0;
        pendingRecords.push(this.#state.toPendingJson(["taken", id, partition], consumed));
      }
    }
    this.#unsaved.clear();
    await this.#store.append(pendingRecords);
  }

  #of(topic: Topic): Waiting {
    const known = this.#byTopic.get(topic);
    if (known !== undefined) return known;
    const id = topic.stored.id.toString("hex");
    const waiting: Waiting = {
      unconsumed: [],
      consumed: topic.stored.partitions.map(({ index }) => this.#stored.get(`${id} ${index}`) ?? 0),
      delayed: 0,
      inFlight: 0,
      opening: undefined,
    };
    this.#byTopic.set(topic, waiting);
    if (this.#depthMax > 0) {
      waiting.opening = this.#lookBack(topic, waiting).then(() => {
        waiting.opening = undefined;
      });
    }
    return waiting;
  }

  async #lookBack(topic: Topic, waiting: Waiting): Promise<void> {
    for (const partition of topic.stored.partitions) {
      const { index, durableEnd } = partition;
      const from = Math.max(partition.logStart, waiting.consumed[index] ?? 0);
      // Publishing never waits for object storage: messages there count as taken.
      if (from >= durableEnd || this.#store.log.isRemote(partition, from)) continue;
      const found: number[] = [];
      const records = readRecords(this.#store, partition, from, durableEnd, LOOK_BACK_BYTES);
      for await (const record of records) {
        if (toMessage(topic, index, record).isOwn) found.push(record.offset);
        if (found.length > this.#depthMax) break;
      }
      const consumed = waiting.consumed[index] ?? 0;
      const later = waiting.unconsumed[index] ?? [];
      const earlier = found.filter((offset) => offset >= consumed && !later.includes(offset));
      waiting.unconsumed[index] = [...earlier, ...later];
    }
  }

  #forget(topic: Topic): void {
    const id = topic.stored.id.toString("hex");
    this.#byTopic.delete(topic);
    this.#groups.delete(topic);
    this.#unsaved.delete(topic);
    const pendingRecords = topic.stored.partitions.map(({ index }) => {
      this.#stored.delete(`${id} ${index}`);
      return this.#state.toPending(["taken", id, index], null);
    });
    // If this write is lost, the next start ignores the entry.
    this.#store.append(pendingRecords).catch(() => undefined);
  }
}
