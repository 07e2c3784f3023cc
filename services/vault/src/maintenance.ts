// What the store does for itself in the background: expire, collect garbage, compact, scrub.
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
}

/** The first scrub comes soon, so that what a crash has left behind does not stay for long. */
const FIRST_SCRUB_AFTER_MS = 10 * 60_000;

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
    this.#scrubbing ??= this.#scrubber.run().finally(() => {
      this.#scrubbing = undefined;
    });
    return this.#scrubbing;
  }

  checkDrives(): Promise<void> {
    return this.#keeper?.check() ?? Promise.resolve();
  }

  /** Bytes in segments that nothing refers to. */
  readGarbageBytes(): number {
    return this.#collector.readGarbageBytes();
  }
}
