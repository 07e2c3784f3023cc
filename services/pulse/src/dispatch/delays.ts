// Delayed messages: kept durably by the minute in which they are due, on a wheel when that is near, delivered once.
import { setTimeout as sleep } from "node:timers/promises";
import { PlatformError } from "@platform/kernel/errors";
import type { Clock } from "@platform/kernel/time";
import type { PartitionView } from "@platform/log";
import type { NewRecord, RecordHeader, StoredRecord } from "@platform/log/batch";
import { ownHeaderPrefix, toMessage } from "../message.ts";
import { readRecords } from "../store/read-records.ts";
import { readJson, type StateTable } from "../store/state.ts";
import type { Draft, Store } from "../store/store.ts";
import type { Topic, Topics } from "../topic/topics.ts";
import type { Backlog } from "./backlog.ts";
import { DelayWheel, slotMs, type DueOffsets } from "./delay-wheel.ts";
import type { Expiry } from "./expiry.ts";
import { NearRecords } from "./near-records.ts";
import { Pace } from "./pace.ts";

/*
 * A delayed message is a record of the topic `__delay.<minute>` with three more headers: where it goes and when. Minutes
 * that are near are read into a wheel. When slots are due, one journal entry holds their messages, now records of their
 * topics, and the fact how far the minute is drained; so after a crash each was delivered or will be. A slot that
 * something is still being written into is not drained before that is durable.
 */

const topicPrefix = "__delay.";
const targetHeader = `${ownHeaderPrefix}delay-topic`;
const partitionHeader = `${ownHeaderPrefix}delay-partition`;
const dueHeader = `${ownHeaderPrefix}delay-due`;
const minuteMs = 60_000;
const minuteSlots = minuteMs / slotMs;
/** Minutes that are kept on wheels ahead of now. */
const minutesAhead = 1;
/** Messages that one entry delivers at most. */
const drainMax = 1_000;
const drainBytesMax = 2 * 1024 * 1024;
const retryMs = 1_000;
/** Messages that are read ahead of their time at once, their bytes, how often, and how long before their minute begins. */
const aheadMax = 80_000;
const aheadBytesMax = 64 * 1024 * 1024;
const aheadEveryMs = 500;
const aheadFromMs = 5_000;
/** Messages of one entry that are read one by one; more of them are reason to read ahead at once. */
const scatteredMin = 50;
/** A minute that begins later than this is read at leisure. */
const hurryMs = 10_000;
/** What is stored so short before it is due stays in memory until then. */
const keptSlots = 2_000 / slotMs;

/** The longest delay that is taken: thirty days. */
export const delayMsMax = 30 * 24 * 60 * minuteMs;

/** A delayed message on its way into the log; to be ended by `note` or `release`. */
export type DelayDraft = { draft: Draft; dueMs: number; slot: number };

type Drained = { slot: number; offset: number };

type Minute = {
  number: number;
  partition: PartitionView;
  drained: Drained;
  /** Messages below were there before this start, and were not counted as waiting yet. */
  uncountedEnd: number;
  /** Set while the minute is near. What lies below `readEnd` was or is being read from the log. */
  wheel: { slots: DelayWheel; readEnd: number; isRead: boolean } | undefined;
};

type Parts = {
  store: Store;
  state: StateTable;
  topics: Topics;
  backlog: Backlog;
  expiry: Expiry;
  clock: Clock;
  onError: (error: unknown) => void;
};

/** The delayed messages of all topics. */
export class Delays {
  readonly #parts: Parts;
  readonly #minutes = new Map<number, Minute>();
  readonly #writing = new Map<number, number>();
  readonly #near: NearRecords;
  /** Slots up to here, counted from 1970, have begun to be drained: nothing may be put into them. */
  #begunSlot: number;
  #draining: Promise<void> | undefined;
  #readingAhead: Promise<void> | undefined;
  #readAheadAtMs = 0;
  readonly #reading = new Set<Promise<void>>();
  #isStopped = false;
  #timer: NodeJS.Timeout | undefined;

