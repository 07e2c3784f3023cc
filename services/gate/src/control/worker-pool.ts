// The data-plane threads together: they get every change, and one that dies is replaced with the state in force.
import { setTimeout as delay } from "node:timers/promises";
import { PlatformError } from "@platform/kernel/errors";
import type { Logger } from "@platform/kernel/log";
import {
  ActiveCounts,
  type GlobalSpec,
  type MetricBlock,
  type RouteKey,
  type RouteSpec,
  type SharedBuffers,
  type WorkerInit,
} from "../shared-state/index.ts";
import { type Change, type Readiness, WorkerHandle } from "./worker-handle.ts";

const BACKOFF_MIN_MS = 100;
const BACKOFF_MAX_MS = 10_000;
/** A thread that lived this long starts its backoff anew. */
const STEADY_MS = 30_000;

/** What a fleet needs. */
export interface WorkerPoolOptions {
  entry: URL;
  /** One place for each thread: its column in shared memory and its listener. */
  places: readonly { workerIndex: number; listen: WorkerInit["listen"] }[];
  shared: SharedBuffers;
  log: Logger;
  silentMs: number;
  stuckMs: number;
  startMs: number;
  /** Called with the metrics of a thread that has ended, whose totals must not be lost. */
  onRetired: (metrics: MetricBlock) => void;
}

/** Threads that all have the same routes and globals. */
export class WorkerPool {
  readonly #options: WorkerPoolOptions;
  readonly #active: ActiveCounts;
  readonly #handles = new Map<number, WorkerHandle>();
  readonly #failures = new Map<number, { count: number; startedMs: number }>();
  readonly #routes = new Map<RouteKey, RouteSpec>();
  readonly #stopping = new AbortController();
  #globals: GlobalSpec;
  #readiness: Readiness = { up: false, checks: { gate: "starting" } };

  constructor(options: WorkerPoolOptions, globals: GlobalSpec, routes: readonly RouteSpec[]) {
    this.#options = options;
    this.#globals = globals;
    this.#active = new ActiveCounts(options.shared);
    for (const route of routes) this.#routes.set(route.key, route);
  }

  /** Starts every thread; rejects, with none left running, where one of them cannot start. */
  async start(): Promise<void> {
    for (const place of this.#options.places) this.#spawn(place);
    const starts = [...this.#handles.values()].map((handle) => handle.started);
    try {
      await Promise.all(starts);
    } catch (cause) {
      await this.end();
      throw cause;
    }
  }

  /** How many threads listen. */
  countLive(): number {
    return [...this.#handles.values()].filter((handle) => handle.isLive).length;
  }

  /** The metrics of the threads that have not ended. */
  listMetrics(): MetricBlock[] {
    return [...this.#handles.values()].map((handle) => handle.metrics);
  }

  /**
   * Resolves when every live thread acts on the change. Where one refuses it, the others go back to what they had and
   * the call throws `internal` with the thread's reason. Calls must not overlap.
   */
  async apply(change: Change): Promise<void> {
    const undo = this.#takeUp(change);
    const handles = [...this.#handles.values()];
    const outcomes = await Promise.all(handles.map((handle) => handle.apply(change)));
    const refusal = outcomes.find((outcome) => outcome.kind === "failed");
    if (refusal === undefined) return;
    this.#takeUp(undo);
    const changed = handles.filter((_handle, index) => outcomes[index]?.kind === "applied");
    await Promise.all(changed.map((handle) => handle.apply(undo)));
    throw new PlatformError("internal", `a worker refused the change: ${refusal.message}`);
  }

  /** Tells every thread what its readiness probe answers. */
  setReadiness(up: boolean, checks: Record<string, string>): void {
    this.#readiness = { up, checks };
    for (const handle of this.#handles.values()) handle.send({ type: "readiness", up, checks });
  }

  /** Has the access log opened again by every thread. */
  async reopenAccessLog(): Promise<void> {
    await Promise.all([...this.#handles.values()].map((handle) => handle.reopenAccessLog()));
  }

  /** Ends every thread after its exchanges, or at the deadline; resolves with how many were cut. */
  async drain(deadlineMs: number): Promise<number> {
    this.#stopping.abort();
    const cuts = await Promise.all(
      [...this.#handles.values()].map((handle) => handle.drain(deadlineMs)),
    );
    return cuts.reduce((sum, cut) => sum + cut, 0);
  }

  /** Ends every thread at once. */
  async end(): Promise<void> {
    this.#stopping.abort();
    await Promise.all([...this.#handles.values()].map((handle) => handle.end()));
  }

  /** Makes the change the state that new threads begin with; returns its opposite. */
  #takeUp(change: Change): Change {
    const upsert: RouteSpec[] = [];
    const remove: RouteKey[] = [];
    for (const key of [...change.remove, ...change.upsert.map((route) => route.key)]) {
      const known = this.#routes.get(key);
      if (known === undefined) remove.push(key);
      else upsert.push(known);
    }
    const undo: Change = {
      upsert,
      remove,
      ...(change.globals === undefined ? {} : { globals: this.#globals }),
    };
    for (const key of change.remove) this.#routes.delete(key);
    for (const route of change.upsert) this.#routes.set(route.key, route);
    if (change.globals !== undefined) this.#globals = change.globals;
    return undo;
  }

  #spawn(place: WorkerPoolOptions["places"][number]): void {
    const handle = new WorkerHandle({
      entry: this.#options.entry,
      init: { ...place, shared: this.#options.shared },
      log: this.#options.log,
      silentMs: this.#options.silentMs,
      stuckMs: this.#options.stuckMs,
      startMs: this.#options.startMs,
      onGone: (gone, reason) => this.#replace(place, gone, reason),
    });
    this.#handles.set(place.workerIndex, handle);
    const failures = this.#failures.get(place.workerIndex);
    this.#failures.set(place.workerIndex, {
      count: failures?.count ?? 0,
      startedMs: performance.now(),
    });
    handle.begin(
      { globals: this.#globals, upsert: [...this.#routes.values()], remove: [] },
      this.#readiness,
    );
  }

  #replace(place: WorkerPoolOptions["places"][number], gone: WorkerHandle, reason: string): void {
    this.#handles.delete(gone.index);
    this.#active.clearWorker(gone.index);
    this.#options.onRetired(gone.metrics);
    if (this.#stopping.signal.aborted) return;
    const past = this.#failures.get(gone.index);
    const lived = performance.now() - (past?.startedMs ?? 0);
    const count = lived > STEADY_MS ? 1 : (past?.count ?? 0) + 1;
    this.#failures.set(gone.index, { count, startedMs: performance.now() });
    const waitMs = Math.min(BACKOFF_MAX_MS, BACKOFF_MIN_MS * 2 ** Math.min(count - 1, 10));
    this.#options.log.error("a worker is gone and will be replaced", {
      worker: gone.index,
      reason,
      wait_ms: waitMs,
    });
    void delay(waitMs, undefined, { signal: this.#stopping.signal }).then(
      () => this.#spawn(place),
      () => undefined,
    );
  }
}
