// The dispatch groups of all topics: found or made, their cursors durable, their backlogs counted.
import { PlatformError } from "@platform/kernel/errors";
import { readJson, type StateTable } from "../store/state.ts";
import type { Offsets } from "../store/offsets.ts";
import type { Draft, Store } from "../store/store.ts";
import type { Tenant } from "../topic/name.ts";
import type { Topic, Topics } from "../topic/topics.ts";
import type { Backlog } from "./backlog.ts";
import type { ExpiredForGroups } from "./expiry.ts";
import type { Feeds } from "./feed.ts";
import { Group } from "./group.ts";
import type { StoredRanges } from "./offset-ranges.ts";
import type { StartAt } from "./subscription.ts";

/** How long acknowledgements gather before they are written down. A crash delivers those once more. */
const saveMs = 20;
/** A group without members stops counting as backlog after this. */
const quietMs = 60 * 60 * 1000;
/** Groups that one topic may have. */
const groupsPerTopicMax = 1_000;

type Parts = {
  store: Store;
  state: StateTable;
  topics: Topics;
  offsets: Offsets;
  feeds: Feeds;
  backlog: Backlog;
  onError: (error: unknown) => void;
};

/** The groups. A committed offset is the low watermark of the group's cursor; what lies above it is a fact beside it. */
export class Groups {
  readonly #parts: Parts;
  readonly #byTopic = new Map<Topic, Map<string, { group: Group; unwatch: () => void }>>();
  readonly #cursors = new Map<string, StoredRanges>();
  readonly #unsaved = new Map<Group, Set<number>>();
  #saving: Promise<void> | undefined;
  #timer: NodeJS.Timeout | undefined;

