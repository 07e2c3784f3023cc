// The shared subscriptions of all topics: creation, durable cursors, backlogs.
import { PlatformError } from "@platform/kernel/errors";
import { every, type Clock, type RepeatingTimer } from "@platform/kernel/time";
import type { DeadLetterWriter } from "../deadletter/dead-letter-writer.ts";
import type { StateTable } from "../store/state.ts";
import type { Offsets } from "../store/offsets.ts";
import type { PendingRecord, Store } from "../store/store.ts";
import type { Tenant } from "../topic/name.ts";
import type { Topic, Topics } from "../topic/topics.ts";
import type { Backlog } from "./backlog.ts";
import {
  cursorKey,
  StoredCursors,
  toPendingChange,
  toPendingCursor,
  toPendingFailures,
  type CursorChange,
} from "./cursor-records.ts";
import type { ExpiredForGroups } from "./expiry.ts";
import type { Feeds } from "./feed.ts";
import { followNewPartitions, storeStarts } from "./new-partitions.ts";
import { PrivateSubscriptions } from "./private-subscriptions.ts";
import { SharedSubscription, type SharedSubscriptionListener } from "./shared-subscription.ts";
import { OffsetRanges } from "../store/offset-ranges.ts";
import type { RedeliverySettings } from "./redelivery.ts";
import { TOPIC_DELETED, type StartAt } from "./subscription.ts";
import { UndeliveredMessages, type UndeliveredLetter } from "./undelivered.ts";

/** Delay before acknowledgements are saved. A crash redelivers unsaved ones. */
const SAVE_MS = 20;
/** Time after which a group without members no longer counts as backlog. */
const QUIET_MS = 60 * 60 * 1000;
/** Maximum number of groups per topic. */
const GROUPS_PER_TOPIC_MAX = 1_000;
/** Interval of checks for redeliveries and acknowledgement timeouts. */
const TICK_MS = 50;
/** Delay after a failed write. */
const RETRY_MS = 1_000;

interface SharedSubscriptionsOptions {
  store: Store;
  state: StateTable;
  topics: Topics;
  offsets: Offsets;
  feeds: Feeds;
  backlog: Backlog;
  deadLetters: DeadLetterWriter;
  clock: Clock;
  redelivery: RedeliverySettings;
  /** Called when an unacknowledged message has become a dead letter. */
  onUndelivered: () => void;
  onError: (error: unknown) => void;
}

/** Shared subscriptions. The committed offset is the low watermark of a group's cursor; ranges above it are separate state. */
export class SharedSubscriptions {
  readonly #options: SharedSubscriptionsOptions;
  readonly #byTopic = new Map<
    Topic,
    Map<string, { group: SharedSubscription; unwatch: () => void }>
  >();
  readonly #stored: StoredCursors;
  readonly #unsaved = new Map<SharedSubscription, Set<number>>();
  readonly #undelivered: UndeliveredMessages;
  readonly #pending = new Set<SharedSubscription>();
  readonly #private: PrivateSubscriptions;
  #saving: Promise<void> | undefined;
  #timer: NodeJS.Timeout | "closed" | undefined;
  #ticker: RepeatingTimer | undefined;

