// Background upkeep: lifecycle, garbage collection, compaction, scrubbing, copies of the index, changes of keys.
import { existsSync } from "node:fs";
import type { Logger } from "@platform/kernel/log";
import { every, type Clock, type RepeatingTimer } from "@platform/kernel/time";
import type { StoreFolders } from "../disk/files.ts";
import type { FreeSpace } from "../disk/free-space.ts";
import {
  countEnded,
  countScrub,
  describeHealing,
  type Job,
  type JobCounts,
  type JobKind,
  type JobProgress,
  type JobStart,
} from "./job.ts";
import { LastScrub, type CompleteScrub } from "./last-scrub.ts";
import { type EndedRound, Round } from "./round.ts";
import { Compactor } from "./compactor.ts";
import { HeadRewriter, type HeadReport } from "./head-rewriter.ts";
import { KeyRewrapper, type RewrapReport } from "./key-rewrapper.ts";
import { GarbageCollector } from "./garbage-collector.ts";
import { Scrubber, type ScrubProgress, type ScrubReport } from "./scrubber.ts";
import type { DriveMonitor } from "./drive-monitor.ts";
import { IndexCopier, type IndexCopyState } from "./index-copier.ts";
import type { IndexConnection } from "../index/schema.ts";
import { LifecycleEngine, type LifecycleReport } from "./lifecycle-engine.ts";
import type { ServiceEnvironment } from "../store/object-service.ts";
import type { TransitionEngine, TransitionReport } from "./transition-engine.ts";

/** Intervals and speeds. */
export interface MaintenanceOptions {
  scrubBytesPerSecond: number;
  /** 0 disables it. */
  indexCopyEveryMs: number;
  /** The folders of the index and its copy on a single drive, and of the result of the last scrub. */
  folders: StoreFolders;
  freeSpace: FreeSpace;
  transitions: TransitionEngine;
  /** Limit of the index's log while it is copied. */
  logBytesMax: number;
  clock: Clock;
  log: Logger | undefined;
}

const EXPIRE_EVERY_MS = 3_600_000;
const COMPACT_EVERY_MS = 60_000;
const REWRAP_EVERY_MS = 600_000;
const SCRUB_EVERY_MS = 7 * 86_400_000;
/** The first scrub runs early and removes the leftovers of a crash. */
const FIRST_SCRUB_AFTER_MS = 10 * 60_000;

/** As the first scrub. */
const FIRST_COPY_AFTER_MS = 5 * 60_000;
/** Share of the time that copying may take. */
const COPY_SHARE_MAX = 0.02;

/** Damaged bodies that a log line lists. */
const LOGGED_MAX = 20;

/** The state of scrubbing. */
export interface ScrubState {
  running?: ScrubProgress & { startedMs: number };
  /** Survives restarts. */
  last?: CompleteScrub;
}

/** Runs the rounds of upkeep. A call joins a running round of its kind. */
export class Maintenance {
  readonly #lifecycle: LifecycleEngine;
  readonly #collector: GarbageCollector;
  readonly #scrubber: Scrubber;
  readonly #copier: IndexCopier;
  readonly #options: MaintenanceOptions;
  readonly #monitor: DriveMonitor | undefined;
  readonly #expiring: Round<LifecycleReport>;
  readonly #moving: Round<TransitionReport>;
  readonly #compacting: Round<number>;
  readonly #scrubbing: Round<ScrubReport>;
  readonly #copying: Round<readonly string[]>;
  readonly #rewrapping: Round<RewrapReport>;
  readonly #rewriting: Round<HeadReport>;
  readonly #rewrapper: KeyRewrapper;
  readonly #hasKeys: boolean;
  // Wrapping keys again and writing heads exclude each other: each reads what the other changes.
  #keyWork: Promise<unknown> = Promise.resolve();
  readonly #timers: RepeatingTimer[] = [];
  readonly #firstRounds: NodeJS.Timeout[] = [];
  /** The times of the next rounds. */
  readonly #plans = new Map<JobKind, () => number>();
  readonly #lastScrub: LastScrub;
  #copyNotBeforeMs = 0;

