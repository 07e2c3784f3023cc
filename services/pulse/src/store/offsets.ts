// Committed offsets of all groups, and whether a group is a Kafka consumer group or a shared subscription.
import { PlatformError } from "@platform/kernel/errors";
import type { Tenant } from "../topic/name.ts";
import type { Topic, Topics } from "../topic/topics.ts";
import { readJson, type StateTable } from "./state.ts";
import type { PendingRecord, Store } from "./store.ts";

/** Longest group name in bytes of UTF-8. */
const GROUP_NAME_BYTES_MAX = 255;
/** Longest metadata of a commit in bytes of UTF-8, as in Kafka. */
const METADATA_BYTES_MAX = 4096;

/** Kinds of groups. */
export const GROUP_KINDS = ["kafka", "dispatch"] as const;

/** The owner of a group: the Kafka protocol, or the broker's dispatch. Never both. */
export type GroupKind = (typeof GROUP_KINDS)[number];

/**
 * A committed offset: the next one to read. Negative if a Kafka client stored metadata without an offset, which Kafka
 * allows. `leaderEpoch` is -1 if the client sent none.
 */
export interface CommittedOffset {
  offset: number;
  leaderEpoch: number;
  metadata: string;
  /** Epoch milliseconds. */
  committedAt: number;
}

/** One offset to commit. */
export interface OffsetCommit {
  topic: Topic;
  partition: number;
  offset: number;
  leaderEpoch?: number;
  metadata?: string;
}

/** A committed offset with its topic and partition. */
export type StoredOffset = CommittedOffset & { topic: Topic; partition: number };

/** Messages that a group has not read in a partition, and its end; without an offset all of them. */
export function measureLag({
  topic,
  partition,
  offset,
}: Pick<StoredOffset, "topic" | "partition" | "offset">): { lag: number; latest: number } {
  const { logStart = 0, durableEnd = 0 } = topic.stored.partitions[partition] ?? {};
  const lag = Math.max(0, durableEnd - (offset < 0 ? logStart : offset));
  return { lag, latest: durableEnd };
}

/** Limits of `Offsets`. */
export interface OffsetLimits {
  groupsPerTenantMax: number;
  offsetsMax: number;
}

interface Group {
  kind: GroupKind | undefined;
  /** By topic id in hex, then by partition. */
  topics: Map<string, Map<number, CommittedOffset>>;
}

/**
 * The committed offsets. A resolved `commit` survives a crash. Offsets of a deleted topic are deleted with it.
 * Errors: `not_found`, `validation_failed`, `conflict` (the group is of the other kind), `overloaded`.
 */
export class Offsets {
  readonly #store: Store;
  readonly #state: StateTable;
  readonly #topics: Topics;
  readonly #limits: OffsetLimits;
  readonly #tenants = new Map<Tenant, Map<string, Group>>();
  #count = 0;

