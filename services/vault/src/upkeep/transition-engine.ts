// Moves objects that are due to the remote of their class: by lifecycle rules, and by the cold tiers of buckets.
import type { Logger } from "@platform/kernel/log";
import {
  findDueBefore,
  findDueDate,
  findExpiration,
  matchesFilter,
} from "../model/lifecycle-rule.ts";
import type { LifecycleConfiguration, LifecycleRule } from "../model/lifecycle.ts";
import type { Bucket } from "../model/bucket.ts";
import type { ColdTier } from "../model/bucket-settings.ts";
import type { TierTarget } from "../model/remote.ts";
import type { Candidate, CandidatePosition } from "../query/lifecycle-candidates.ts";
import type { ServiceEnvironment } from "../store/object-service.ts";
import type { RemoteService } from "../store/remote-service.ts";
import type { MoveOutcome, TierMover } from "../store/tier-mover.ts";

/** Options of the engine. */
export interface TransitionEngineOptions extends Pick<
  ServiceEnvironment,
  "buckets" | "readers" | "now"
> {
  readonly mover: TierMover;
  readonly remotes: RemoteService;
  readonly log?: Logger | undefined;
}

/** A transition of a lifecycle rule that moves nothing: no remote has its class any more. */
export interface BlockedTransition {
  readonly bucket: string;
  readonly rule: string;
  readonly storageClass: string;
}

/** The result of a round, or of a sweep of one bucket. */
export interface TransitionReport {
  /** Versions of the age of a rule. */
  scanned: number;
  moved: number;
  /** Of moved objects. */
  bytes: number;
  skipped: number;
  failed: number;
}

/** Objects that a report names, with the reason. */
export interface TransitionDetail {
  readonly key: string;
  readonly version_id: string;
  readonly outcome: "skipped" | "failed";
  readonly reason: string;
}

/** The class of a cold tier. */
const COLD_CLASS = "COLD";
/** Minimum size of AWS. */
export const TRANSITION_BYTES_MIN = 128 * 1024;
/** Classes without a minimum in the older behaviour of AWS (`varies_by_storage_class`). */
const CLASSES_WITHOUT_MINIMUM: ReadonlySet<string> = new Set(["GLACIER", "DEEP_ARCHIVE"]);
const PAGE = 500;
/** Moves at the same time, to one remote. */
const MOVES_MAX = 32;
/** Bytes of the bodies that are moved at the same time, to one remote; a larger body is moved alone. */
const MOVING_BYTES_MAX = 64 * 1024 * 1024;
const DETAILS_MAX = 1_000;
/** Failures in a row after which a remote is left until the next round. */
const FAILURES_MAX = 20;

/** A rule of one bucket that moves versions of some age. */
interface Plan {
  readonly bucket: Bucket;
  readonly kind: "current" | "noncurrent";
  readonly beforeMs: number;
  readonly target: TierTarget;
  /** True if a version of that age belongs to the rule. */
  readonly matches: (candidate: Candidate) => boolean;
  /** `undefined` if such a version is due; otherwise the reason why it stays. */
  readonly judge: (candidate: Candidate) => string | undefined;
}

/** Runs rounds over all buckets, and sweeps of single ones. */
export class TransitionEngine {
  readonly #options: TransitionEngineOptions;
  /** Transitions that the log has named. */
  #named: ReadonlySet<string> = new Set();

  constructor(options: TransitionEngineOptions) {
    this.#options = options;
  }

