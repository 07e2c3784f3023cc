// Sweeps of single buckets on request: what is due moves now.
import {
  type BlockedTransition,
  createReport,
  type TransitionDetail,
  type TransitionEngine,
  type TransitionReport,
} from "./transition-engine.ts";

/** A sweep, running or ended. */
export interface Sweep {
  readonly id: string;
  readonly bucket: string;
  readonly startedMs: number;
  endedMs: number | undefined;
  readonly report: TransitionReport;
  /** Objects that stayed, at most 1 000. */
  readonly details: TransitionDetail[];
  /** Set if it could not go on. */
  reason: string | undefined;
}

/** Ended sweeps that are remembered. */
const SWEEPS_MAX = 100;
/** Sweeps at the same time; a bucket has one. */
const RUNNING_MAX = 16;

/** Options of {@link Sweeps}. */
export interface SweepsOptions {
  readonly engine: TransitionEngine;
  readonly now: () => number;
  readonly takeId: () => string;
}

/** Runs sweeps, and remembers the last ones since the start. */
export class Sweeps {
  readonly #options: SweepsOptions;
  readonly #stopping = new AbortController();
  readonly #sweeps = new Map<string, Sweep>();
  readonly #running = new Map<string, { sweep: Sweep; ended: Promise<void> }>();

  constructor(options: SweepsOptions) {
    this.#options = options;
  }

  /** Transitions of lifecycle rules that move nothing, of all buckets or of one. */
  listBlocked(bucket?: string): BlockedTransition[] {
    return this.#options.engine.listBlocked(bucket);
  }

  /** Starts a sweep, or joins that of the bucket. Undefined if too many are running. */
  start(bucket: string): { sweep: Sweep; ended: Promise<void> } | undefined {
    const known = this.#running.get(bucket);
    if (known !== undefined) return known;
    if (this.#running.size >= RUNNING_MAX) return undefined;
    const { takeId, now } = this.#options;
    const sweep: Sweep = {
      id: takeId(),
      bucket,
      startedMs: now(),
      endedMs: undefined,
      report: createReport(),
      details: [],
      reason: undefined,
    };
    this.#sweeps.set(sweep.id, sweep);
    for (const id of this.#sweeps.keys()) {
      if (this.#sweeps.size <= SWEEPS_MAX) break;
      if (this.#sweeps.get(id)?.endedMs !== undefined) this.#sweeps.delete(id);
    }
    const running = { sweep, ended: this.#run(sweep) };
    this.#running.set(bucket, running);
    return running;
  }

  /** Undefined if it was forgotten, or belongs to another bucket. */
  find(bucket: string, id: string): Sweep | undefined {
    const sweep = this.#sweeps.get(id);
    return sweep?.bucket === bucket ? sweep : undefined;
  }

  /** The last sweep of a bucket, running or ended. Undefined if there was none, or it was forgotten. */
  findLast(bucket: string): Sweep | undefined {
    return [...this.#sweeps.values()].findLast((sweep) => sweep.bucket === bucket);
  }

  /** Ends all sweeps. What they have moved stays moved. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    await Promise.all([...this.#running.values()].map(({ ended }) => ended));
  }

  async #run(sweep: Sweep): Promise<void> {
    const { engine, now } = this.#options;
    try {
      await engine.sweep(sweep.bucket, sweep.report, sweep.details, this.#stopping.signal);
    } catch (error) {
      sweep.reason = error instanceof Error ? error.message : String(error);
    }
    sweep.endedMs = now();
    this.#running.delete(sweep.bucket);
  }
}
