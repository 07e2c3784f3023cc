// Sends versions of buckets to the destinations of their rules.
//
//   put, delete, change ──(one commit)──► task and mark PENDING ──► lane of the destination ──► sent
//                                             ▲                            │
//                                             │ 1 s to 1 h later           ├──► COMPLETED: one commit ends the task
//                                             ├────────────────────────────┤ no answer: for ever
//                                             │ an hour later              │
//                                             └────────── FAILED ◄─────────┘ refused
import type { Logger } from "@platform/kernel/log";
import { type Clock, every, type RepeatingTimer } from "@platform/kernel/time";
import type { Authorizer } from "../access/authorizer.ts";
import type { Directory } from "../access/directory.ts";
import { decodeKey } from "../index/records.ts";
import type { Owner } from "../model/bucket.ts";
import { findGeoRefusal } from "../model/geo.ts";
import type { ReplicationRule, ReplicationSettings } from "../model/replication.ts";
import type { StoredRequester } from "../model/requester.ts";
import { StoreError } from "../model/store-error.ts";
import type { Store } from "../object-store.ts";
import type { DestinationBucket, ObjectReplication, ReplicationRuleState } from "../s3/context.ts";
import type { ReplicableVersion } from "../store/replication-service.ts";
import type { DueRule, Task } from "../task/due-tasks.ts";
import type { TaskLanes } from "../task/task-queue.ts";
import { LATE_MS, type ReplicationOutcome } from "../transaction/replication-operations.ts";
import { Destinations } from "./destinations.ts";
import { Lane } from "./lane.ts";
import { LateVersions } from "./late-versions.ts";
import { LocalTarget } from "./local-target.ts";
import { SenderRights } from "./sender-rights.ts";
import {
  nameReplica,
  ReplicationFault,
  type ReplicationTarget,
  type SentVersion,
} from "./target.ts";

/** The lane of buckets in this store. */
const LOCAL_LANE = "";
const RETRY_LOOK_MS = 10_000;
const LATE_LOOK_MS = 60_000;
/** FAILED versions are tried again after this time. */
const FAILED_MS = 3_600_000;
const FAILURES_SHOWN = 20;
const GONE: ReadonlySet<string> = new Set(["NoSuchBucket", "NoSuchKey", "NoSuchVersion"]);

/** Options of {@link Replicator}. */
export interface ReplicatorOptions {
  readonly store: Store;
  readonly authorizer: Authorizer;
  readonly directory: Directory;
  readonly owner: Owner;
  readonly clock: Clock;
  readonly log: Logger;
  /** Queues the job that sends the versions from before a rule. */
  readonly startExisting: (bucket: string, requester: StoredRequester) => Promise<unknown>;
}

interface FoundRule {
  readonly bucket: string;
  readonly rule: ReplicationRule;
  readonly settings: ReplicationSettings;
}

/** Versions and changes that a rule has sent since the start. */
type RuleCounts = Pick<ReplicationRuleState, "completed" | "completed_bytes">;

const NO_COUNTS: RuleCounts = { completed: 0, completed_bytes: 0 };
const SUSPENDED =
  "The rule was put in another store, which this one was restored from: put the configuration again, or run platform-vaultd adopt-tier if the other store is gone.";

/** Sends versions to the destinations of rules. */
export class Replicator implements ObjectReplication {
  readonly #options: ReplicatorOptions;
  readonly #destinations: Destinations;
  readonly #lanes = new Map<string, Lane>();
  readonly #rights: SenderRights;
  /** By the name of the bucket and the id of the rule. */
  readonly #counts = new Map<string, RuleCounts>();
  readonly #timers: readonly RepeatingTimer[];
  /** Attempts that began before may have been sent without their end. */
  readonly #startedMs: number;