  /** Transitions of all buckets, or of one, that move nothing. */
  listBlocked(bucket?: string): BlockedTransition[] {
    return this.#options.buckets
      .list()
      .filter(({ name }) => bucket === undefined || name === bucket)
      .flatMap((one) => this.#listBlockedOf(one));
  }

  #listBlockedOf(bucket: Bucket): BlockedTransition[] {
    const { name, settings } = bucket;
    return (settings.lifecycle?.rules ?? []).flatMap((rule) => {
      if (!rule.enabled) return [];
      const { transitions = [], noncurrentTransitions = [] } = rule;
      const classes = [...transitions, ...noncurrentTransitions].map((one) => one.storageClass);
      return [...new Set(classes)]
        .filter((storageClass) => this.#findTarget(bucket, storageClass) === undefined)
        .map((storageClass) => ({ bucket: name, rule: rule.id, storageClass }));
    });
  }

  // Each once, until it is no longer blocked.
  #logBlocked(): void {
    const blocked = this.listBlocked();
    const before = this.#named;
    this.#named = new Set(blocked.map((one) => JSON.stringify(one)));
    for (const one of blocked) {
      if (before.has(JSON.stringify(one))) continue;
      const { bucket, rule, storageClass } = one;
      this.#options.log?.warn("a lifecycle rule moves nothing: no remote has its storage class", {
        bucket,
        rule,
        storage_class: storageClass,
      });
    }
  }

  /** Moves what is due in all buckets. Remotes work at the same time, so that a slow one delays no other. */
  async run(signal: AbortSignal): Promise<TransitionReport> {
    this.#logBlocked();
    const lanes = new Map<string, Plan[]>();
    for (const bucket of this.#options.buckets.list()) {
      for (const plan of this.#listPlans(bucket)) {
        const { remote } = plan.target;
        lanes.set(remote, [...(lanes.get(remote) ?? []), plan]);
      }
    }
    const report = createReport();
    await Promise.all(
      [...lanes.values()].map((plans) => this.#runPlans(plans, report, [], signal)),
    );
    return report;
  }

  /** Moves what is due in one bucket. Objects that stay are added to `details`, at most 1 000. */
  async sweep(
    name: string,
    report: TransitionReport,
    details: TransitionDetail[],
    signal: AbortSignal,
  ): Promise<void> {
    const plans = this.#listPlans(this.#options.buckets.require(name));
    await this.#runPlans(plans, report, details, signal);
  }

  #listPlans(bucket: Bucket): Plan[] {
    const { lifecycle, coldTier } = bucket.settings;
    const nowMs = this.#options.now();
    const plans: Plan[] = [];
    if (coldTier?.days !== undefined) plans.push(planTier(bucket, coldTier, coldTier.days, nowMs));
    for (const rule of lifecycle?.rules ?? []) {
      if (!rule.enabled) continue;
      for (const transition of rule.transitions ?? []) {
        const target = this.#findTarget(bucket, transition.storageClass);
        if (target === undefined) continue;
        const isTimed = "atMs" in transition;
        if (isTimed && transition.atMs > nowMs) continue;
        const beforeMs = isTimed ? nowMs : findDueBefore(transition.days, nowMs);
        const judge = judgeLive(rule, lifecycle!, target, nowMs);
        const matches = (candidate: Candidate) => matchesFilter(rule, candidate);
        plans.push({ bucket, kind: "current", beforeMs, target, matches, judge });
      }
      for (const transition of rule.noncurrentTransitions ?? []) {
        const target = this.#findTarget(bucket, transition.storageClass);
        if (target === undefined) continue;
        const beforeMs = findDueBefore(transition.days, nowMs);
        const kept = transition.newerVersionsKept ?? 0;
        const judge = judgeNoncurrent(rule, lifecycle!, target, nowMs);
        const matches = (candidate: Candidate) =>
          matchesFilter(rule, candidate) && candidate.newerVersions >= kept;
        plans.push({ bucket, kind: "noncurrent", beforeMs, target, matches, judge });
      }
    }
    return plans.sort((a, b) => a.beforeMs - b.beforeMs).map(leaveToLater);
  }

  #findTarget({ name, settings }: Bucket, storageClass: string): TierTarget | undefined {
    return findTarget(this.#options.remotes, name, settings.coldTier, storageClass);
  }

  async #runPlans(
    plans: readonly Plan[],
    report: TransitionReport,
    details: TransitionDetail[],
    signal: AbortSignal,
  ): Promise<void> {
    const lane = new Lane(MOVES_MAX, MOVING_BYTES_MAX);
    for (const plan of plans) {
      await this.#runPlan(plan, { lane, report, details, signal });
      if (lane.isAbandoned) break;
    }
    await lane.end();
  }

  async #runPlan(plan: Plan, round: Running): Promise<void> {
    const { readers, buckets } = this.#options;
    let after: CandidatePosition | undefined;
    for (;;) {
      const state = buckets.findState(plan.bucket.name);
      if (state === undefined || round.signal.aborted || round.lane.isAbandoned) return;
      const page = await readers.query("listCandidates", {
        kind: plan.kind,
        bucketId: state.id,
        beforeMs: plan.beforeMs,
        max: PAGE,
        ...(after === undefined ? {} : { after }),
      });
      for (const candidate of page) await this.#take(plan, candidate, round);
      after = page.at(-1);
      if (page.length < PAGE) return;
    }
  }

  async #take(plan: Plan, candidate: Candidate, round: Running): Promise<void> {
    const { lane, report, signal } = round;
    if (lane.isAbandoned || signal.aborted) return;
    if (candidate.storageClass === plan.target.storageClass || !plan.matches(candidate)) return;
    const reason = plan.judge(candidate);
    report.scanned += 1;
    if (reason !== undefined) {
      note(round, candidate, { kind: "skipped", reason });
      return;
    }
    const { key, versionId, seq, sizeBytes } = candidate;
    const address = { bucket: plan.bucket.name, key, versionId };
    await lane.begin(sizeBytes, async () => {
      const outcome = await this.#options.mover.move(address, seq, plan.target, signal);
      if (signal.aborted && outcome.kind === "failed") return;
      lane.failures = outcome.kind === "failed" ? lane.failures + 1 : 0;
      if (outcome.kind === "moved") {
        report.moved += 1;
        report.bytes += outcome.bytes;
      } else note(round, candidate, outcome);
    });
  }
}

