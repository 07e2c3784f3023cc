// What the store does for itself in the background: expire, collect garbage, compact, scrub.
import type { Logger } from "@platform/kernel/log";
import type { Clock } from "@platform/kernel/time";
import type { StoreFolders } from "../disk/files.ts";
import type { FreeSpace } from "../disk/free-space.ts";
import { LastScrub, type CompleteScrub } from "./last-scrub.ts";
import { Compactor } from "./compactor.ts";
import { GarbageCollector } from "./garbage-collector.ts";
import { Scrubber, type ScrubProgress, type ScrubReport } from "./scrubber.ts";
import type { DriveKeeper } from "./drive-monitor.ts";
import { IndexCopier, type IndexCopyState } from "./index-copier.ts";
import type { IndexConnection } from "../index/schema.ts";
import { LifecycleEngine, type LifecycleReport } from "./lifecycle-engine.ts";
import type { ServiceEnvironment } from "../store/object-service.ts";

/** How often, and how fast. */
export interface MaintenanceOptions {
  lifecycleEveryMs: number;
  compactEveryMs: number;
  scrubEveryMs: number;
  scrubBytesPerSecond: number;
  /** 0 is never. */
  indexCopyEveryMs: number;
  /** Where the index and its copy are on a single drive, and where the last scrub is noted. */
  folders: StoreFolders;
  freeSpace: FreeSpace;
  clock: Clock;
  log: Logger | undefined;
}

/** The first scrub comes soon, so that what a crash has left behind does not stay for long. */
const FIRST_SCRUB_AFTER_MS = 10 * 60_000;

/** As the first scrub. */
const FIRST_COPY_AFTER_MS = 5 * 60_000;
/** Copying takes this share of the time at most. */
const COPY_SHARE_MAX = 0.02;

/** Damaged bodies that are named in a line of the log. */
const LOGGED_MAX = 20;

/** Scrubbing as it is. */
export interface ScrubState {
  running?: ScrubProgress & { startedMs: number };
  /** Kept over restarts. */
  last?: CompleteScrub;
}

/** Runs the rounds of upkeep. A call joins the round of its kind that is in progress. */
export class Maintenance {
  readonly #lifecycle: LifecycleEngine;
  readonly #collector: GarbageCollector;
  readonly #compactor: Compactor;
  readonly #scrubber: Scrubber;
  readonly #options: MaintenanceOptions;
  readonly #keeper: DriveKeeper | undefined;
  readonly #timers: NodeJS.Timeout[] = [];
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
    keeper: DriveKeeper | undefined,
  ) {
    this.#keeper = keeper;
    this.#options = options;
    this.#lifecycle = new LifecycleEngine(environment, options.lifecycleEveryMs);
    this.#collector = new GarbageCollector(environment, index);
    this.#compactor = new Compactor(environment, index);
    this.#scrubber = new Scrubber(environment, index, options.scrubBytesPerSecond, keeper?.healer);
    this.#copier = new IndexCopier(options.folders, options.freeSpace);
    this.#lastScrub = new LastScrub(options.folders.scrub);
  }

  start(): void {
    this.#lifecycle.start();
    this.#collector.start();
    // Rounds that fail are tried again; what keeps failing is seen by its counts and by the health check.
    const quietly = (run: () => Promise<unknown>) => () => void run().catch(() => undefined);
    const compact = quietly(() => this.compact());
    const scrub = quietly(() => this.scrub());
    this.#timers.push(
      setInterval(compact, this.#options.compactEveryMs).unref(),
      setInterval(scrub, this.#options.scrubEveryMs).unref(),
      setTimeout(scrub, FIRST_SCRUB_AFTER_MS).unref(),
    );
    const { indexCopyEveryMs } = this.#options;
    if (indexCopyEveryMs === 0) return;
    const copy = quietly(() => this.#copyWhenDue());
    this.#timers.push(
      setInterval(copy, indexCopyEveryMs).unref(),
      setTimeout(copy, Math.min(FIRST_COPY_AFTER_MS, indexCopyEveryMs)).unref(),
    );
  }

  async stop(): Promise<void> {
    for (const timer of this.#timers) clearInterval(timer);
    this.#scrubber.stop();
    await Promise.all([
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

  /** Notes files that nothing refers to, and removes those noted before. */
  collect(): Promise<void> {
    return this.#collector.collect();
  }

  /** Moves what is alive out of the segment with the most garbage. Resolves to the number of bodies moved. */
  compact(): Promise<number> {
    this.#compacting ??= this.#compactor.run().finally(() => {
      this.#compacting = undefined;
    });
    return this.#compacting;
  }

  /** Reads everything against its checksums and moves files that nothing refers to into quarantine. */
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

  /** The copy of the index, and what was wrong when it was made. */
  readIndexCopy(): IndexCopyState {
    return this.#copier.state;
  }

  /** The scrub that is under way, and the last one that came to its end. */
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
      log?.error("scrubbing found bodies that cannot be read", { ...counts, blobs });
    }
    if (report.quarantined > 0) {
      const { quarantined } = report;
      log?.warn("scrubbing moved files that nothing refers to into quarantine", { quarantined });
    }
    if (report.unknown > 0) {
      const { unknown } = report;
      log?.warn("the quarantine is full: files that nothing refers to stay", { unknown });
    }
    if (healed > 0) log?.warn("scrubbing found damage and healed it", { healed });
    return report;
  }

  /** Checks each of several drives: drops those that have gone, takes back those that have returned, heals what they lack. */
  checkDrives(): Promise<void> {
    return this.#keeper?.check() ?? Promise.resolve();
  }

  /** Bytes in segments that nothing refers to. */
  readGarbageBytes(): number {
    return this.#collector.readGarbageBytes();
  }
}
