// What the store does for itself in the background: expire, collect garbage, compact, scrub.
import type { Logger } from "@platform/kernel/log";
import { Compactor } from "./blob/compactor.ts";
import { GarbageCollector } from "./blob/garbage-collector.ts";
import { Scrubber, type ScrubReport } from "./blob/scrubber.ts";
import type { DriveKeeper } from "./drive/keeper.ts";
import type { IndexConnection } from "./index/schema.ts";
import { LifecycleEngine, type LifecycleReport } from "./lifecycle/engine.ts";
import type { ServiceEnvironment } from "./object/object-service.ts";
import type { Maintenance } from "./store.ts";

/** How often, and how fast. */
export interface MaintenanceOptions {
  lifecycleEveryMs: number;
  compactEveryMs: number;
  scrubEveryMs: number;
  scrubBytesPerSecond: number;
  log: Logger | undefined;
}

/** The first scrub comes soon, so that what a crash has left behind does not stay for long. */
const FIRST_SCRUB_AFTER_MS = 10 * 60_000;

/** Damaged bodies that are named in a line of the log. */
const LOGGED_MAX = 20;

/** Runs the rounds, each kind one at a time. */
export class StoreMaintenance implements Maintenance {
  readonly #lifecycle: LifecycleEngine;
  readonly #collector: GarbageCollector;
  readonly #compactor: Compactor;
  readonly #scrubber: Scrubber;
  readonly #options: MaintenanceOptions;
  readonly #keeper: DriveKeeper | undefined;
  readonly #timers: NodeJS.Timeout[] = [];
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
  }

  async stop(): Promise<void> {
    for (const timer of this.#timers) clearInterval(timer);
    this.#scrubber.stop();
    await Promise.all([
      this.#lifecycle.stop(),
      this.#collector.stop(),
      this.#compacting?.catch(() => undefined),
      this.#scrubbing?.catch(() => undefined),
    ]);
  }

  expire(): Promise<LifecycleReport> {
    return this.#lifecycle.run();
  }

  collect(): Promise<void> {
    return this.#collector.collect();
  }

  compact(): Promise<number> {
    this.#compacting ??= this.#compactor.run().finally(() => {
      this.#compacting = undefined;
    });
    return this.#compacting;
  }

  scrub(): Promise<ScrubReport> {
    this.#scrubbing ??= this.#scrub().finally(() => {
      this.#scrubbing = undefined;
    });
    return this.#scrubbing;
  }

  async #scrub(): Promise<ScrubReport> {
    const report = await this.#scrubber.run();
    const { damaged, missing, healed } = report;
    const { log } = this.#options;
    if (damaged.length > 0 || missing.length > 0) {
      const counts = { damaged: damaged.length, missing: missing.length };
      const blobs = [...damaged, ...missing].slice(0, LOGGED_MAX).map((id) => id.toString(16));
      log?.error("scrubbing found bodies that cannot be read", { ...counts, blobs });
    }
    if (healed > 0) log?.warn("scrubbing found damage and healed it", { healed });
    return report;
  }

  checkDrives(): Promise<void> {
    return this.#keeper?.check() ?? Promise.resolve();
  }

  /** Bytes in segments that nothing refers to. */
  readGarbageBytes(): number {
    return this.#collector.readGarbageBytes();
  }
}
