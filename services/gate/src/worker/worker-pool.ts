// The pool of worker threads: all of them receive every change, and a thread that ends is replaced.
import { setTimeout as delay } from "node:timers/promises";
import { PlatformError } from "@platform/kernel/errors";
import type { Revocation } from "@platform/kernel/identity";
import type { Logger } from "@platform/kernel/log";
import type { FinishedSpan } from "@platform/kernel/trace";
import {
  type AccessChange,
  ActiveCounts,
  CacheFlights,
  ConcurrencyRows,
  type GlobalSpec,
  type GuestChange,
  type AiBudget,
  type AiFigures,
  type GuestFigures,
  type MetricBlock,
  type RefreshOutcome,
  type RouteKey,
  type RouteSpec,
  type SharedBuffers,
  SharedCache,
  type WorkerInit,
  type TicketKeySpec,
} from "../shared-state/index.ts";
import { type Change, type QuestionSource, type Readiness, WorkerHandle } from "./worker-handle.ts";

const BACKOFF_MIN_MS = 100;
const BACKOFF_MAX_MS = 10_000;
/** A thread that ran this long resets its backoff. */
const STEADY_MS = 30_000;

/** Options of {@link WorkerPool}. */
export interface WorkerPoolOptions {
  entry: URL;
  /** Index in shared memory and listener of each thread. */
  places: readonly Pick<WorkerInit, "workerIndex" | "listen" | "plainListen" | "localListen">[];
  shared: SharedBuffers;
  log: Logger;
  silentMs: number;
  stuckMs: number;
  startMs: number;
}

/** Sources of the threads in other parts. */
export interface WorkerSources {
  /** Revocations that new threads begin with; undefined if no feed is followed. */
  listRevocations?: (() => NonNullable<WorkerInit["revocations"]>) | undefined;
  /** Keys of TLS session tickets that new threads begin with. */
  readTicketKeys?: () => TicketKeySpec;
  /** Keys of sealed cookies. */
  cookieKeys?: readonly Uint8Array[];
  /** Renews the session of a browser; never rejects. */
  refreshSession?: (client: string, sealed: string) => Promise<RefreshOutcome>;
  /** Access state that new threads begin with. */
  listAccess?: () => AccessChange;
  /** Middleware that new threads begin with. */
  listGuests?: () => GuestChange;
  /** Budgets that new threads begin with. */
  listBudgets?: () => readonly AiBudget[];
  /** Receives the figures of AI routes of one thread. */
  onAiFigures?: (figures: readonly AiFigures[]) => void;
  /** Questions to models whose answers are stored. */
  questions?: QuestionSource;
  /** Files of the AI ledger of a new thread; `onLedgerEnded` is called with their name when it has ended. */
  openLedger: () => WorkerInit["ledger"];
  onLedgerEnded?: (instance: string) => void;
  /** Receives the names of handshakes that no certificate fits. */
  onUnknownName?: ((name: string) => void) | undefined;
  /** Receives the figures of middleware of one thread. */
  onGuestFigures?: (worker: number, figures: readonly GuestFigures[]) => void;
  /** Called with the metrics of a thread that has ended, to retain its totals. */
  onRetired: (metrics: MetricBlock) => void;
}

/** Worker threads with the same routes and global settings. */
export class WorkerPool {
  readonly #options: WorkerPoolOptions;
  readonly #active: ActiveCounts;
  readonly #concurrency: ConcurrencyRows;
  readonly #cache: SharedCache;
  readonly #flights: CacheFlights;
  readonly #handles = new Map<number, WorkerHandle>();
  readonly #failures = new Map<number, { count: number; startedMs: number }>();
  readonly #routes = new Map<RouteKey, RouteSpec>();
  readonly #stopping = new AbortController();
  /** Names of the ledgers of the threads. */
  readonly #ledgers = new Map<number, string>();
  #sources: WorkerSources | undefined;
  #globals: GlobalSpec;
  #readiness: Readiness = { up: false, checks: { gate: "starting" } };

  constructor(options: WorkerPoolOptions, globals: GlobalSpec, routes: readonly RouteSpec[]) {
    this.#options = options;
    this.#globals = globals;
    const { shared } = options;
    this.#active = new ActiveCounts(shared);
    this.#cache = new SharedCache(shared.cache, shared.workers);
    this.#flights = new CacheFlights(shared.flights, shared.workers, () => 1);
    this.#concurrency = new ConcurrencyRows(shared.concurrency, shared.workers, 0);
    for (const route of routes) this.#routes.set(route.key, route);
  }