  private constructor(store: Store, state: StateTable, topics: Topics, limits: OffsetLimits) {
    this.#store = store;
    this.#state = state;
    this.#topics = topics;
    this.#limits = limits;
    topics.watch({ deleted: (topic) => this.#forgetTopic(topic) });
  }

  /** Loads the stored offsets. */
  static open(store: Store, state: StateTable, topics: Topics, limits: OffsetLimits): Offsets {
    const book = new Offsets(store, state, topics, limits);
    for (const { key, value } of state.take("group")) {
      const [, tenant, name] = key as [string, string, string];
      const { kind } = readJson(value) as { kind: GroupKind };
      book.#group(tenant, name).kind = kind;
    }
    const orphans: PendingRecord[] = [];
    for (const { key, value } of state.take("offset")) {
      const [, tenant, name, id, partition] = key as [string, string, string, string, number];
      if (topics.findByHexId(id) === undefined) orphans.push(state.toPending(key, null));
      else book.#keep(tenant, name, id, partition, readJson(value) as CommittedOffset);
    }
    // Completes deletions that a crash interrupted; if this write is lost, the next start repeats it.
    store.append(orphans).catch(() => undefined);
    return book;
  }

  /** Claims a group for one kind, durably; `conflict` if it is of the other kind. */
  async claim(tenant: Tenant, group: string, kind: GroupKind): Promise<void> {
    const pending = this.toPendingClaim(tenant, group, kind);
    if (pending === undefined) return;
    await this.#store.append([pending]);
  }

  /** Like `claim`, without the append; `undefined` if nothing needs to be written. */
  toPendingClaim(tenant: Tenant, group: string, kind: GroupKind): PendingRecord | undefined {
    checkGroupName(group);
    const known = this.#tenants.get(tenant)?.get(group);
    if (known?.kind === kind) return undefined;
    if (known?.kind !== undefined) {
      const owner = known.kind === "kafka" ? "Kafka's" : "the broker's";
      throw new PlatformError("conflict", `The group belongs to ${owner} already.`);
    }
    this.#checkRoom(tenant, group);
    this.#group(tenant, group).kind = kind;
    return this.#state.toPendingJson(["group", tenant, group], { kind });
  }

  kindOf(tenant: Tenant, group: string): GroupKind | undefined {
    return this.#tenants.get(tenant)?.get(group)?.kind;
  }

  /** Commits durably, all or nothing. */
  async commit(tenant: Tenant, group: string, commits: readonly OffsetCommit[]): Promise<void> {
    const pendingRecords = this.toPendingCommits(tenant, group, commits);
    await this.#store.append(pendingRecords);
    this.apply(tenant, group, commits);
  }

  /** The records of a commit, for callers that append them with others; call `apply` once they are durable. */
  toPendingCommits(
    tenant: Tenant,
    group: string,
    commits: readonly OffsetCommit[],
  ): PendingRecord[] {
    checkGroupName(group);
    this.#checkRoom(tenant, group);
    this.#checkCount(commits.length);
    const committedAt = Date.now();
    return commits.map((commit) => {
      checkCommit(commit);
      const { topic, partition } = commit;
      const id = topic.stored.id.toString("hex");
      return this.#state.toPendingJson(
        ["offset", tenant, group, id, partition],
        committedOf(commit, committedAt),
      );
    });
  }

  /** The records that let a group begin at the start of partitions which are about to be added. */
  toPendingStarts(
    tenant: Tenant,
    group: string,
    topic: Topic,
    first: number,
    total: number,
  ): PendingRecord[] {
    this.#checkCount(total - first);
    const id = topic.stored.id.toString("hex");
    const pendingRecords: PendingRecord[] = [];
    for (let partition = first; partition < total; partition++) {
      const start = committedOf({ topic, partition, offset: 0 }, Date.now());
      pendingRecords.push(
        this.#state.toPendingJson(["offset", tenant, group, id, partition], start),
      );
    }
    return pendingRecords;
  }

  /** Makes a durable commit visible; see `toPendingCommits`. */
  apply(tenant: Tenant, group: string, commits: readonly OffsetCommit[]): void {
    for (const commit of commits) {
      const id = commit.topic.stored.id.toString("hex");
      if (!commit.topic.stored.live) continue;
      this.#keep(tenant, group, id, commit.partition, committedOf(commit, Date.now()));
    }
  }

  /** A committed offset; `undefined` if there is none. */
  find(tenant: Tenant, group: string, topic: Topic, partition: number) {
    const id = topic.stored.id.toString("hex");
    return this.#tenants.get(tenant)?.get(group)?.topics.get(id)?.get(partition);
  }

  /** All committed offsets of a group. */
  *list(tenant: Tenant, group: string): Generator<StoredOffset> {
    for (const [id, partitions] of this.#tenants.get(tenant)?.get(group)?.topics ?? []) {
      const topic = this.#topics.findByHexId(id);
      if (topic === undefined) continue;
      for (const [partition, committed] of partitions) yield { topic, partition, ...committed };
    }
  }

  /** A tenant's groups with their kind; `undefined` for a group that only has committed offsets. */
  *groups(tenant: Tenant): Generator<{ name: string; kind: GroupKind | undefined }> {
    for (const [name, { kind }] of this.#tenants.get(tenant) ?? []) yield { name, kind };
  }

  /** All Kafka groups with the time of their last commit in epoch milliseconds, if there is one. */
  *kafkaGroups(): Generator<{ tenant: Tenant; name: string; lastCommitAt: number | undefined }> {
    for (const [tenant, groups] of this.#tenants) {
      for (const [name, { kind, topics }] of groups) {
        if (kind !== "kafka") continue;
        let lastCommitAt: number | undefined;
        for (const partitions of topics.values()) {
          for (const { committedAt } of partitions.values()) {
            lastCommitAt = Math.max(lastCommitAt ?? committedAt, committedAt);
          }
        }
        yield { tenant, name, lastCommitAt };
      }
    }
  }

  /** The offsets of all groups of all tenants. */
  *all(): Generator<StoredOffset & { tenant: Tenant; group: string }> {
    for (const [tenant, groups] of this.#tenants) {
      for (const group of groups.keys()) {
        for (const stored of this.list(tenant, group)) yield { ...stored, tenant, group };
      }
    }
  }

  /** Deletes some of a group's offsets, durably. */
  async deleteOffsets(
    tenant: Tenant,
    group: string,
    places: readonly { topic: Topic; partition: number }[],
  ): Promise<void> {
    const pendingRecords = places.map(({ topic, partition }) =>
      this.#state.toPending(
        ["offset", tenant, group, topic.stored.id.toString("hex"), partition],
        null,
      ),
    );
    await this.#store.append(pendingRecords);
    for (const { topic, partition } of places) {
      this.#drop(tenant, group, topic.stored.id.toString("hex"), partition);
    }
  }

  /** Deletes a group with all of its offsets, durably. */
  async deleteGroup(tenant: Tenant, group: string): Promise<void> {
    const known = this.#tenants.get(tenant)?.get(group);
    if (known === undefined) throw new PlatformError("not_found", "The group does not exist.");
    const pendingRecords = [...this.list(tenant, group)].map(({ topic, partition }) =>
      this.#state.toPending(
        ["offset", tenant, group, topic.stored.id.toString("hex"), partition],
        null,
      ),
    );
    pendingRecords.push(this.#state.toPending(["group", tenant, group], null));
    // Removed before it is durable: concurrent callers start a new group after this entry in the log.
    this.#replace(tenant, group, known, undefined);
    try {
      await this.#store.append(pendingRecords);
    } catch (error) {
      this.#replace(tenant, group, undefined, known);
      throw error;
    }
  }

  /** Replaces a group, unless it has changed. */
  #replace(tenant: Tenant, name: string, from: Group | undefined, to: Group | undefined): void {
    const groups = this.#tenants.get(tenant) ?? new Map<string, Group>();
    if (groups.get(name) !== from) return;
    for (const partitions of from?.topics.values() ?? []) this.#count -= partitions.size;
    for (const partitions of to?.topics.values() ?? []) this.#count += partitions.size;
    this.#tenants.set(tenant, groups);
    if (to === undefined) groups.delete(name);
    else groups.set(name, to);
  }

