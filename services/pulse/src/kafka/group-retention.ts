// Groups that nobody uses any more are forgotten, with what they have committed: there is only so much room for them.
import { every, type Clock, type RepeatingTimer } from "@platform/kernel/time";
import type { GroupCoordinator } from "../consumer-group/index.ts";
import type { Offsets } from "../store/offsets.ts";
import { groupKey } from "./api/groups.ts";

const SWEEP_MS = 60_000;
/** How long a group is kept that has neither members nor offsets: long enough to look at it, or to delete it. */
const UNUSED_MS = 10 * 60_000;

/** What the sweeper works with. */
export interface GroupRetentionOptions {
  offsets: Offsets;
  groups: GroupCoordinator;
  clock: Clock;
  /** How long groups without members are kept after their last commit or member, in ms; 0 for ever. */
  retentionMs: number;
  onError: (error: unknown) => void;
}

/**
 * Forgets Kafka's groups as Kafka does (`offsets.retention.minutes`, KIP-211): the time runs from when the last member
 * has gone, or from the last commit where nobody ever joined. A restart of the broker lets it begin again.
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

  /** The last member of a group (as the coordinator names it) has gone. */
  noteEmpty(key: string): void {
    this.#emptySinceMs.set(key, this.#options.clock.monotonicMs());
  }

  /** Forgets what is due. */
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
    // Groups that were deleted otherwise, or never were any: somebody asked and was refused.
    for (const key of this.#emptySinceMs.keys()) {
      if (nowMs - this.#emptySinceMs.get(key)! >= Math.max(UNUSED_MS, retentionMs)) {
        this.#emptySinceMs.delete(key);
      }
    }
  }
}