interface Running {
  readonly lane: Lane;
  readonly report: TransitionReport;
  readonly details: TransitionDetail[];
  readonly signal: AbortSignal;
}

// Of several rules that a version is due for, the one with the highest age counts: it does not go through classes that it has
// outlived, and never back to one.
function leaveToLater(plan: Plan, index: number, all: readonly Plan[]): Plan {
  const later = all.slice(0, index).filter(({ kind }) => kind === plan.kind);
  if (later.length === 0) return plan;
  const isTaken = (candidate: Candidate): boolean =>
    later.some((other) => candidate.timeMs < other.beforeMs && other.matches(candidate));
  return { ...plan, matches: (candidate) => plan.matches(candidate) && !isTaken(candidate) };
}

/** The remote and its bucket for a class, in a bucket here; `undefined` if no remote has the class. */
export function findTarget(
  remotes: RemoteService,
  bucket: string,
  tier: ColdTier | undefined,
  storageClass: string,
): TierTarget | undefined {
  if (storageClass !== COLD_CLASS || tier === undefined)
    return remotes.findClass(storageClass, bucket);
  return { remote: tier.remote, bucket: tier.bucket, storageClass };
}

/** A report without a count. */
export function createReport(): TransitionReport {
  return { scanned: 0, moved: 0, bytes: 0, skipped: 0, failed: 0 };
}

function note(
  { report, details }: Running,
  { key, versionId }: Candidate,
  { kind, reason }: Exclude<MoveOutcome, { kind: "moved" }>,
): void {
  report[kind] += 1;
  if (details.length >= DETAILS_MAX) return;
  details.push({ key, version_id: versionId, outcome: kind, reason });
}