  constructor(
    environment: ServiceEnvironment,
    index: IndexConnection,
    options: MaintenanceOptions,
    monitor: DriveMonitor | undefined,
  ) {
    const { clock, folders, scrubBytesPerSecond } = options;
    this.#monitor = monitor;
    this.#options = options;
    this.#lifecycle = new LifecycleEngine(environment);
    this.#collector = new GarbageCollector(environment, index);
    this.#scrubber = new Scrubber(environment, index, scrubBytesPerSecond, monitor?.healer);
    this.#copier = new IndexCopier(folders, options.freeSpace, options.logBytesMax);
    this.#lastScrub = new LastScrub(folders.scrub);
    const compactor = new Compactor(environment, index);
    this.#expiring = new Round((signal) => this.#lifecycle.run(signal), clock);
    this.#moving = new Round((signal) => options.transitions.run(signal), clock);
    this.#compacting = new Round((signal) => compactor.run(signal), clock);
    this.#scrubbing = new Round((signal) => this.#scrub(signal), clock);
    this.#copying = new Round((signal) => this.#copyIndex(signal), clock);
    const { log, freeSpace } = options;
    const copyIndex = (): Promise<readonly string[]> => this.renewIndexCopy();
    const rewrapper = new KeyRewrapper({ environment, index, log, copyIndex });
    const rewriter = new HeadRewriter({ environment, index, freeSpace });
    this.#rewrapper = rewrapper;
    this.#rewrapping = new Round((signal) => this.#alone(() => rewrapper.run(signal)), clock);
    this.#rewriting = new Round((signal) => this.#alone(() => rewriter.run(signal)), clock);
    this.#hasKeys = environment.keys?.rotation !== undefined;
  }