  constructor(parts: Parts) {
    this.#parts = parts;
    this.#near = new NearRecords(parts.store, aheadBytesMax);
    const drained = new Map(
      parts.state
        .take("delay")
        .map(({ key, value }) => [Number(key[1]), readJson(value) as Drained]),
    );
    for (const topic of parts.store.log.topics()) {
      if (!topic.name.startsWith(topicPrefix)) continue;
      const number = Number(topic.name.slice(topicPrefix.length));
      this.#addMinute(number, topic.partitions[0]!, drained.get(number));
    }
    this.#begunSlot = Math.floor(parts.clock.now() / slotMs);
  }

  /** Begins to deliver; what became due meanwhile comes first. */
  start(): void {
    this.#timer = setInterval(() => this.#tick(), slotMs);
  }

  /** Stops delivering; resolves when nothing is under way. */
  async stop(): Promise<void> {
    clearInterval(this.#timer);
    this.#isStopped = true;
    await Promise.all([this.#draining, this.#readingAhead, ...this.#reading]);
  }

  /** Messages on the wheels: those that are due within the next minute or two. */
  get nearCount(): number {
    let count = 0;
    for (const { wheel } of this.#minutes.values()) count += wheel?.slots.count ?? 0;
    return count;
  }

  /** The draft that keeps a record until `dueMs`, for a partition of a topic. */
  async draft(
    topic: Topic,
    partition: number,
    record: NewRecord,
    dueMs: number,
  ): Promise<DelayDraft> {
    for (;;) {
      // Never early, and never into a slot that has begun: the clock may have been set back.
      const slot = Math.max(Math.ceil(dueMs / slotMs), this.#begunSlot + 2);
      const number = Math.floor(slot / minuteSlots);
      const minute = this.#minutes.get(number);
      if (minute === undefined) {
        await this.#makeMinute(number);
        continue;
      }
      this.#writing.set(slot, (this.#writing.get(slot) ?? 0) + 1);
      const headers: RecordHeader[] = [
        ...record.headers,
        { key: targetHeader, value: topic.stored.id },
        { key: partitionHeader, value: Buffer.from(String(partition)) },
        { key: dueHeader, value: Buffer.from(String(slot)) },
      ];
      return {
        draft: { partition: minute.partition, record: { ...record, headers } },
        dueMs,
        slot,
      };
    }
  }

  /** The draft is durable at `offset`. */
  note({ slot, draft }: DelayDraft, offset: number): void {
    this.#endWriting(slot);
    const minute = this.#minutes.get(Math.floor(slot / minuteSlots));
    if (minute?.partition !== draft.partition || minute.wheel === undefined) return;
    if (offset < minute.wheel.readEnd) return;
    minute.wheel.slots.add(slot % minuteSlots, offset);
    const isNear = slot - this.#parts.clock.now() / slotMs <= keptSlots;
    if (!isNear || this.#near.roomBytes === 0) return;
    this.#near.keep(minute.partition, { ...draft.record, offset });
  }

  /** The draft was not stored. */
  release({ slot }: DelayDraft): void {
    this.#endWriting(slot);
  }

  #endWriting(slot: number): void {
    const count = (this.#writing.get(slot) ?? 1) - 1;
    if (count === 0) this.#writing.delete(slot);
    else this.#writing.set(slot, count);
  }

  async #makeMinute(number: number): Promise<void> {
    const { store } = this.#parts;
    const topic = await store.log.createTopic(`${topicPrefix}${number}`, { orGet: true });
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
    const now = this.#parts.clock.now();
    const near = Math.floor(now / minuteMs) + minutesAhead;
    let isDue = false;
    for (const minute of this.#minutes.values()) {
      if (minute.number > near) continue;
      if (minute.wheel === undefined) this.#beginReading(minute);
      else if (minute.wheel.slots.count > 0 || minute.number < near - minutesAhead) isDue = true;
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
      const { store, topics, backlog } = this.#parts;
      const pace = new Pace();
      for await (const record of readRecords(store, partition, partition.logStart, wheel.readEnd)) {
        if (this.#isStopped) return;
        if (minute.number * minuteMs - this.#parts.clock.now() > hurryMs) {
          const resting = pace.rest();
          if (resting !== undefined) await resting;
        }
        const { slot, topicId } = readTarget(record);
        const place = slot % minuteSlots;
        if (place < drained.slot || (place === drained.slot && record.offset <= drained.offset)) {
          continue;
        }
        wheel.slots.add(place, record.offset);
        const topic = record.offset < minute.uncountedEnd ? topics.findByHexId(topicId) : undefined;
        if (topic !== undefined) backlog.noteDelayed(topic, 1);
      }
      wheel.isRead = true;
    } catch (error) {
      this.#parts.onError(error);
      setTimeout(() => {
        if (minute.wheel === wheel) minute.wheel = undefined;
      }, retryMs).unref();
    }
  }

  async #drain(): Promise<void> {
    // An earlier minute that is not read yet holds nothing back but itself.
    let limit = Math.floor(this.#parts.clock.now() / slotMs);
    for (const slot of this.#writing.keys()) limit = Math.min(limit, slot - 1);
    this.#begunSlot = Math.max(this.#begunSlot, limit);
    for (const minute of [...this.#minutes.values()].sort((a, b) => a.number - b.number)) {
      if (minute.wheel?.isRead !== true || minute.number * minuteSlots > limit) continue;
      const to = Math.min(minuteSlots - 1, limit - minute.number * minuteSlots);
      if (!(await this.#drainMinute(minute, minute.wheel.slots, to))) return;
      if (to === minuteSlots - 1 && minute.wheel.slots.count === 0) await this.#endMinute(minute);
    }
  }

  async #drainMinute(minute: Minute, slots: DelayWheel, to: number): Promise<boolean> {
    for (;;) {
      const due = slots.take(to, drainMax);
      if (due.offsets.length === 0) return true;
      for (let at = 0; at < due.offsets.length;) {
        try {
          at += await this.#deliver(minute, due, at);
        } catch (error) {
          for (; at < due.offsets.length; at++) slots.add(due.slots[at]!, due.offsets[at]!);
          this.#parts.onError(error);
          await sleep(retryMs, undefined, { ref: false });
          return false;
        }
      }
    }
  }

  /** Delivers some of what is due, from the place `at` on, as one entry; gives how many. */
  async #deliver(minute: Minute, due: DueOffsets, at: number): Promise<number> {
    const { store, state, topics, backlog, expiry, clock } = this.#parts;
    const records = await this.#readDue(minute, due, at);
    const delivered: { topic: Topic; draft: Draft; expiresAt: number | undefined }[] = [];
    const timestamp = clock.now();
    for (const record of records) {
      const { topicId, partition } = readTarget(record);
      const topic = topics.findByHexId(topicId);
      const view = topic?.stored.partitions[partition];
      // Its topic was deleted meanwhile, and with it what was on its way there.
      if (topic === undefined || view === undefined) continue;
      const headers = record.headers.filter(
        ({ key }) => key !== targetHeader && key !== partitionHeader && key !== dueHeader,
      );
      const { key, value } = record;
      const { expiresAt } = toMessage(topic, partition, record);
      const draft = { partition: view, record: { key, value, headers, timestamp } };
      delivered.push({ topic, draft, expiresAt });
    }
    const last = at + records.length - 1;
    const drained: Drained = { slot: due.slots[last]!, offset: due.offsets[last]! };
    const drafts = delivered.map(({ draft }) => draft);
    const expiring = delivered.map(({ draft, expiresAt }) =>
      expiresAt === undefined ? undefined : expiry.begin(draft.partition),
    );
    for (const entry of expiring) drafts.push(...(entry?.drafts ?? []));
    drafts.push(state.draftJson(["delay", minute.number], drained));
    const places = await store.append(drafts).catch((error: unknown) => {
      for (const entry of expiring) entry?.release();
      throw error;
    });
    minute.drained = drained;
    for (const [index, { topic, draft, expiresAt }] of delivered.entries()) {
      const place = places[index]!;
      backlog.noteDelayed(topic, -1);
      backlog.noteStored(topic, draft.partition.index, place);
      if (expiresAt !== undefined) expiring[index]!.settle(place, expiresAt);
    }
    for (const { offset } of records) this.#near.drop(minute.partition, offset);
    return records.length;
  }

  /** The records that are due from the place `at` on: as many as one entry may deliver, one at least. */
  async #readDue(minute: Minute, due: DueOffsets, at: number): Promise<StoredRecord[]> {
    const { partition } = minute;
    const offsets = due.offsets.slice(at, at + drainMax);
    if (this.#near.countMissing(partition, offsets) > 0) await this.#readingAhead;
    const missing = this.#near.countMissing(partition, offsets);
    // What is scattered over the log costs a pass over it: then what is due next comes along.
    const wanted = missing > scatteredMin ? [...offsets, ...this.#peek(minute)] : offsets;
    if (missing > 0) await this.#load(partition, wanted, drainBytesMax);
    if (this.#near.get(partition, offsets[0]!) === undefined) {
      await this.#near.load(partition, Float64Array.of(offsets[0]!), 1);
    }
    const records: StoredRecord[] = [];
    let bytes = 0;
    for (const offset of offsets) {
      const record = this.#near.get(partition, offset);
      if (record === undefined || bytes > drainBytesMax) break;
      records.push(record);
      bytes += record.value?.length ?? 0;
    }
    if (records.length > 0) return records;
    throw new PlatformError("internal", "A delayed message is missing.");
  }

  /** Reads ahead what is due next, before what was read ahead is used up. */
  #readAhead(): void {
    if (this.#readingAhead !== undefined || performance.now() < this.#readAheadAtMs) return;
    this.#readAheadAtMs = performance.now() + aheadEveryMs;
    const soonMs = this.#parts.clock.now() + aheadFromMs;
    const minutes = [...this.#minutes.values()].filter(
      ({ number, wheel }) => wheel?.isRead === true && number * minuteMs <= soonMs,
    );
    for (const minute of minutes.sort((a, b) => a.number - b.number)) {
      const next = this.#peek(minute);
      const { partition } = minute;
      const soonest = next.slice(0, Math.ceil(next.length / 2));
      if (this.#near.countMissing(partition, soonest) === 0) continue;
      this.#readingAhead = this.#load(partition, next, 0)
        .catch((error: unknown) => this.#parts.onError(error))
        .finally(() => {
          if (this.#minutes.get(minute.number) !== minute) this.#near.forget(partition);
          this.#readingAhead = undefined;
        });
      return;
    }
  }

  #peek({ wheel }: Minute): number[] {
    return wheel?.slots.peek(aheadMax) ?? [];
  }

  /** Reads records as far as there is room, or `bytesMin` of them. */
  async #load(partition: PartitionView, offsets: number[], bytesMin: number): Promise<void> {
    // What came later but is due sooner takes the room of what was read ahead before.
    if (this.#near.roomBytes === 0) this.#near.dropOthers(partition, new Set(offsets));
    const bytesMax = Math.max(bytesMin, this.#near.roomBytes);
    if (bytesMax > 0) await this.#near.load(partition, Float64Array.from(offsets).sort(), bytesMax);
  }

  async #endMinute(minute: Minute): Promise<void> {
    const { store, state } = this.#parts;
    this.#minutes.delete(minute.number);
    this.#near.forget(minute.partition);
    await store.log.deleteTopic(minute.partition.topic);
    await store.append([state.draft(["delay", minute.number], null)]);
  }
}

function readTarget(record: StoredRecord): { topicId: string; partition: number; slot: number } {
  const find = (name: string) => record.headers.find(({ key }) => key === name)?.value;
  return {
    topicId: find(targetHeader)?.toString("hex") ?? "",
    partition: Number(find(partitionHeader)?.toString()),
    slot: Number(find(dueHeader)?.toString()),
  };
}
