// The worker threads of both listeners as one: of the main one, and of the admin API if it has its own.
import type { Revocation } from "@platform/kernel/identity";
import type { FinishedSpan } from "@platform/kernel/trace";
import type {
  GlobalSpec,
  InternalRoute,
  MetricBlock,
  RouteSpec,
  TicketKeySpec,
} from "../shared-state/index.ts";
import type { Change } from "./worker-handle.ts";
import { WorkerPool, type WorkerPoolOptions, type WorkerSources } from "./worker-pool.ts";

/** Timeout for a worker's reply to a change, after which it is replaced. */
const WORKER_SILENT_MS = 2000;
/** Timeout for a worker's heartbeat, after which it is replaced. */
const WORKER_STUCK_MS = 15_000;
const WORKER_START_MS = 30_000;

/** Options of {@link WorkerPools}. */
export interface WorkerPoolsOptions extends Omit<
  WorkerPoolOptions,
  "places" | "silentMs" | "stuckMs" | "startMs"
> {
  /** Address and number of the main listener's threads, which begin with these settings and routes. */
  main: {
    address: { host: string; port: number };
    /** Address of the listener for plain HTTP, if there is one. */
    plainAddress: { host: string; port: number } | undefined;
    /** Address of the listener without TLS for programs on this machine, if there is one. */
    localAddress: { host: string; port: number } | undefined;
    workers: number;
    globals: GlobalSpec;
    routes: readonly RouteSpec[];
  };
  /** The admin API's listener, which one thread serves. */
  admin:
    | {
        address: { host: string; port: number };
        globals: GlobalSpec;
        internalRoutes: InternalRoute[];
      }
    | undefined;
}

/** All worker threads of a gateway. */
export class WorkerPools {
  readonly #main: WorkerPool;
  readonly #admin: WorkerPool | undefined;
  readonly #all: readonly WorkerPool[];
  readonly #adminRoutes: InternalRoute[];

  constructor({ main, admin, ...options }: WorkerPoolsOptions) {
    const common = {
      ...options,
      silentMs: WORKER_SILENT_MS,
      stuckMs: WORKER_STUCK_MS,
      startMs: WORKER_START_MS,
    };
    const { workers, address, plainAddress, localAddress, globals, routes } = main;
    const reusePort = workers > 1;
    const listen = { ...address, reusePort };
    const plain = plainAddress === undefined ? {} : { plainListen: { ...plainAddress, reusePort } };
    const local = localAddress === undefined ? {} : { localListen: { ...localAddress, reusePort } };
    const places = Array.from({ length: workers }, (_, workerIndex) => ({
      workerIndex,
      listen,
      ...plain,
      ...local,
    }));
    this.#main = new WorkerPool({ ...common, places }, globals, routes);
    if (admin !== undefined) {
      const place = { workerIndex: workers, listen: { ...admin.address, reusePort: false } };
      this.#admin = new WorkerPool({ ...common, places: [place] }, admin.globals, []);
    }
    this.#adminRoutes = admin?.internalRoutes ?? [];
    this.#all = this.#admin === undefined ? [this.#main] : [this.#main, this.#admin];
  }

  /** Starts all threads; rejects if one cannot start. */
  async start(sources: WorkerSources): Promise<void> {
    await Promise.all(this.#all.map((pool) => pool.start(sources)));
  }

  /** Applies a change to all threads; see `WorkerPool.apply`. Calls must not overlap. */
  async apply(change: Change): Promise<void> {
    await this.#main.apply(change);
    await this.#admin?.apply(this.#toAdminChange(change));
  }

  /** Sets the keys of TLS session tickets in all threads. */
  setTicketKeys(ticketKeys: TicketKeySpec): void {
    for (const pool of this.#all) pool.setTicketKeys(ticketKeys);
  }

  /** Sends revocations to all threads. */
  revoke(entries: readonly Revocation[], policyVersion: number | undefined): void {
    for (const pool of this.#all) pool.revoke(entries, policyVersion);
  }

  /** Sets the response of the readiness probe in all threads. */
  setReadiness(up: boolean, checks: Record<string, string>): void {
    for (const pool of this.#all) pool.setReadiness(up, checks);
  }

  /** The spans of a trace that all threads keep. */
  async findSpans(traceId: string): Promise<FinishedSpan[]> {
    return (await Promise.all(this.#all.map((pool) => pool.findSpans(traceId)))).flat();
  }

  /** Reopens the logs in all threads. */
  async reopenLogs(): Promise<void> {
    await Promise.all(this.#all.map((pool) => pool.reopenAccessLog()));
  }

  /** Metrics of the running threads. */
  listMetrics(): MetricBlock[] {
    return this.#all.flatMap((pool) => pool.listMetrics());
  }

  /** Number of listening threads. */
  countLive(): number {
    return this.#all.reduce((sum, pool) => sum + pool.countLive(), 0);
  }

  /** Drains all threads, then ends them; resolves with the number of exchanges cut by the deadline. */
  async drain(deadlineMs: number): Promise<number> {
    const cuts = await Promise.all(this.#all.map((pool) => pool.drain(deadlineMs)));
    return cuts.reduce((sum, cut) => sum + cut, 0);
  }

  // The admin listener has no routes and no logs, and internal routes of its own; all other settings are the same.
  #toAdminChange(change: Change): Change {
    const access = change.access === undefined ? {} : { access: change.access };
    if (change.globals === undefined) return { ...access, upsert: [], remove: [] };
    const {
      accessLog: _accessLog,
      recording: _recording,
      console: _console,
      ...globals
    } = change.globals;
    const internalRoutes = this.#adminRoutes;
    return { ...access, upsert: [], remove: [], globals: { ...globals, internalRoutes } };
  }
}