// Zero days are due immediately, unlike those of a rule.
function planTier(bucket: Bucket, tier: ColdTier, days: number, nowMs: number): Plan {
  const { prefix, remote, bucket: there, minimum_size: bytesMin } = tier;
  const target = { remote, bucket: there, storageClass: COLD_CLASS };
  const rules = bucket.settings.lifecycle?.rules ?? [];
  return {
    bucket,
    kind: "current",
    beforeMs: days === 0 ? nowMs + 1 : findDueBefore(days, nowMs),
    target,
    matches: ({ key }) => key.startsWith(prefix),
    judge: (candidate) => {
      if (candidate.sizeBytes < bytesMin) return "smaller than minimum_size";
      return isExpiring(rules, candidate, nowMs) ? "expires" : undefined;
    },
  };
}

function judgeLive(
  rule: LifecycleRule,
  lifecycle: LifecycleConfiguration,
  target: TierTarget,
  nowMs: number,
): Plan["judge"] {
  const bytesMin = findMinimum(rule, lifecycle, target.storageClass);
  return (candidate) => {
    if (candidate.sizeBytes < bytesMin) return "smaller than 128 KiB";
    return isExpiring(lifecycle.rules, candidate, nowMs) ? "expires" : undefined;
  };
}

function judgeNoncurrent(
  rule: LifecycleRule,
  lifecycle: LifecycleConfiguration,
  target: TierTarget,
  nowMs: number,
): Plan["judge"] {
  const bytesMin = findMinimum(rule, lifecycle, target.storageClass);
  return (candidate) => {
    if (candidate.sizeBytes < bytesMin) return "smaller than 128 KiB";
    const isEnding = lifecycle.rules.some((other) => {
      const { noncurrentVersionExpiration: end } = other;
      if (!other.enabled || end === undefined || !matchesFilter(other, candidate)) return false;
      const isOld = findDueDate(candidate.timeMs, end.days) <= nowMs;
      return isOld && candidate.newerVersions >= (end.newerVersionsKept ?? 0);
    });
    return isEnding ? "expires" : undefined;
  };
}

// A filter by size replaces the minimum, as at AWS.
function findMinimum(
  { filter }: LifecycleRule,
  { transitionMinimum }: LifecycleConfiguration,
  storageClass: string,
): number {
  if (filter.sizeGreaterThan !== undefined || filter.sizeLessThan !== undefined) return 0;
  const varies = transitionMinimum === "varies_by_storage_class";
  return varies && CLASSES_WITHOUT_MINIMUM.has(storageClass) ? 0 : TRANSITION_BYTES_MIN;
}

// An object that a rule removes now is not moved before.
function isExpiring(rules: readonly LifecycleRule[], candidate: Candidate, nowMs: number): boolean {
  const found = findExpiration(rules, candidate, candidate.timeMs);
  return found !== undefined && found.atMs <= nowMs;
}

/** Work on one remote: some at the same time, within a number of bytes. */
class Lane {
  /** In a row. */
  failures = 0;
  readonly #workMax: number;
  readonly #bytesMax: number;
  readonly #running = new Set<Promise<void>>();
  #bytes = 0;

  constructor(workMax: number, bytesMax: number) {
    this.#workMax = workMax;
    this.#bytesMax = bytesMax;
  }

  /** The remote fails: the rest waits for the next round. */
  get isAbandoned(): boolean {
    return this.failures >= FAILURES_MAX;
  }

  /** Starts work when there is room for it. */
  async begin(bytes: number, work: () => Promise<void>): Promise<void> {
    const isFull = (): boolean =>
      this.#running.size >= this.#workMax || this.#bytes + bytes > this.#bytesMax;
    while (this.#running.size > 0 && isFull()) await Promise.race(this.#running);
    this.#bytes += bytes;
    const running = work().finally(() => {
      this.#running.delete(running);
      this.#bytes -= bytes;
    });
    this.#running.add(running);
  }

  async end(): Promise<void> {
    await Promise.all(this.#running);
  }
}
