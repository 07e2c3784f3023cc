// Delayed messages: kept durably by the minute in which they are due, on a wheel when that is near, delivered once.
import { PlatformError } from "@platform/kernel/errors";
import type { Clock } from "@platform/kernel/time";
import type { PartitionView } from "@platform/log";
import {
  decodeBatch,
  splitBatches,
  type NewRecord,
  type RecordHeader,
  type StoredRecord,
} from "@platform/log/batch";
import { ownHeaderPrefix, toMessage } from "../publish/message.ts";
import { readRecords } from "../store/read-records.ts";
import { readJson, type StateTable } from "../store/state.ts";
import type { Draft, Store } from "../store/store.ts";
import type { Topic, Topics } from "../topic/topics.ts";
import type { Backlog } from "./backlog.ts";
import { DelayWheel, slotMs } from "./delay-wheel.ts";
import type { Expiry } from "./expiry.ts";

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
/** Batches of delayed messages kept decoded while a minute is drained. */
const decodedMax = 32;

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
  readonly #decoded = new Map<string, StoredRecord[]>();
  /** Slots up to here, counted from 1970, have begun to be drained: nothing may be put into them. */
  #begunSlot: number;
  #draining: Promise<void> | undefined;
  #timer: NodeJS.Timeout | undefined;

  constructor(parts: Parts) {
    this.#parts = parts;
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
    await this.#draining;
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
    if (offset >= minute.wheel.readEnd) minute.wheel.slots.add(slot % minuteSlots, offset);
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
      if (minute.wheel === undefined) void this.#readMinute(minute);
      else if (minute.wheel.slots.count > 0 || minute.number < near - minutesAhead) isDue = true;
    }
    if (!isDue || this.#draining !== undefined) return;
    this.#draining = this.#drain().finally(() => {
      this.#draining = undefined;
    });
  }

  async #readMinute(minute: Minute): Promise<void> {
    const { partition, drained } = minute;
    const wheel = { slots: new DelayWheel(), readEnd: partition.durableEnd, isRead: false };
    minute.wheel = wheel;
    try {
      const { store, topics, backlog } = this.#parts;
      for await (const record of readRecords(store, partition, partition.logStart, wheel.readEnd)) {
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
    for (let from = 0; ;) {
      const slot = slots.findSlot(from, to);
      if (slot === undefined) return true;
      const offsets = slots.take(slot);
      for (let at = 0; at < offsets.length; at += drainMax) {
        const chunk = offsets.subarray(at, at + drainMax);
        try {
          await this.#deliver(minute, slot, chunk);
        } catch (error) {
          const { drained } = minute;
          for (const offset of offsets.subarray(at)) {
            if (drained.slot !== slot || offset > drained.offset) slots.add(slot, offset);
          }
          this.#parts.onError(error);
          await new Promise((resolve) => setTimeout(resolve, retryMs).unref());
          return false;
        }
      }
      from = slot + 1;
    }
  }

  async #deliver(minute: Minute, slot: number, offsets: Float64Array): Promise<void> {
    const { store, state, topics, backlog, expiry } = this.#parts;
    let delivered: { topic: Topic; draft: Draft; expiresAt: number | undefined }[] = [];
    let bytes = 0;
    const append = async (offset: number) => {
      const drafts = delivered.map(({ draft }) => draft);
      const expiring = delivered.map(({ draft, expiresAt }) =>
        expiresAt === undefined ? undefined : expiry.begin(draft.partition),
      );
      for (const entry of expiring) drafts.push(...(entry?.drafts ?? []));
      drafts.push(state.draftJson(["delay", minute.number], { slot, offset } satisfies Drained));
      const places = await store.append(drafts).catch((error: unknown) => {
        for (const entry of expiring) entry?.release();
        throw error;
      });
      minute.drained = { slot, offset };
      for (const [index, { topic, draft, expiresAt }] of delivered.entries()) {
        const place = places[index]!;
        backlog.noteDelayed(topic, -1);
        backlog.noteStored(topic, draft.partition.index, place);
        if (expiresAt !== undefined) expiring[index]!.settle(place, expiresAt);
      }
      delivered = [];
      bytes = 0;
    };
    for (const offset of offsets) {
      const record = await this.#readOne(minute.partition, offset);
      const { topicId, partition } = readTarget(record);
      const topic = topics.findByHexId(topicId);
      const view = topic?.stored.partitions[partition];
      // Its topic was deleted meanwhile, and with it what was on its way there.
      if (topic === undefined || view === undefined) continue;
      const headers = record.headers.filter(
        ({ key }) => key !== targetHeader && key !== partitionHeader && key !== dueHeader,
      );
      const { key, value } = record;
      const timestamp = this.#parts.clock.now();
      const { expiresAt } = toMessage(topic, partition, record);
      delivered.push({
        topic,
        draft: { partition: view, record: { key, value, headers, timestamp } },
        expiresAt,
      });
      bytes += value?.length ?? 0;
      if (bytes > drainBytesMax) await append(offset);
    }
    await append(offsets.at(-1)!);
  }

  // Messages that are due together were mostly published together, so a batch serves many.
  async #readOne(partition: PartitionView, offset: number): Promise<StoredRecord> {
    const place = `${partition.topic.name} `;
    for (const [key, records] of this.#decoded) {
      if (!key.startsWith(place) || records[0]!.offset > offset) continue;
      const found = records[offset - records[0]!.offset];
      if (found !== undefined) return found;
    }
    const { buffers } = await this.#parts.store.read(partition, offset, 1);
    const batch = splitBatches(buffers[0] ?? Buffer.alloc(0)).next();
    if (batch.done === true) throw new PlatformError("internal", "A delayed message is missing.");
    const { records } = await decodeBatch(batch.value);
    this.#decoded.set(`${place}${records[0]!.offset}`, records);
    if (this.#decoded.size > decodedMax) {
      const oldest = this.#decoded.keys().next();
      if (oldest.done !== true) this.#decoded.delete(oldest.value);
    }
    const found = records.find((record) => record.offset === offset);
    if (found === undefined) throw new PlatformError("internal", "A delayed message is missing.");
    return found;
  }

  async #endMinute(minute: Minute): Promise<void> {
    const { store, state } = this.#parts;
    this.#minutes.delete(minute.number);
    this.#decoded.clear();
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
