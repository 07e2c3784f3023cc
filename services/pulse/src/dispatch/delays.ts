// Delayed messages: stored by the minute in which they are due, kept on a wheel when that is near, delivered once.
import { setTimeout as sleep } from "node:timers/promises";
import { PlatformError } from "@platform/kernel/errors";
import { every, type Clock, type RepeatingTimer } from "@platform/kernel/time";
import type { PartitionView } from "@platform/log";
import type { NewRecord, StoredRecord } from "@platform/log/batch";
import { toMessage } from "../message/message.ts";
import { readRecords } from "../store/read-records.ts";
import { readJson, type StateTable } from "../store/state.ts";
import type { PendingRecord, Store } from "../store/store.ts";
import type { Topic, Topics } from "../topic/topics.ts";
import type { Backlog } from "./backlog.ts";
import { addTarget, readTarget, removeTarget } from "./delayed-record.ts";
import { DelayWheel, SLOT_MS, type DueOffsets } from "./delay-wheel.ts";
import type { Expiry } from "./expiry.ts";
import { NearRecords } from "./near-records.ts";
import { Pace } from "./pace.ts";

/*
 * A delayed message is a record of the topic `__delay.<minute>` with three more headers: its target and its slot. Minutes
 * in the near future are read into a wheel. When slots are due, one journal entry contains their messages, now as records
 * of their topics, and how far the minute is drained; so after a crash each message is delivered exactly once. A slot with
 * writes in flight is drained once they are durable.
 */

const TOPIC_PREFIX = "__delay.";
const MINUTE_MS = 60_000;
const MINUTE_SLOTS = MINUTE_MS / SLOT_MS;
/** Minutes on wheels ahead of the current one. */
const MINUTES_AHEAD = 1;
/** Maximum number of messages delivered in one entry. */
const DRAIN_MAX = 1_000;
/** Maximum bytes of the messages delivered in one entry. */
const DRAIN_BYTES_MAX = 2 * 1024 * 1024;
const RETRY_MS = 1_000;
/** Maximum number of messages read ahead. */
const AHEAD_MAX = 80_000;
/** Maximum bytes of the messages read ahead. */
const AHEAD_BYTES_MAX = 64 * 1024 * 1024;
/** Interval of read-ahead. */
const AHEAD_EVERY_MS = 500;
/** Read-ahead starts this long before the minute begins. */
const AHEAD_FROM_MS = 5_000;
/** Scattered reads of one entry above which read-ahead starts immediately. */
const SCATTERED_MIN = 50;
/** Minutes that begin later than this are read slowly. */
const HURRY_MS = 10_000;
/** Messages due within this time of being stored stay in memory. */
const KEPT_SLOTS = 2_000 / SLOT_MS;

/** The longest delay: thirty days. */
export const DELAY_MS_MAX = 30 * 24 * 60 * MINUTE_MS;

/** A delayed message being stored; call `note` or `release` afterwards. */
export interface PendingDelay {
  pending: PendingRecord;
  dueMs: number;
  slot: number;
}

interface Drained {
  slot: number;
  offset: number;
}

interface Minute {
  number: number;
  partition: PartitionView;
  drained: Drained;
  /** End of the messages that were stored before the process started and are not counted as waiting yet. */
  uncountedEnd: number;
  /** Set while the minute is near. Everything below `readEnd` was or is being read from the log. */
  wheel: { slots: DelayWheel; readEnd: number; isRead: boolean } | undefined;
}

interface DelaysOptions {
  store: Store;
  state: StateTable;
  topics: Topics;
  backlog: Backlog;
  expiry: Expiry;
  clock: Clock;
  onError: (error: unknown) => void;
}

/** The delayed messages of all topics. */
export class Delays {
  readonly #options: DelaysOptions;
  readonly #minutes = new Map<number, Minute>();
  readonly #writing = new Map<number, number>();
  readonly #near: NearRecords;
  /** All slots up to this one (counted from 1970) are drained or being drained, so no message may be added to them. */
  #begunSlot: number;
  #draining: Promise<void> | undefined;
  #readingAhead: Promise<void> | undefined;
  #readAheadAtMs = 0;
  readonly #reading = new Set<Promise<void>>();
  #isStopped = false;
  #timer: RepeatingTimer | undefined;