  /** Starts all threads; if one cannot start, ends the others and rejects. */
  async start(sources: WorkerSources): Promise<void> {
    this.#sources = sources;
    for (const place of this.#options.places) this.#spawn(place);
    const starts = [...this.#handles.values()].map((handle) => handle.started);
    try {
      await Promise.all(starts);
    } catch (cause) {
      await this.end();
      throw cause;
    }
  }

  /** Number of listening threads. */
  countLive(): number {
    return [...this.#handles.values()].filter((handle) => handle.isLive).length;
  }

  /** Metrics of the running threads. */
  listMetrics(): MetricBlock[] {
    return [...this.#handles.values()].map((handle) => handle.metrics);
  }

  /**
   * Applies a change to all threads. If one refuses it, the others revert to their previous state and the call throws
   * `internal` with the reason. Calls must not overlap.
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

  /** Sets the response of the readiness probe in all threads. */
  setReadiness(up: boolean, checks: Record<string, string>): void {
    this.#readiness = { up, checks };
    for (const handle of this.#handles.values()) handle.send({ type: "readiness", up, checks });
  }

  /** Sets the keys of TLS session tickets in all threads. */
  setTicketKeys(ticketKeys: TicketKeySpec): void {
    for (const handle of this.#handles.values()) handle.send({ type: "ticket-keys", ticketKeys });
  }

  /** Sends revocations to all threads. */
  revoke(entries: readonly Revocation[], policyVersion: number | undefined): void {
    for (const handle of this.#handles.values()) {
      handle.send({ type: "revocations", entries, policyVersion });
    }
  }

  /** The spans of a trace that all threads keep. */
  async findSpans(traceId: string): Promise<FinishedSpan[]> {
    const handles = [...this.#handles.values()];
    return (await Promise.all(handles.map((handle) => handle.findSpans(traceId)))).flat();
  }

  /** Reopens the access log in all threads. */
  async reopenAccessLog(): Promise<void> {
    await Promise.all([...this.#handles.values()].map((handle) => handle.reopenAccessLog()));
  }

  /** Drains all threads, then ends them; resolves with the number of exchanges cut by the deadline. */
  async drain(deadlineMs: number): Promise<number> {
    this.#stopping.abort();
    const cuts = await Promise.all(
      [...this.#handles.values()].map((handle) => handle.drain(deadlineMs)),
    );
    return cuts.reduce((sum, cut) => sum + cut, 0);
  }

  /** Ends all threads immediately. */
  async end(): Promise<void> {
    this.#stopping.abort();
    await Promise.all([...this.#handles.values()].map((handle) => handle.end()));
  }

  /** Applies the change to the initial state of new threads; returns the inverse change. */
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
    const { listRevocations, listAccess, cookieKeys, readTicketKeys, refreshSession } =
      this.#sources!;
    const { listGuests, listBudgets, onAiFigures, onGuestFigures, questions, onUnknownName } =
      this.#sources!;
    const ledger = this.#sources!.openLedger();
    this.#ledgers.set(place.workerIndex, ledger.instance);
    const handle = new WorkerHandle({
      entry: this.#options.entry,
      init: {
        ...place,
        shared: this.#options.shared,
        ...(readTicketKeys === undefined ? {} : { ticketKeys: readTicketKeys() }),
        ...(cookieKeys === undefined ? {} : { cookieKeys }),
        ...(listRevocations === undefined ? {} : { revocations: listRevocations() }),
        ledger,
      },
      log: this.#options.log,
      refreshSession,
      onAiFigures,
      onGuestFigures,
      questions,
      onUnknownName,
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
      {
        globals: this.#globals,
        ...(listAccess === undefined ? {} : { access: listAccess() }),
        ...(listGuests === undefined ? {} : { guests: listGuests() }),
        ...(listBudgets === undefined ? {} : { budgets: listBudgets() }),
        upsert: [...this.#routes.values()],
        remove: [],
      },
      this.#readiness,
    );
  }

  #replace(place: WorkerPoolOptions["places"][number], gone: WorkerHandle, reason: string): void {
    this.#handles.delete(gone.index);
    this.#active.clearWorker(gone.index);
    this.#concurrency.clearWorker(gone.index);
    this.#cache.recover(gone.index);
    this.#flights.recover(gone.index);
    this.#sources!.onRetired(gone.metrics);
    const instance = this.#ledgers.get(gone.index);
    if (instance !== undefined) this.#sources!.onLedgerEnded?.(instance);
    if (this.#stopping.signal.aborted) return;
    const past = this.#failures.get(gone.index);
    const lived = performance.now() - (past?.startedMs ?? 0);
    const count = lived > STEADY_MS ? 1 : (past?.count ?? 0) + 1;
    this.#failures.set(gone.index, { count, startedMs: performance.now() });
    const waitMs = Math.min(BACKOFF_MAX_MS, BACKOFF_MIN_MS * 2 ** Math.min(count - 1, 10));
    this.#options.log.error("worker ended and will be replaced", {
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