  #alone<Result>(work: () => Promise<Result>): Promise<Result> {
    const run = this.#keyWork.then(work);
    this.#keyWork = run.catch(() => undefined);
    return run;
  }

  start(): void {
    this.#collector.start();
    const { indexCopyEveryMs } = this.#options;
    if (this.#hasKeys) this.#repeat("rewrap", REWRAP_EVERY_MS, () => this.#rewrapWhenNeeded(), 0);
    this.#repeat("lifecycle", EXPIRE_EVERY_MS, () => this.expire());
    this.#repeat("transition", EXPIRE_EVERY_MS, () => this.transition());
    this.#repeat("compaction", COMPACT_EVERY_MS, () => this.compact());
    this.#repeat("scrub", SCRUB_EVERY_MS, () => this.scrub(), FIRST_SCRUB_AFTER_MS);
    if (indexCopyEveryMs === 0) return;
    const firstCopyAfterMs = Math.min(FIRST_COPY_AFTER_MS, indexCopyEveryMs);
    this.#repeat("index_copy", indexCopyEveryMs, () => this.#copyWhenDue(), firstCopyAfterMs);
  }

  // Failed rounds are retried. Metrics and the health check show lasting failures.
  #repeat(
    kind: JobKind,
    everyMs: number,
    round: () => Promise<unknown>,
    firstAfterMs = everyMs,
  ): void {
    const work = async (): Promise<void> => {
      await round();
    };
    const timer = every(everyMs, work, () => undefined);
    this.#timers.push(timer);
    if (firstAfterMs < everyMs) {
      this.#firstRounds.push(setTimeout(() => void timer.run(), firstAfterMs).unref());
    }
    const begunMs = performance.now();
    this.#plans.set(kind, () => {
      const passedMs = performance.now() - begunMs;
      const waitMs =
        passedMs < firstAfterMs ? firstAfterMs - passedMs : everyMs - (passedMs % everyMs);
      return this.#options.clock.now() + waitMs;
    });
  }

  async stop(): Promise<void> {
    for (const timeout of this.#firstRounds) clearTimeout(timeout);
    await Promise.all([
      ...[
        this.#expiring,
        this.#moving,
        this.#compacting,
        this.#scrubbing,
        this.#copying,
        this.#rewrapping,
        this.#rewriting,
      ].map((round) => round.stop()),
      ...this.#timers.map((timer) => timer.stop()),
      this.#collector.stop(),
    ]);
  }

  /** Applies the lifecycle rules. */
  expire(): Promise<LifecycleReport> {
    return this.#expiring.run();
  }

  /** Moves what is due to the remote of its class. */
  transition(): Promise<TransitionReport> {
    return this.#moving.run();
  }

  /** Notes unreferenced files, and removes those noted before. */
  collect(): Promise<void> {
    return this.#collector.collect();
  }

  /** Moves live bodies out of the segment with the most garbage. Resolves to the number of bodies moved. */
  compact(): Promise<number> {
    return this.#compacting.run();
  }

  /** Wraps keys of blobs with the current versions of theirs, and forgets versions that nothing names. */
  rewrap(): Promise<RewrapReport> {
    return this.#rewrapping.run();
  }

  /** Writes the heads of records again that have a former key. */
  rewriteHeads(): Promise<HeadReport> {
    return this.#rewriting.run();
  }

  /** Rows that were wrapped again since the start, and those that could not be. */
  get rewrapTotals(): Readonly<{ rewrapped: number; failed: number }> {
    return this.#rewrapper.totals;
  }

  async #rewrapWhenNeeded(): Promise<void> {
    if (this.#rewrapper.hasWork()) await this.rewrap();
  }

  /** Reads everything against its checksums and moves unreferenced files to quarantine. */
  scrub(): Promise<ScrubReport> {
    return this.#scrubbing.run();
  }

  /** Checks the index of a single drive and copies it. Resolves to the damage that it found. */
  copyIndex(): Promise<readonly string[]> {
    return this.#copying.run();
  }

  /** Copies the index if the store keeps a copy, which may name keys that are about to be forgotten. Resolves as `copyIndex`. */
  async renewIndexCopy(): Promise<readonly string[]> {
    return existsSync(this.#options.folders.indexCopy) ? this.copyIndex() : [];
  }

  async #copyIndex(signal: AbortSignal): Promise<readonly string[]> {
    const findings = await this.#copier.run(signal);
    if (findings.length > 0) {
      this.#options.log?.error(
        "the index is damaged: stop the server and run platform-vaultd fsck",
        {
          findings: findings.slice(0, 3).join("; "),
        },
      );
    }
    return findings;
  }

  // A large index on a slow disk is copied less often.
  async #copyWhenDue(): Promise<void> {
    const { clock, log } = this.#options;
    const begunMs = clock.monotonicMs();
    if (begunMs < this.#copyNotBeforeMs) return;
    try {
      await this.copyIndex();
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      log?.warn("the index could not be copied", { reason });
    }
    const endedMs = clock.monotonicMs();
    this.#copyNotBeforeMs = endedMs + (endedMs - begunMs) / COPY_SHARE_MAX;
  }

  /** The state of the index copy. */
  readIndexCopy(): IndexCopyState {
    return this.#copier.state;
  }

  /** The running scrub and the last complete one. */
  readScrub(): ScrubState {
    const { last } = this.#lastScrub;
    const { running } = this.#scrubbing.state;
    return {
      ...(running === undefined
        ? {}
        : { running: { startedMs: running.startedMs, ...this.#scrubber.progress } }),
      ...(last === undefined ? {} : { last }),
    };
  }

  async #scrub(signal: AbortSignal): Promise<ScrubReport> {
    const { clock } = this.#options;
    const startedMs = clock.now();
    const report = await this.#scrubber.run(signal);
    if (report.isComplete) this.#lastScrub.save({ startedMs, endedMs: clock.now(), ...report });
    const { damaged, missing, healed } = report;
    const { log } = this.#options;
    if (damaged.length > 0 || missing.length > 0) {
      const counts = { damaged: damaged.length, missing: missing.length };
      const blobs = [...damaged, ...missing].slice(0, LOGGED_MAX).map((id) => id.toString(16));
      log?.error("scrubbing found unreadable bodies", { ...counts, blobs });
    }
    if (report.quarantined > 0) {
      const { quarantined } = report;
      log?.warn("scrubbing moved unreferenced files to quarantine", { quarantined });
    }
    if (report.unknown > 0) {
      const { unknown } = report;
      log?.warn("the quarantine is full: unreferenced files stay", { unknown });
    }
    if (healed > 0) log?.warn("scrubbing found damage and healed it", { healed });
    return report;
  }

  /** Checks each drive: drops lost ones, takes back those that return, heals incomplete ones. */
  checkDrives(): Promise<void> {
    return this.#monitor?.check() ?? Promise.resolve();
  }

  /** The background work that this store has. Garbage collection, which never ends, is not listed. */
  listJobs(): Job[] {
    const { filesDone, filesTotal, bytesDone } = this.#scrubber.progress;
    const { bucketsDone, bucketsTotal } = this.#lifecycle.progress;
    const files = { unit: "files", done: filesDone, total: filesTotal, bytes: bytesDone } as const;
    const buckets = { unit: "buckets", done: bucketsDone, total: bucketsTotal } as const;
    const scrub = this.#describe("scrub", this.#scrubbing, countScrub, files);
    // A complete scrub has the times that are stored, before and after a restart.
    const last =
      scrub.last === undefined || scrub.last.outcome === "completed"
        ? this.#readStoredScrub()
        : scrub.last;
    return [
      { ...scrub, ...(last === undefined ? {} : { last }) },
      this.#describe("lifecycle", this.#expiring, (report) => ({ ...report }), buckets),
      this.#describe("transition", this.#moving, (report) => ({ ...report })),
      this.#describe("compaction", this.#compacting, (moved) => ({ moved })),
      ...(this.#hasKeys
        ? [
            this.#describe("rewrap", this.#rewrapping, (report) => ({ ...report })),
            this.#describe("rewrite_heads", this.#rewriting, (report) => ({ ...report })),
          ]
        : []),
      ...(this.#options.indexCopyEveryMs === 0
        ? []
        : [this.#describe("index_copy", this.#copying, ({ length }) => ({ damaged: length }))]),
      ...(this.#monitor === undefined ? [] : [describeHealing(this.#monitor)]),
    ];
  }

  /** Starts a round, or joins the running one, unless that was asked to end. Its end is in the list of jobs. */
  startJob(kind: JobKind): JobStart {
    const round = this.#findRound(kind);
    if (round === undefined) return "automatic";
    if (round.state.running?.isCancelled === true) return "ending";
    void round.run().catch(() => undefined);
    return "started";
  }

  /** Asks the running round to end; false if there is none. */
  cancelJob(kind: JobKind): boolean {
    return this.#findRound(kind)?.cancel() ?? false;
  }

  #findRound(kind: JobKind): Pick<Round<unknown>, "run" | "cancel" | "state"> | undefined {
    switch (kind) {
      case "scrub":
        return this.#scrubbing;
      case "lifecycle":
        return this.#expiring;
      case "transition":
        return this.#moving;
      case "compaction":
        return this.#compacting;
      case "index_copy":
        return this.#options.indexCopyEveryMs === 0 ? undefined : this.#copying;
      case "rewrap":
        return this.#hasKeys ? this.#rewrapping : undefined;
      case "rewrite_heads":
        return this.#hasKeys ? this.#rewriting : undefined;
      case "healing":
        return undefined;
      default:
        return kind satisfies never;
    }
  }

  #describe<Report>(
    kind: JobKind,
    round: Round<Report>,
    count: (report: Report) => JobCounts,
    progress?: JobProgress,
  ): Job {
    const { running, last } = round.state;
    const nextMs = this.#plans.get(kind)?.();
    return {
      kind,
      ...(running === undefined
        ? {}
        : { running: { ...running, ...(progress === undefined ? {} : { progress }) } }),
      ...(last === undefined ? {} : { last: countEnded(last, count) }),
      ...(nextMs === undefined ? {} : { nextMs }),
      isManual: true,
    };
  }

  #readStoredScrub(): EndedRound<JobCounts> | undefined {
    const { last } = this.#lastScrub;
    if (last === undefined) return undefined;
    const { startedMs, endedMs } = last;
    return { startedMs, endedMs, outcome: "completed", report: countScrub(last) };
  }

  /** Unreferenced bytes in segments. */
  readGarbageBytes(): number {
    return this.#collector.readGarbageBytes();
  }
}