  constructor(options: ReplicatorOptions) {
    this.#options = options;
    this.#destinations = new Destinations(options);
    this.#startedMs = options.clock.now();
    this.#rights = new SenderRights(options);
    const late = new LateVersions(options.store);
    const note = (error: unknown): void => {
      options.log.warn("a look at waiting replications has failed", { error });
    };
    this.#timers = [
      every(RETRY_LOOK_MS, () => options.store.replication.retryFailed(FAILED_MS), note),
      every(LATE_LOOK_MS, () => late.report(options.clock.now() - LATE_MS), note),
    ];
  }

  /** Lets the tasks run. */
  start(): void {
    const { tasks } = this.#options.store;
    tasks.handle(
      "replicate",
      (task, signal, freePlace) => this.#run(task, signal, freePlace),
      this.lanes,
    );
  }

  async stop(): Promise<void> {
    await Promise.all(this.#timers.map((timer) => timer.stop()));
  }

  /** Lanes by remote; rules that are disabled have none, so their versions wait. */
  readonly lanes: TaskLanes = {
    find: (rule: DueRule) => {
      const found = this.#findRule(rule);
      if (found === undefined) return LOCAL_LANE;
      if (!found.rule.enabled || this.#isSuspended(found)) return undefined;
      return found.rule.destination.remote ?? LOCAL_LANE;
    },
    countPlaces: (name: string) => this.#lane(name).places,
  };

  /** Counts of each destination by the name of its remote, "" for this store. */
  listLanes(): readonly (readonly [remote: string, lane: Lane])[] {
    return [...this.#lanes];
  }

  readonly submit: ObjectReplication["submit"] = (operation) =>
    this.#options.store.replication.submit(operation);

  inspect(remote: string, bucket: string): Promise<DestinationBucket> {
    return this.#destinations.inspect(remote, bucket);
  }

  async startExisting(bucket: string, requester: StoredRequester): Promise<void> {
    await this.#options.startExisting(bucket, requester);
  }

  async describe(name: string, rules: readonly ReplicationRule[]): Promise<ReplicationRuleState[]> {
    const { store, clock } = this.#options;
    const { id: bucket, bucket: found } = store.buckets.requireState(name);
    const settings = found.settings.replication;
    const counts = await store.tasks.count();
    const nowMs = clock.now();
    const states: ReplicationRuleState[] = [];
    for (const rule of rules) {
      const own = counts.find(
        (one) => one.kind === "replicate" && one.bucket === bucket && one.rule === rule.id,
      );
      const filter = { kind: "replicate", bucket, rule: rule.id } as const;
      const dead =
        own?.dead === undefined || own.dead === 0
          ? []
          : await store.listDeadTasks(filter, 0, FAILURES_SHOWN);
      const lane = this.#lanes.get(rule.destination.remote ?? LOCAL_LANE);
      const paused = lane?.pausedMs;
      states.push({
        rule,
        pending: own?.waiting ?? 0,
        failed: own?.dead ?? 0,
        ...this.#readCounts(name, rule),
        counted_since: new Date(this.#startedMs).toISOString(),
        lag_seconds: own?.oldestMs === undefined ? 0 : Math.max(0, nowMs - own.oldestMs) / 1_000,
        paused_until: paused === undefined ? null : new Date(nowMs + paused).toISOString(),
        suspended:
          settings !== undefined && this.#isSuspended({ rule, settings }) ? SUSPENDED : null,
        failures: dead.map(({ key, version, reason, attempts, failedMs }) => ({
          key,
          version_id: version,
          reason,
          attempts,
          failed_at: new Date(failedMs).toISOString(),
        })),
      });
    }
    return states;
  }

  async #run(task: Task, signal: AbortSignal, freePlace: () => void): Promise<void> {
    const found = this.#findRule(task);
    if (found === undefined) {
      await this.#drop(task);
      return;
    }
    const lane = this.#lane(found.rule.destination.remote ?? LOCAL_LANE);
    const key = decodeKey(task.key);
    const end = { task: { id: task.id, seq: task.seq }, bucket: found.bucket, key };
    const { store } = this.#options;
    const outcome = await this.#attempt(task, found, key, lane, signal);
    // The destination does not wait for the disk of this store.
    freePlace();
    await store.replication.finish({
      ...end,
      version: task.version,
      rule: found.rule.id,
      outcome,
    });
  }

  // The rule was removed, or its bucket: the versions stay as they are.
  async #drop({ id, seq, bucket, key, version, rule }: Task): Promise<void> {
    const { store } = this.#options;
    const name = store.findBucketName(bucket);
    this.#counts.delete(`${name ?? ""}/${rule}`);
    const outcome = { kind: "dropped" } as const;
    const task = { id, seq };
    if (name === undefined) await store.endTask(task);
    else
      await store.replication.finish({
        task,
        bucket: name,
        key: decodeKey(key),
        version,
        rule,
        outcome,
      });
  }

  async #attempt(
    task: Task,
    found: FoundRule,
    key: string,
    lane: Lane,
    signal: AbortSignal,
  ): Promise<ReplicationOutcome> {
    const { store, log } = this.#options;
    const address = { bucket: found.bucket, key, versionId: task.version };
    try {
      const version = await store.replication.find(address);
      const mark = version?.marks[found.rule.id];
      if (version === undefined || mark === undefined) return { kind: "dropped" };
      const refusal = this.#findRefusal(found, version);
      if (refusal !== undefined) return { kind: "failed", reason: refusal };
      const target = await this.#findTarget(found, signal);
      const sent = this.#describe(task, found, key, version);
      const there = await this.#send(target, sent, mark, signal);
      lane.settle();
      lane.counts.completed += 1;
      lane.counts.bytes += sent.object?.sizeBytes ?? 0;
      this.#count(found, sent);
      const { isOrderedByArrival } = target;
      return { kind: "completed", version: there, isOrderedByArrival };
    } catch (error) {
      if (signal.aborted) throw error;
      if (error instanceof StoreError && GONE.has(error.code)) return { kind: "dropped" };
      if (error instanceof ReplicationFault) {
        if (error.isOutage) lane.fail();
        else lane.settle();
        if (error.isTransient) throw error;
      } else if (!isKeyRefusal(error)) throw error;
      const reason = error instanceof Error ? error.message : String(error);
      lane.counts.failed += 1;
      const { bucket, rule } = found;
      log.warn("a version cannot be replicated", { bucket, rule: rule.id, reason });
      return { kind: "failed", reason };
    }
  }

  #findRefusal(found: FoundRule, version: ReplicableVersion): string | undefined {
    const { store } = this.#options;
    const { bucket, rule, settings } = found;
    const { remote } = rule.destination;
    const encryption = version.kind === "object" ? version.object.encryption : undefined;
    if (encryption?.type === "SSE-C")
      return "Objects with a customer's key (SSE-C) cannot be read without it";
    const refusal =
      version.kind === "object"
        ? this.#rights.findReadRefusal(settings.requester, version.object)
        : undefined;
    if (refusal !== undefined || remote === undefined) return refusal;
    const region = store.remotes.find(remote)?.settings.region;
    const placement = store.buckets.find(bucket)?.settings.geoPlacement;
    const mark = version.kind === "object" ? version.object.geo : undefined;
    return findGeoRefusal(mark, placement, { exit: "replication", region });
  }

  async #findTarget(
    { rule, settings }: FoundRule,
    signal: AbortSignal,
  ): Promise<ReplicationTarget> {
    const { remote, bucket } = rule.destination;
    if (remote !== undefined) return this.#destinations.open(remote, bucket, signal);
    const { store } = this.#options;
    const { requester } = settings;
    return new LocalTarget({ store, rights: this.#rights, requester, bucket });
  }

  #describe(
    task: Task,
    { bucket, rule }: FoundRule,
    key: string,
    version: ReplicableVersion,
  ): SentVersion {
    const object = version.kind === "object" ? version.object : undefined;
    const modifiedMs = version.kind === "object" ? version.object.modifiedMs : version.modifiedMs;
    const { version: versionId, attempts, added } = task;
    const named = { bucket, key, versionId, etag: object?.etag ?? "", modifiedMs };
    return {
      rule,
      bucket,
      key,
      versionId,
      modifiedMs,
      replicaId: nameReplica(this.#options.store.remotes.storeId, named),
      object,
      isChecked:
        attempts > 0 ||
        (added ?? 0) < this.#startedMs ||
        version.marks[rule.id]?.isChecked === true,
    };
  }

  async #send(
    target: ReplicationTarget,
    sent: SentVersion,
    mark: ReplicableVersion["marks"][string],
    signal: AbortSignal,
  ): Promise<string | undefined> {
    const { object } = sent;
    const isThere = mark.version !== undefined && mark.isChecked !== true;
    if (!isThere || object === undefined) {
      const there = await target.send(sent, signal);
      const { changed = [] } = mark;
      // It was there already, as it was then.
      if (
        object !== undefined &&
        there !== undefined &&
        mark.isChecked === true &&
        changed.length > 0
      )
        await target.change({ ...sent, object }, there, changed, signal);
      return there;
    }
    await target.change({ ...sent, object }, mark.version, mark.changed ?? [], signal);
    return mark.version;
  }

  /** Buckets with rules that wait, because they were put in another store. */
  listSuspended(): string[] {
    const { store } = this.#options;
    return store.buckets.list().flatMap(({ name, settings: { replication: settings } }) => {
      const isSuspended = settings?.rules.some(
        (rule) => rule.enabled && this.#isSuspended({ rule, settings }),
      );
      return isSuspended === true ? [name] : [];
    });
  }

  // The store that was backed up may still send, under the same ids. A bucket of this store is restored with it.
  #isSuspended({ rule, settings }: Pick<FoundRule, "rule" | "settings">): boolean {
    if (rule.destination.remote === undefined) return false;
    return !this.#options.store.remotes.isOfThisStore(settings.store);
  }

  #count({ bucket, rule }: FoundRule, { object }: SentVersion): void {
    const name = `${bucket}/${rule.id}`;
    const { completed, completed_bytes: bytes } = this.#counts.get(name) ?? NO_COUNTS;
    this.#counts.set(name, {
      completed: completed + 1,
      completed_bytes: bytes + (object?.sizeBytes ?? 0),
    });
  }

  #readCounts(bucket: string, rule: ReplicationRule): RuleCounts {
    return this.#counts.get(`${bucket}/${rule.id}`) ?? NO_COUNTS;
  }

  #findRule({ bucket: id, rule }: DueRule): FoundRule | undefined {
    const { store } = this.#options;
    const bucket = store.findBucketName(id);
    const settings =
      bucket === undefined ? undefined : store.buckets.find(bucket)?.settings.replication;
    const found = settings?.rules.find((one) => one.id === rule);
    if (bucket === undefined || settings === undefined || found === undefined) return undefined;
    return { bucket, rule: found, settings };
  }

  #lane(name: string): Lane {
    const known = this.#lanes.get(name);
    if (known !== undefined) return known;
    const lane = new Lane(this.#options.clock);
    this.#lanes.set(name, lane);
    return lane;
  }
}

// The key of an object is disabled, or about to be deleted: that holds up no later version of its name.
function isKeyRefusal(error: unknown): boolean {
  return error instanceof StoreError && error.code.startsWith("KMS.");
}