  #group(tenant: Tenant, name: string): Group {
    const groups = this.#tenants.get(tenant) ?? new Map<string, Group>();
    this.#tenants.set(tenant, groups);
    const group = groups.get(name) ?? { kind: undefined, topics: new Map() };
    groups.set(name, group);
    return group;
  }

  #keep(tenant: Tenant, name: string, id: string, partition: number, value: CommittedOffset): void {
    const { topics } = this.#group(tenant, name);
    const partitions = topics.get(id) ?? new Map<number, CommittedOffset>();
    topics.set(id, partitions);
    if (!partitions.has(partition)) this.#count++;
    partitions.set(partition, value);
  }

  #drop(tenant: Tenant, name: string, id: string, partition: number): void {
    const topics = this.#tenants.get(tenant)?.get(name)?.topics;
    const partitions = topics?.get(id);
    if (partitions?.delete(partition) !== true) return;
    this.#count--;
    if (partitions.size === 0) topics?.delete(id);
  }

  #forgetTopic(topic: Topic): void {
    const id = topic.stored.id.toString("hex");
    const pendingRecords: PendingRecord[] = [];
    for (const [tenant, groups] of this.#tenants) {
      for (const [name, group] of groups) {
        const partitions = group.topics.get(id);
        if (partitions === undefined) continue;
        this.#count -= partitions.size;
        group.topics.delete(id);
        for (const partition of partitions.keys()) {
          pendingRecords.push(this.#state.toPending(["offset", tenant, name, id, partition], null));
        }
      }
    }
    // If this write is lost, the next start repeats it.
    this.#store.append(pendingRecords).catch(() => undefined);
  }

  #checkCount(added: number): void {
    if (this.#count + added <= this.#limits.offsetsMax) return;
    throw new PlatformError("overloaded", "The limit of committed offsets is reached.");
  }

  #checkRoom(tenant: Tenant, group: string): void {
    const groups = this.#tenants.get(tenant);
    if (groups?.has(group) === true) return;
    if ((groups?.size ?? 0) < this.#limits.groupsPerTenantMax) return;
    throw new PlatformError("overloaded", "The limit of consumer groups is reached.");
  }
}

/** Throws `validation_failed` for invalid group names. */
function checkGroupName(group: string): void {
  const bytes = Buffer.byteLength(group);
  if (bytes >= 1 && bytes <= GROUP_NAME_BYTES_MAX && group.isWellFormed()) return;
  throw new PlatformError(
    "validation_failed",
    `A group's name has 1 to ${GROUP_NAME_BYTES_MAX} bytes.`,
  );
}

function checkCommit({ topic, partition, offset, metadata = "" }: OffsetCommit): void {
  if (topic.stored.partitions[partition] === undefined) {
    throw new PlatformError("not_found", "The topic does not have this partition.");
  }
  if (!Number.isSafeInteger(offset)) {
    throw new PlatformError("validation_failed", "An offset must be an integer.");
  }
  if (Buffer.byteLength(metadata) > METADATA_BYTES_MAX) {
    throw new PlatformError("payload_too_large", "The metadata of the offset is too long.");
  }
}

function committedOf(commit: OffsetCommit, committedAt: number): CommittedOffset {
  const { offset, leaderEpoch = -1, metadata = "" } = commit;
  return { offset, leaderEpoch, metadata, committedAt };
}