  /** Takes over the groups that were there before. */
  constructor(parts: Parts) {
    this.#parts = parts;
    for (const { key, value } of parts.state.take("cursor")) {
      this.#cursors.set(JSON.stringify(key), readJson(value) as StoredRanges);
    }
    const { offsets, topics } = parts;
    const tenants = new Set([...topics.all()].map(({ tenant }) => tenant));
    for (const tenant of tenants) {
      for (const { name, kind } of offsets.groups(tenant)) {
        if (kind !== "dispatch") continue;
        for (const topic of new Set([...offsets.list(tenant, name)].map((found) => found.topic))) {
          this.#make(tenant, name, topic);
        }
      }
    }
    this.#cursors.clear();
    topics.watch({ deleted: (topic) => this.#forget(topic) });
  }

  find(tenant: Tenant, name: string, topic: Topic): Group | undefined {
    const group = this.#byTopic.get(topic)?.get(name)?.group;
    return group?.tenant === tenant ? group : undefined;
  }

  *list(topic: Topic): Generator<Group> {
    for (const { group } of this.#byTopic.get(topic)?.values() ?? []) yield group;
  }

  /** Members of a topic's groups. */
  memberCountOf(topic: Topic): number {
    let count = 0;
    for (const group of this.list(topic)) count += group.memberCount;
    return count;
  }

  /**
   * The group, made durably if it is not there; a new one begins at its committed offset, else where `startAt` says.
   * Throws `conflict` for a group of Kafka's, `overloaded` at a bound.
   */
  async ensure(tenant: Tenant, name: string, topic: Topic, startAt: StartAt): Promise<Group> {
    const { offsets, store } = this.#parts;
    const claim = offsets.draftClaim(tenant, name, "dispatch");
    const drafts = claim === undefined ? [] : [claim];
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
    if (commits.length > 0) drafts.push(...offsets.draftCommit(tenant, name, commits));
    await store.append(drafts);
    offsets.apply(tenant, name, commits);
    return group;
  }

  /** Moves a group durably: what it holds unacknowledged there is forgotten, and read again from `offset` on. */
  async seek(group: Group, partition: number, offset: number): Promise<void> {
    const { tenant, name, topic } = group;
    const commits = [{ topic, partition, offset }];
    const drafts = this.#parts.offsets.draftCommit(tenant, name, commits);
    drafts.push(this.#draftCursor(group, partition, { low: offset, ranges: [] }));
    await this.#parts.store.append(drafts);
    this.#parts.offsets.apply(tenant, name, commits);
    group.seek(partition, { low: offset, ranges: [] });
  }

  /** Whether every group of a topic has acknowledged an offset; undefined where there are no groups. */
  isAcknowledged(topic: Topic, partition: number, offset: number): boolean | undefined {
    const groups = this.#byTopic.get(topic);
    if (groups === undefined || groups.size === 0) return undefined;
    for (const { group } of groups.values()) {
      if (!group.isDone(partition, offset)) return false;
    }
    return true;
  }

  /** The lowest offset that a group of the topic has not acknowledged; undefined where there are no groups. */
  lowestOf(topic: Topic, partition: number): number | undefined {
    let lowest: number | undefined;
    for (const group of this.list(topic)) {
      const low = group.cursorOf(partition)?.low;
      if (low !== undefined && low < (lowest ?? Number.POSITIVE_INFINITY)) lowest = low;
    }
    return lowest;
  }

  /** Acknowledges an expired message for all groups: the drafts of that, and what to do when they are durable. */
  expire(topic: Topic, partition: number, offset: number): ExpiredForGroups {
    const drafts: Draft[] = [];
    const commits: (() => void)[] = [];
    for (const group of this.list(topic)) {
      group.expire(partition, offset);
      const { tenant, name } = group;
      const low = group.cursorOf(partition)?.low;
      if (low === undefined) continue;
      drafts.push(...this.#draftGroup(group, partition));
      commits.push(() =>
        this.#parts.offsets.apply(tenant, name, [{ topic, partition, offset: low }]),
      );
    }
    return { drafts, apply: () => commits.forEach((commit) => commit()) };
  }

  /** Writes down what was acknowledged; resolves when it is durable. */
  async save(): Promise<void> {
    await this.#saving;
    if (this.#unsaved.size === 0) return;
    const drafts: Draft[] = [];
    const applies: (() => void)[] = [];
    for (const [group, partitions] of this.#unsaved) {
      const { tenant, name, topic } = group;
      if (!topic.stored.live) continue;
      for (const partition of partitions) {
        const offset = group.cursorOf(partition)!.low;
        drafts.push(...this.#draftGroup(group, partition));
        applies.push(() => this.#parts.offsets.apply(tenant, name, [{ topic, partition, offset }]));
      }
    }
    const saved = new Map(this.#unsaved);
    this.#unsaved.clear();
    this.#saving = this.#parts.store.append(drafts).then(
      () => {
        for (const apply of applies) apply();
      },
      (error: unknown) => {
        for (const [group, partitions] of saved) {
          for (const partition of partitions) this.#note(group, partition);
        }
        this.#parts.onError(error);
      },
    );
    await this.#saving;
  }

  /** Ends what runs by itself, saving what is left. */
  async close(): Promise<void> {
    clearTimeout(this.#timer);
    await this.save();
  }

  #make(tenant: Tenant, name: string, topic: Topic): Group {
    const groups = this.#byTopic.get(topic) ?? new Map();
    if (groups.size >= groupsPerTopicMax) {
      throw new PlatformError("overloaded", `A topic has ${groupsPerTopicMax} groups at most.`);
    }
    const { feeds, backlog, offsets } = this.#parts;
    const listener = {
      changed: (changed: Group, partition: number) => this.#note(changed, partition),
      taken: ({ partition, offset }: { partition: number; offset: number }) =>
        backlog.noteTaken(topic, partition, offset + 1),
    };
    const group = new Group({ tenant, name, topic }, feeds, listener, performance.now());
    for (const { index } of topic.stored.partitions) {
      const committed = offsets.find(tenant, name, topic, index);
      if (committed === undefined) continue;
      const above = this.#cursors.get(JSON.stringify(cursorKey(group, index)));
      const ranges = above?.low === committed.offset ? above.ranges : [];
      group.seek(index, { low: committed.offset, ranges });
    }
    const unwatch = backlog.watchGroup(topic, () => {
      const quiet = group.emptySinceMs !== undefined && performance.now() - group.emptySinceMs;
      return quiet !== false && quiet > quietMs ? 0 : group.countBacklog();
    });
    groups.set(name, { group, unwatch });
    this.#byTopic.set(topic, groups);
    return group;
  }

  #note(group: Group, partition: number): void {
    const partitions = this.#unsaved.get(group) ?? new Set<number>();
    partitions.add(partition);
    this.#unsaved.set(group, partitions);
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined;
      void this.save();
    }, saveMs);
  }

  #draftGroup(group: Group, partition: number): Draft[] {
    const { tenant, name, topic } = group;
    const cursor = group.cursorOf(partition);
    if (cursor === undefined) return [];
    const commits = [{ topic, partition, offset: cursor.low }];
    return [
      ...this.#parts.offsets.draftCommit(tenant, name, commits),
      this.#draftCursor(group, partition, cursor),
    ];
  }

  #draftCursor(group: Group, partition: number, cursor: StoredRanges): Draft {
    const key = cursorKey(group, partition);
    if (cursor.ranges.length === 0) return this.#parts.state.draft(key, null);
    return this.#parts.state.draftJson(key, cursor);
  }

  #forget(topic: Topic): void {
    const groups = this.#byTopic.get(topic);
    this.#byTopic.delete(topic);
    const drafts: Draft[] = [];
    for (const { group, unwatch } of groups?.values() ?? []) {
      unwatch();
      this.#unsaved.delete(group);
      group.end();
      for (const { index } of topic.stored.partitions) {
        drafts.push(this.#parts.state.draft(cursorKey(group, index), null));
      }
    }
    // If it is lost, the next start leaves them out.
    this.#parts.store.append(drafts).catch(() => undefined);
  }
}

function cursorKey(group: Group, partition: number) {
  const id = group.topic.stored.id.toString("hex");
  return ["cursor", group.tenant, group.name, id, partition] as const;
}