  /** Restores the existing groups. */
  constructor(options: SharedSubscriptionsOptions) {
    this.#options = options;
    this.#undelivered = new UndeliveredMessages(options);
    this.#stored = new StoredCursors(options.state);
    this.#private = new PrivateSubscriptions({
      ...options,
      exhausted: (undelivered) => {
        this.#undelivered.add(undelivered);
        this.#saveSoon();
      },
      pending: (group) => this.#watch(group),
    });
    const { offsets, topics } = options;
    const tenants = new Set([...topics.all()].map(({ tenant }) => tenant));
    for (const tenant of tenants) {
      for (const { name, kind } of offsets.groups(tenant)) {
        if (kind !== "dispatch") continue;
        for (const topic of new Set([...offsets.list(tenant, name)].map((found) => found.topic))) {
          this.#make(tenant, name, topic);
        }
      }
    }
    // If this write is lost, the next start repeats it.
    options.store.append(this.#stored.takeOrphans()).catch(() => undefined);
    topics.watch({
      growing: (topic, ...range) => storeStarts(options, this.list(topic), ...range),
      grown: (topic) => {
        followNewPartitions(options, this.list(topic));
        this.#private.grow(topic);
      },
      deleted: (topic) => this.#forget(topic),
    });
  }

  find(tenant: Tenant, name: string, topic: Topic): SharedSubscription | undefined {
    const group = this.#byTopic.get(topic)?.get(name)?.group;
    return group?.tenant === tenant ? group : undefined;
  }

  *list(topic: Topic): Generator<SharedSubscription> {
    for (const { group } of this.#byTopic.get(topic)?.values() ?? []) yield group;
  }

  /** Number of members of a topic's groups. */
  memberCountOf(topic: Topic): number {
    let count = 0;
    for (const group of this.list(topic)) count += group.memberCount;
    return count;
  }

  /**
   * Returns the group, created durably if needed. A new one starts at its committed offset, otherwise at `startAt`.
   * Throws `conflict` for a Kafka consumer group, `overloaded` at a bound.
   */
  async ensure(
    tenant: Tenant,
    name: string,
    topic: Topic,
    startAt: StartAt,
  ): Promise<SharedSubscription> {
    const { offsets, store } = this.#options;
    const claim = offsets.toPendingClaim(tenant, name, "dispatch");
    const pendingRecords = claim === undefined ? [] : [claim];
    const group = this.find(tenant, name, topic) ?? this.#make(tenant, name, topic);
    const commits = [];
    for (const partition of topic.stored.partitions) {
      const { index, logStart, durableEnd } = partition;
      if (group.has(index)) continue;
      const asked = startAt(topic, partition) ?? durableEnd;
      const offset = Math.min(Math.max(asked, logStart), durableEnd);
      group.seek(index, { low: offset, ranges: [] });
      commits.push({ topic, partition: index, offset });
    }
    if (commits.length > 0) pendingRecords.push(...offsets.toPendingCommits(tenant, name, commits));
    await store.append(pendingRecords);
    offsets.apply(tenant, name, commits);
    return group;
  }

  /** Opens a subscription of one client that acknowledges; see `PrivateSubscriptions`. */
  openPrivate(topic: Topic, startAt: StartAt): { group: SharedSubscription; close: () => void } {
    return this.#private.open(topic, startAt);
  }

  /** Deletes a group's subscription to a topic durably, with its position. Its members get nothing more. */
  async remove(group: SharedSubscription): Promise<void> {
    const { store, offsets } = this.#options;
    const { tenant, name, topic } = group;
    await this.save();
    const groups = this.#byTopic.get(topic);
    const found = groups?.get(name);
    if (groups === undefined || found?.group !== group) return;
    found.unwatch();
    groups.delete(name);
    if (groups.size === 0) this.#byTopic.delete(topic);
    await store.append(this.#retire(group, "the subscription was deleted"));
    const places = [...offsets.list(tenant, name)];
    const own = places.filter((place) => place.topic === topic);
    if (own.length === places.length) await offsets.deleteGroup(tenant, name);
    else await offsets.deleteOffsets(tenant, name, own);
  }

  /** Moves a group durably: its unacknowledged messages are dropped, and it continues at `offset`. */
  async seek(group: SharedSubscription, partition: number, offset: number): Promise<void> {
    const { tenant, name, topic } = group;
    const commits = [{ topic, partition, offset }];
    const pendingRecords = this.#options.offsets.toPendingCommits(tenant, name, commits);
    pendingRecords.push(
      toPendingCursor(this.#options.state, group, partition, { low: offset, ranges: [] }),
    );
    // Messages that are read again start without failures.
    for (const failed of group.failuresOf(partition)?.offsets() ?? []) {
      pendingRecords.push(toPendingFailures(this.#options.state, group, partition, failed, 0));
    }
    await this.#options.store.append(pendingRecords);
    this.#options.offsets.apply(tenant, name, commits);
    group.seek(partition, { low: offset, ranges: [] });
  }

  /** True if every group of a topic has acknowledged an offset; `undefined` if there are no groups. */
  isAcknowledged(topic: Topic, partition: number, offset: number): boolean | undefined {
    const groups = this.#byTopic.get(topic);
    if (groups === undefined || groups.size === 0) return undefined;
    for (const { group } of groups.values()) {
      if (!group.isDone(partition, offset)) return false;
    }
    return true;
  }

  /** The lowest unacknowledged offset of all groups of a topic; `undefined` if there are no groups. */
  lowestOf(topic: Topic, partition: number): number | undefined {
    let lowest: number | undefined;
    for (const group of this.list(topic)) {
      const low = group.cursorOf(partition)?.low;
      if (low !== undefined && low < (lowest ?? Number.POSITIVE_INFINITY)) lowest = low;
    }
    return lowest;
  }

  /** Acknowledges an expired message for all groups; returns the records and a function to call when they are durable. */
  expire(topic: Topic, partition: number, offset: number): ExpiredForGroups {
    const pendingRecords: PendingRecord[] = [];
    const commits: (() => void)[] = [];
    for (const group of this.list(topic)) {
      group.expire(partition, offset);
      if (!group.has(partition)) continue;
      const change = this.#takeChange(group, partition, []);
      const { low } = change.cursor;
      pendingRecords.push(...toPendingChange(this.#options, change));
      commits.push(() => this.#apply(group, partition, low));
    }
    return { pendingRecords, apply: () => commits.forEach((commit) => commit()) };
  }

  /**
   * Saves acknowledgements and failures; resolves when they are durable, with dead letters. Rejects if the write fails;
   * the failure has then been reported, and the write is retried.
   */
  async save(): Promise<void> {
    // The changes of a failed write are part of the next one.
    while (this.#saving !== undefined) await this.#saving.catch(() => undefined);
    if (this.#unsaved.size === 0 && this.#undelivered.count === 0) return;
    this.#saving = this.#write().finally(() => {
      this.#saving = undefined;
      if (this.#undelivered.count > 0) this.#saveSoon();
    });
    await this.#saving;
  }

  /** Stops background work and saves the remaining changes. Members that leave later note some that are not saved. */
  async close(): Promise<void> {
    clearTimeout(this.#timer);
    this.#timer = "closed";
    await this.#ticker?.stop();
    await this.save().catch(() => undefined);
  }

  /** Appends dead letters with the changed cursors and failures as one entry. */
  async #write(): Promise<void> {
    const letters = await this.#undelivered.takeLetters();
    // The cursor must be in the entry of the dead letter.
    for (const { group, message } of letters) {
      // A subscription of one client has no stored cursor.
      if (this.find(group.tenant, group.name, group.topic) !== group) continue;
      this.#mark(group, message.partition);
    }
    const changes: CursorChange[] = [];
    try {
      const pendingRecords = letters.map(({ pending }) => pending);
      for (const [group, partitions] of this.#unsaved) {
        if (!group.topic.stored.live) continue;
        for (const partition of partitions) {
          const change = this.#takeChange(group, partition, letters);
          changes.push(change);
          pendingRecords.push(...toPendingChange(this.#options, change));
        }
      }
      this.#unsaved.clear();
      await this.#options.store.append(pendingRecords);
      for (const { group, partition, cursor } of changes) this.#apply(group, partition, cursor.low);
      for (const { group, message } of letters) group.bury(message);
      for (const _ of letters) this.#options.onUndelivered();
    } catch (error) {
      for (const { group, message } of letters) group.retryLater(message);
      for (const { group, partition, failures } of changes) {
        group.failuresOf(partition)?.putBack(failures);
        this.#mark(group, partition);
      }
      this.#saveSoon(RETRY_MS);
      this.#options.onError(error);
      throw error;
    }
  }

  /** The change of a partition that is written together with `letters`. */
  #takeChange(
    group: SharedSubscription,
    partition: number,
    letters: readonly UndeliveredLetter[],
  ): CursorChange {
    const own = letters.filter((one) => one.group === group && one.message.partition === partition);
    const failures = group.failuresOf(partition)?.takeChanges() ?? [];
    const stored = group.cursorOf(partition)!;
    if (own.length === 0) return { group, partition, cursor: stored, failures };
    const done = new OffsetRanges(stored);
    for (const { message } of own) done.add(message.offset);
    return {
      group,
      partition,
      cursor: done.toStored(),
      failures: failures.map(([offset, count]) => [offset, done.has(offset) ? 0 : count]),
    };
  }

  #make(tenant: Tenant, name: string, topic: Topic): SharedSubscription {
    const groups = this.#byTopic.get(topic) ?? new Map();
    if (groups.size >= GROUPS_PER_TOPIC_MAX) {
      throw new PlatformError("overloaded", `A topic has ${GROUPS_PER_TOPIC_MAX} groups at most.`);
    }
    const { feeds, backlog, offsets, clock, redelivery } = this.#options;
    const listener: SharedSubscriptionListener = {
      changed: (changed, partition) => this.#note(changed, partition),
      consumed: ({ partition, offset }) => backlog.noteConsumed(topic, partition, offset + 1),
      exhausted: (giving, message, failures) =>
        this.#undelivered.add({ group: giving, message, failures }),
      pending: (waiting) => this.#watch(waiting),
    };
    const group = new SharedSubscription(
      { tenant, name, topic },
      { feeds, clock, redelivery, listener },
    );
    for (const { index } of topic.stored.partitions) {
      const committed = offsets.find(tenant, name, topic, index);
      if (committed === undefined) continue;
      const { cursor, failures } = this.#stored.take(group, index, committed.offset);
      group.seek(index, cursor, failures);
    }
    const isQuiet = () => clock.monotonicMs() - (group.emptySinceMs ?? Infinity) > QUIET_MS;
    const unwatch = backlog.watchGroup(topic, {
      isTaken: () => group.memberCount > 0,
      countBacklog: () => (isQuiet() ? 0 : group.countBacklog()),
    });
    groups.set(name, { group, unwatch });
    this.#byTopic.set(topic, groups);
    return group;
  }

  #note(group: SharedSubscription, partition: number): void {
    this.#mark(group, partition);
    this.#saveSoon();
  }

  #mark(group: SharedSubscription, partition: number): void {
    const partitions = this.#unsaved.get(group) ?? new Set<number>();
    partitions.add(partition);
    this.#unsaved.set(group, partitions);
  }

  #saveSoon(afterMs = SAVE_MS): void {
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined;
      void this.save().catch(() => undefined);
    }, afterMs);
  }

  #watch(group: SharedSubscription): void {
    this.#pending.add(group);
    this.#ticker ??= every(TICK_MS, () => this.#tick(), this.#options.onError);
  }

  #tick(): void {
    const nowMs = this.#options.clock.monotonicMs();
    for (const one of this.#pending) if (!one.tick(nowMs)) this.#pending.delete(one);
    if (this.#pending.size > 0) return;
    void this.#ticker?.stop();
    this.#ticker = undefined;
  }

  #apply({ tenant, name, topic }: SharedSubscription, partition: number, offset: number): void {
    this.#options.offsets.apply(tenant, name, [{ topic, partition, offset }]);
  }

  #forget(topic: Topic): void {
    const groups = this.#byTopic.get(topic);
    this.#byTopic.delete(topic);
    const pendingRecords: PendingRecord[] = [];
    for (const { group, unwatch } of groups?.values() ?? []) {
      unwatch();
      pendingRecords.push(...this.#retire(group, TOPIC_DELETED));
    }
    this.#private.end(topic);
    // If this write is lost, the next start ignores the entries.
    this.#options.store.append(pendingRecords).catch(() => undefined);
  }

  /** Ends a group; returns the records that delete its state. */
  #retire(group: SharedSubscription, reason: string): PendingRecord[] {
    const { state } = this.#options;
    this.#unsaved.delete(group);
    this.#pending.delete(group);
    group.end(reason);
    return group.topic.stored.partitions.flatMap(({ index }) => [
      state.toPending(cursorKey(group, index), null),
      ...Array.from(group.failuresOf(index)?.offsets() ?? [], (offset) =>
        toPendingFailures(state, group, index, offset, 0),
      ),
    ]);
  }
}
