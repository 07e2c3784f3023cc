// The words that the control plane and a worker exchange. Counts are read from shared memory instead.
import type { GlobalSpec } from "./global-spec.ts";
import type { RouteKey, RouteSpec } from "./route-spec.ts";
import type { SharedBuffers } from "./shared-buffers.ts";

/** Given to a worker as `workerData`. */
export interface WorkerInit {
  /** Column of this worker in shared memory, 0 … workers − 1; free again once it is dead. */
  workerIndex: number;
  /** The same object for every worker of the process. */
  shared: SharedBuffers;
  /** This worker's own block; a replacement gets a new one and the old one's totals stay. */
  metrics: SharedArrayBuffer;
  listen: {
    host: string;
    /** The real port: the control plane has probed it, 0 does not arrive here. */
    port: number;
    /** False where the platform has no `SO_REUSEPORT`; there is one worker then. */
    reusePort: boolean;
  };
}

/**
 * One numbered change. Numbers rise by one for each worker, from 1. The first carries `globals` and
 * every route. Removals come before insertions; a route in `upsert` replaces the one of its key.
 */
export interface ApplyMessage {
  type: "apply";
  seq: number;
  globals?: GlobalSpec;
  upsert: RouteSpec[];
  remove: RouteKey[];
}

/**
 * Routes that belong to the next `apply` message, sent ahead of it and answered `applied`: a message is read as a whole,
 * and a worker that reads a large one serves nothing meanwhile. Numbered like changes.
 */
export interface StageMessage {
  type: "stage";
  seq: number;
  upsert: RouteSpec[];
}

/** From the control plane to a worker. */
export type ToWorker =
  | StageMessage
  | ApplyMessage
  /** What `/readyz` answers: 200 while `up`, else 503 with `checks`. Down until the first such word. */
  | { type: "readiness"; up: boolean; checks: Record<string, string> }
  /** Stop accepting, finish what is under way, close the rest after `deadlineMs`; answers `drained`. */
  | { type: "drain"; deadlineMs: number }
  /** The access log was renamed or removed: open its path again; answers `reopened`. */
  | { type: "reopen-access-log" };

/** From a worker to the control plane. */
export type FromWorker =
  /** The listener is open. It is opened on the first `apply`. */
  | { type: "listening"; port: number }
  | { type: "listen-failed"; code: string; message: string }
  /** From now on every request on this worker sees the change `seq`, or the part of one is kept. */
  | { type: "applied"; seq: number }
  /** The change could not be applied, and nothing of it was; the worker keeps what it had. */
  | { type: "apply-failed"; seq: number; message: string }
  /** A removed or replaced route has no exchange left on this worker. */
  | { type: "route-drained"; key: RouteKey; cut: number }
  /** All connections are closed; `cut` of them by the deadline. The worker may be ended. */
  | { type: "drained"; cut: number }
  | { type: "reopened" }
  /** One event for the process's log. */
  | {
      type: "log";
      level: "debug" | "info" | "warn" | "error";
      msg: string;
      fields: Record<string, string | number | boolean>;
    };