  constructor(options: DelaysOptions) {
    this.#options = options;
    this.#near = new NearRecords(options.store, AHEAD_BYTES_MAX);
    const drained = new Map(
      options.state
        .take("delay")
        .map(({ key, value }) => [Number(key[1]), readJson(value) as Drained]),
    );
    for (const topic of options.store.log.topics()) {
      if (!topic.name.startsWith(TOPIC_PREFIX)) continue;
      const number = Number(topic.name.slice(TOPIC_PREFIX.length));
      this.#addMinute(number, topic.partitions[0]!, drained.get(number));
    }
    this.#begunSlot = Math.floor(options.clock.now() / SLOT_MS);
  }

  /** Starts delivering; overdue messages come first. */
  start(): void {
    this.#timer = every(SLOT_MS, () => this.#tick(), this.#options.onError);
  }

  /** Stops delivering; resolves when no work is in flight. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    await this.#timer?.stop();
    await Promise.all([this.#draining, this.#readingAhead, ...this.#reading]);
  }

  /** Messages on the wheels: those due within the next minute or two. */
  get nearCount(): number {
    let count = 0;
    for (const { wheel } of this.#minutes.values()) count += wheel?.slots.count ?? 0;
    return count;
  }

  /** The record that stores a message for a partition of a topic until `dueMs`. */
  async toPending(
    topic: Topic,
    partition: number,
    record: NewRecord,
    dueMs: number,
  ): Promise<PendingDelay> {
    for (;;) {
      // Never early, and never into a slot that is being drained: the clock may have been set back.
      const slot = Math.max(Math.ceil(dueMs / SLOT_MS), this.#begunSlot + 2);
      const number = Math.floor(slot / MINUTE_SLOTS);
      const minute = this.#minutes.get(number);
      if (minute === undefined) {
        await this.#makeMinute(number);
        continue;
      }
      this.#writing.set(slot, (this.#writing.get(slot) ?? 0) + 1);
      const delayed = addTarget(record, topic, partition, slot);
      return { pending: { partition: minute.partition, record: delayed }, dueMs, slot };
    }
  }

  /** The record is durable at `offset`. */
  note({ slot, pending }: PendingDelay, offset: number): void {
    this.#endWriting(slot);
    const minute = this.#minutes.get(Math.floor(slot / MINUTE_SLOTS));
    if (minute?.partition !== pending.partition || minute.wheel === undefined) return;
    if (offset < minute.wheel.readEnd) return;
    minute.wheel.slots.add(slot % MINUTE_SLOTS, offset);
    const isNear = slot - this.#options.clock.now() / SLOT_MS <= KEPT_SLOTS;
    if (!isNear || this.#near.roomBytes === 0) return;
    this.#near.keep(minute.partition, { ...pending.record, offset });
  }

  /** The record was not stored. */
  release({ slot }: PendingDelay): void {
    this.#endWriting(slot);
  }

  #endWriting(slot: number): void {
    const count = (this.#writing.get(slot) ?? 1) - 1;
    if (count === 0) this.#writing.delete(slot);
    else this.#writing.set(slot, count);
  }

  async #makeMinute(number: number): Promise<void> {
    const { store } = this.#options;
    const topic = await store.log.createTopic(`${TOPIC_PREFIX}${number}`, { orGet: true });
    this.#addMinute(number, topic.partitions[0]!, undefined);
  }

  #addMinute(number: number, partition: PartitionView, drained: Drained | undefined): void {
    if (this.#minutes.has(number)) return;
    const minute: Minute = {
      number,
      partition,
      drained: drained ?? { slot: -1, offset: -1 },
      uncountedEnd: partition.durableEnd,
      wheel: undefined,
    };
    this.#minutes.set(number, minute);
  }

  #tick(): void {
    const now = this.#options.clock.now();
    const near = Math.floor(now / MINUTE_MS) + MINUTES_AHEAD;
    let isDue = false;
    for (const minute of this.#minutes.values()) {
      if (minute.number > near) continue;
      if (minute.wheel === undefined) this.#beginReading(minute);
      else if (minute.wheel.slots.count > 0 || minute.number < near - MINUTES_AHEAD) isDue = true;
    }
    this.#readAhead();
    if (!isDue || this.#draining !== undefined) return;
    this.#draining = this.#drain().finally(() => {
      this.#draining = undefined;
    });
  }

