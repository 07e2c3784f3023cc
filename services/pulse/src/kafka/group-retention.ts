// Deletes unused groups with their committed offsets.
import { every, type Clock, type RepeatingTimer } from "@platform/kernel/time";
import type { GroupCoordinator } from "../consumer-group/index.ts";
import type { Offsets } from "../store/offsets.ts";
import { groupKey } from "./api/groups.ts";

const SWEEP_MS = 60_000;
/** Retention of groups without members and offsets: long enough to inspect or delete them. */
const UNUSED_MS = 10 * 60_000;

export interface GroupRetentionOptions {
  offsets: Offsets;
  groups: GroupCoordinator;
  clock: Clock;
  /** Retention of groups without members after their last commit or member, in ms; 0 for ever. */
  retentionMs: number;
  onError: (error: unknown) => void;
}

/**
 * Deletes Kafka's groups like Kafka (`offsets.retention.minutes`, KIP-211): the time starts when the last member leaves,
 * or at the last commit if there was no member. A restart of the broker restarts it.
 */
export class GroupRetention {
  readonly #options: GroupRetentionOptions;
  readonly #startedMs: number;
  /** When groups lost their last member; monotonic. */
  readonly #emptySinceMs = new Map<string, number>();
  #timer: RepeatingTimer | undefined;

  constructor(options: GroupRetentionOptions) {
    this.#options = options;
    this.#startedMs = options.clock.monotonicMs();
  }

  start(): void {
    this.#timer = every(SWEEP_MS, () => this.sweep(), this.#options.onError);
  }

  async stop(): Promise<void> {
    await this.#timer?.stop();
  }

  /** The last member of a group has left; `key` is the coordinator's name of the group. */
  noteEmpty(key: string): void {
    this.#emptySinceMs.set(key, this.#options.clock.monotonicMs());
  }

  /** Deletes expired groups. */
  async sweep(): Promise<void> {
    const { offsets, groups, clock, retentionMs } = this.#options;
    const nowMs = clock.monotonicMs();
    const due: { tenant: string; name: string }[] = [];
    for (const { tenant, name, lastCommitAt } of offsets.kafkaGroups()) {
      const key = groupKey(tenant, name);
      if (groups.describe(key) !== undefined) continue;
      const emptyMs = nowMs - (this.#emptySinceMs.get(key) ?? this.#startedMs);
      const sinceCommitMs = lastCommitAt === undefined ? Infinity : clock.now() - lastCommitAt;
      const keptMs = lastCommitAt === undefined ? UNUSED_MS : retentionMs || Infinity;
      if (Math.min(emptyMs, sinceCommitMs) >= keptMs) due.push({ tenant, name });
    }
    for (const { tenant, name } of due) {
      this.#emptySinceMs.delete(groupKey(tenant, name));
      await offsets.deleteGroup(tenant, name);
    }
    // Groups that were deleted in another way, or never existed because the request was rejected.
    for (const key of this.#emptySinceMs.keys()) {
      if (nowMs - this.#emptySinceMs.get(key)! >= Math.max(UNUSED_MS, retentionMs)) {
        this.#emptySinceMs.delete(key);
      }
    }
  }
}
