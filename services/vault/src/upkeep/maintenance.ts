// Background upkeep: lifecycle, garbage collection, compaction, scrubbing, copies of the index.
import type { Logger } from "@platform/kernel/log";
import { every, type Clock, type RepeatingTimer } from "@platform/kernel/time";
import type { StoreFolders } from "../disk/files.ts";
import type { FreeSpace } from "../disk/free-space.ts";
import { LastScrub, type CompleteScrub } from "./last-scrub.ts";
import { Compactor } from "./compactor.ts";
import { GarbageCollector } from "./garbage-collector.ts";
import { Scrubber, type ScrubProgress, type ScrubReport } from "./scrubber.ts";
import type { DriveMonitor } from "./drive-monitor.ts";
import { IndexCopier, type IndexCopyState } from "./index-copier.ts";
import type { IndexConnection } from "../index/schema.ts";
import { LifecycleEngine, type LifecycleReport } from "./lifecycle-engine.ts";
import type { ServiceEnvironment } from "../store/object-service.ts";

/** Intervals and speeds. */
export interface MaintenanceOptions {
  scrubBytesPerSecond: number;
  /** 0 disables it. */
  indexCopyEveryMs: number;
  /** The folders of the index and its copy on a single drive, and of the result of the last scrub. */
  folders: StoreFolders;
  freeSpace: FreeSpace;
  clock: Clock;
  log: Logger | undefined;
}

const COMPACT_EVERY_MS = 60_000;
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
  readonly #compactor: Compactor;
  readonly #scrubber: Scrubber;
  readonly #options: MaintenanceOptions;
  readonly #monitor: DriveMonitor | undefined;
  readonly #timers: RepeatingTimer[] = [];
  readonly #firstRounds: NodeJS.Timeout[] = [];
  readonly #copier: IndexCopier;
  readonly #lastScrub: LastScrub;
  #copyNotBeforeMs = 0;
  #scrubStartedMs = 0;
  #compacting: Promise<number> | undefined;
  #scrubbing: Promise<ScrubReport> | undefined;

  constructor(
    environment: ServiceEnvironment,
    index: IndexConnection,
    options: MaintenanceOptions,
    monitor: DriveMonitor | undefined,
  ) {
    this.#monitor = monitor;
    this.#options = options;
    this.#lifecycle = new LifecycleEngine(environment);
    this.#collector = new GarbageCollector(environment, index);
    this.#compactor = new Compactor(environment, index);
    this.#scrubber = new Scrubber(environment, index, options.scrubBytesPerSecond, monitor?.healer);
    this.#copier = new IndexCopier(options.folders, options.freeSpace);
    this.#lastScrub = new LastScrub(options.folders.scrub);
  }

  start(): void {
    this.#lifecycle.start();
    this.#collector.start();
    const { indexCopyEveryMs } = this.#options;
    this.#repeat(COMPACT_EVERY_MS, () => this.compact());
    this.#repeat(SCRUB_EVERY_MS, () => this.scrub(), FIRST_SCRUB_AFTER_MS);
    if (indexCopyEveryMs === 0) return;
    const firstCopyAfterMs = Math.min(FIRST_COPY_AFTER_MS, indexCopyEveryMs);
    this.#repeat(indexCopyEveryMs, () => this.#copyWhenDue(), firstCopyAfterMs);
  }

  // Failed rounds are retried. Metrics and the health check show lasting failures.
  #repeat(everyMs: number, round: () => Promise<unknown>, firstAfterMs?: number): void {
    const work = async (): Promise<void> => {
      await round();
    };
    const timer = every(everyMs, work, () => undefined);
    this.#timers.push(timer);
    if (firstAfterMs !== undefined) {
      this.#firstRounds.push(setTimeout(() => void timer.run(), firstAfterMs).unref());
    }
  }

  async stop(): Promise<void> {
    for (const timeout of this.#firstRounds) clearTimeout(timeout);
    this.#scrubber.stop();
    await Promise.all([
      ...this.#timers.map((timer) => timer.stop()),
      this.#lifecycle.stop(),
      this.#collector.stop(),
      this.#copier.stop(),
      this.#compacting?.catch(() => undefined),
      this.#scrubbing?.catch(() => undefined),
    ]);
  }

  /** Applies the lifecycle rules. */
  expire(): Promise<LifecycleReport> {
    return this.#lifecycle.run();
  }

  /** Notes unreferenced files, and removes those noted before. */
  collect(): Promise<void> {
    return this.#collector.collect();
  }

  /** Moves live bodies out of the segment with the most garbage. Resolves to the number of bodies moved. */
  compact(): Promise<number> {
    this.#compacting ??= this.#compactor.run().finally(() => {
      this.#compacting = undefined;
    });
    return this.#compacting;
  }

  /** Reads everything against its checksums and moves unreferenced files to quarantine. */
  scrub(): Promise<ScrubReport> {
    this.#scrubbing ??= this.#scrub().finally(() => {
      this.#scrubbing = undefined;
    });
    return this.#scrubbing;
  }

  /** Checks the index of a single drive and copies it. Resolves to the damage that it found. */
  copyIndex(): Promise<readonly string[]> {
    return this.#copier.run().then((findings) => {
      const { log } = this.#options;
      if (findings.length > 0) {
        log?.error("the index is damaged: stop the server and run platform-vaultd fsck", {
          findings: findings.slice(0, 3).join("; "),
        });
      }
      return findings;
    });
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
    return {
      ...(this.#scrubbing === undefined
        ? {}
        : { running: { startedMs: this.#scrubStartedMs, ...this.#scrubber.progress } }),
      ...(last === undefined ? {} : { last }),
    };
  }

  async #scrub(): Promise<ScrubReport> {
    const { clock } = this.#options;
    this.#scrubStartedMs = clock.now();
    const report = await this.#scrubber.run();
    if (report.isComplete) {
      this.#lastScrub.save({ startedMs: this.#scrubStartedMs, endedMs: clock.now(), ...report });
    }
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

  /** Unreferenced bytes in segments. */
  readGarbageBytes(): number {
    return this.#collector.readGarbageBytes();
  }
}