  #beginReading(minute: Minute): void {
    const reading = this.#readMinute(minute).finally(() => this.#reading.delete(reading));
    this.#reading.add(reading);
  }

  async #readMinute(minute: Minute): Promise<void> {
    const { partition, drained } = minute;
    const wheel = { slots: new DelayWheel(), readEnd: partition.durableEnd, isRead: false };
    minute.wheel = wheel;
    try {
      const { store, topics, backlog } = this.#options;
      const pace = new Pace();
      for await (const record of readRecords(store, partition, partition.logStart, wheel.readEnd)) {
        if (this.#isStopped) return;
        if (minute.number * MINUTE_MS - this.#options.clock.now() > HURRY_MS) {
          const resting = pace.rest();
          if (resting !== undefined) await resting;
        }
        const { slot, topicId } = readTarget(record);
        const place = slot % MINUTE_SLOTS;
        if (place < drained.slot || (place === drained.slot && record.offset <= drained.offset)) {
          continue;
        }
        wheel.slots.add(place, record.offset);
        const topic = record.offset < minute.uncountedEnd ? topics.findByHexId(topicId) : undefined;
        if (topic !== undefined) backlog.noteDelayed(topic, 1);
      }
      wheel.isRead = true;
    } catch (error) {
      this.#options.onError(error);
      setTimeout(() => {
        if (minute.wheel === wheel) minute.wheel = undefined;
      }, RETRY_MS).unref();
    }
  }

  async #drain(): Promise<void> {
    // An earlier minute that is still being read delays only itself.
    let limit = Math.floor(this.#options.clock.now() / SLOT_MS);
    for (const slot of this.#writing.keys()) limit = Math.min(limit, slot - 1);
    this.#begunSlot = Math.max(this.#begunSlot, limit);
    for (const minute of [...this.#minutes.values()].sort((a, b) => a.number - b.number)) {
      if (minute.wheel?.isRead !== true || minute.number * MINUTE_SLOTS > limit) continue;
      const to = Math.min(MINUTE_SLOTS - 1, limit - minute.number * MINUTE_SLOTS);
      if (!(await this.#drainMinute(minute, minute.wheel.slots, to))) return;
      if (to === MINUTE_SLOTS - 1 && minute.wheel.slots.count === 0) await this.#endMinute(minute);
    }
  }

  async #drainMinute(minute: Minute, slots: DelayWheel, to: number): Promise<boolean> {
    for (;;) {
      const due = slots.take(to, DRAIN_MAX);
      if (due.offsets.length === 0) return true;
      for (let at = 0; at < due.offsets.length;) {
        try {
          at += await this.#deliver(minute, due, at);
        } catch (error) {
          for (; at < due.offsets.length; at++) slots.add(due.slots[at]!, due.offsets[at]!);
          this.#options.onError(error);
          await sleep(RETRY_MS, undefined, { ref: false });
          return false;
        }
      }
    }
  }

  /** Delivers due messages from index `at` on as one entry; returns their number. */
  async #deliver(minute: Minute, due: DueOffsets, at: number): Promise<number> {
    const { store, state, topics, backlog, expiry, clock } = this.#options;
    const records = await this.#readDue(minute, due, at);
    const delivered: { topic: Topic; pending: PendingRecord; expiresAt: number | undefined }[] = [];
    const timestamp = clock.now();
    for (const record of records) {
      const { topicId, partition } = readTarget(record);
      const topic = topics.findByHexId(topicId);
      const view = topic?.stored.partitions[partition];
      // The topic was deleted meanwhile, and its delayed messages with it.
      if (topic === undefined || view === undefined) continue;
      const headers = removeTarget(record);
      const { key, value } = record;
      const { expiresAt } = toMessage(topic, partition, record);
      const pending = { partition: view, record: { key, value, headers, timestamp } };
      delivered.push({ topic, pending, expiresAt });
    }
    const last = at + records.length - 1;
    const drained: Drained = { slot: due.slots[last]!, offset: due.offsets[last]! };
    const pendingRecords = delivered.map(({ pending }) => pending);
    const expiring = delivered.map(({ pending, expiresAt }) =>
      expiresAt === undefined ? undefined : expiry.begin(pending.partition),
    );
    for (const entry of expiring) pendingRecords.push(...(entry?.pendingRecords ?? []));
    pendingRecords.push(state.toPendingJson(["delay", minute.number], drained));
    const places = await store.append(pendingRecords).catch((error: unknown) => {
      for (const entry of expiring) entry?.release();
      throw error;
    });
    minute.drained = drained;
    for (const [index, { topic, pending, expiresAt }] of delivered.entries()) {
      const place = places[index]!;
      backlog.noteDelayed(topic, -1);
      backlog.noteStored(topic, pending.partition.index, place);
      if (expiresAt !== undefined) expiring[index]!.settle(place, expiresAt);
    }
    for (const { offset } of records) this.#near.drop(minute.partition, offset);
    return records.length;
  }

  /** Reads the due records from index `at` on: at least one, at most as many as one entry may deliver. */
  async #readDue(minute: Minute, due: DueOffsets, at: number): Promise<StoredRecord[]> {
    const { partition } = minute;
    const offsets = due.offsets.slice(at, at + DRAIN_MAX);
    if (this.#near.countMissing(partition, offsets) > 0) await this.#readingAhead;
    const missing = this.#near.countMissing(partition, offsets);
    // Scattered records cost a pass over the log, which then also reads the ones due next.
    const wanted = missing > SCATTERED_MIN ? [...offsets, ...this.#peek(minute)] : offsets;
    if (missing > 0) await this.#load(partition, wanted, DRAIN_BYTES_MAX);
    if (this.#near.get(partition, offsets[0]!) === undefined) {
      await this.#near.load(partition, Float64Array.of(offsets[0]!), 1);
    }
    const records: StoredRecord[] = [];
    let bytes = 0;
    for (const offset of offsets) {
      const record = this.#near.get(partition, offset);
      if (record === undefined || bytes > DRAIN_BYTES_MAX) break;
      records.push(record);
      bytes += record.value?.length ?? 0;
    }
    if (records.length > 0) return records;
    throw new PlatformError("internal", "A delayed message is missing.");
  }

  /** Reads the next due records before the ones in memory are used up. */
  #readAhead(): void {
    if (this.#readingAhead !== undefined || performance.now() < this.#readAheadAtMs) return;
    this.#readAheadAtMs = performance.now() + AHEAD_EVERY_MS;
    const soonMs = this.#options.clock.now() + AHEAD_FROM_MS;
    const minutes = [...this.#minutes.values()].filter(
      ({ number, wheel }) => wheel?.isRead === true && number * MINUTE_MS <= soonMs,
    );
    for (const minute of minutes.sort((a, b) => a.number - b.number)) {
      const next = this.#peek(minute);
      const { partition } = minute;
      const soonest = next.slice(0, Math.ceil(next.length / 2));
      if (this.#near.countMissing(partition, soonest) === 0) continue;
      this.#readingAhead = this.#load(partition, next, 0)
        .catch((error: unknown) => this.#options.onError(error))
        .finally(() => {
          if (this.#minutes.get(minute.number) !== minute) this.#near.forget(partition);
          this.#readingAhead = undefined;
        });
      return;
    }
  }

  #peek({ wheel }: Minute): number[] {
    return wheel?.slots.peek(AHEAD_MAX) ?? [];
  }

  /** Reads records up to the available room, or `bytesMin`. */
  async #load(partition: PartitionView, offsets: number[], bytesMin: number): Promise<void> {
    // Later records that are due sooner replace the ones read ahead.
    if (this.#near.roomBytes === 0) this.#near.dropOthers(partition, new Set(offsets));
    const bytesMax = Math.max(bytesMin, this.#near.roomBytes);
    if (bytesMax > 0) await this.#near.load(partition, Float64Array.from(offsets).sort(), bytesMax);
  }

  async #endMinute(minute: Minute): Promise<void> {
    const { store, state } = this.#options;
    this.#minutes.delete(minute.number);
    this.#near.forget(minute.partition);
    await store.log.deleteTopic(minute.partition.topic);
    await store.append([state.toPending(["delay", minute.number], null)]);
  }
}
