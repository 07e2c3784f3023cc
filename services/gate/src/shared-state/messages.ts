// Messages between the control plane and a worker. Counts are read from shared memory instead.
import type { Revocation } from "@platform/kernel/identity";
import type { FinishedSpan } from "@platform/kernel/trace";
import type { AccessChange } from "./access-spec.ts";
import type { AiBudget, AiFigures, SimilarQuestion } from "./ai-spec.ts";
import type { GlobalSpec } from "./global-spec.ts";
import type { GuestChange, GuestFigures } from "./guest-spec.ts";
import type { RouteKey, RouteSpec } from "./route-spec.ts";
import type { SharedBuffers } from "./shared-buffers.ts";
import type { TicketKeySpec } from "./tls-spec.ts";

/** The `workerData` of a worker. */
export interface WorkerInit {
  /** Index of this worker in shared memory, 0 … workers − 1; reused by its replacement. */
  workerIndex: number;
  /** Shared by all workers of the process. */
  shared: SharedBuffers;
  /** This worker's own metrics; a replacement gets a new block, and the totals of the old one are kept. */
  metrics: SharedArrayBuffer;
  listen: {
    host: string;
    /** The actual port, found by the control plane; never 0. */
    port: number;
    /** False on platforms without `SO_REUSEPORT`, which have only one worker. */
    reusePort: boolean;
  };
  /** The listener for plain HTTP; absent if there is none. */
  plainListen?: WorkerInit["listen"];
  /** The listener without TLS for programs on this machine; absent if there is none. */
  localListen?: WorkerInit["listen"];
  ticketKeys?: TicketKeySpec;
  /** Files of the AI ledger: their folder, a name of this thread that no other has had, and that of the gateway in Redis. */
  ledger: { readonly folder: string; readonly instance: string; readonly gateway: string };
  /** Keys of sealed cookies, the first of which seals. */
  cookieKeys?: readonly Uint8Array[];
  /** Revoked tokens of the issuer at the start of the thread; undefined if no feed is followed. */
  revocations?: {
    issuer: string;
    entries: readonly Revocation[];
    policyVersion?: number | undefined;
  };
}

/**
 * One change. Each worker's sequence numbers start at 1 and increase by one. The first change contains `globals`, all of
 * `access`, `guests` and `budgets`, and all routes. Removals are applied before upserts; an upserted route replaces the one with its key.
 */
export interface ApplyMessage {
  type: "apply";
  seq: number;
  globals?: GlobalSpec;
  access?: AccessChange;
  guests?: GuestChange;
  /** Budgets of all tenants. */
  budgets?: readonly AiBudget[];
  upsert: RouteSpec[];
  remove: RouteKey[];
}

/**
 * A part of the routes of the next `apply` message, acknowledged with `applied`: deserializing one large message would
 * block the worker. Numbered like changes.
 */
export interface StageMessage {
  type: "stage";
  seq: number;
  upsert: RouteSpec[];
}

/** Outcome of the renewal of a browser's session. `ended`: the user must sign in again. */
export type RefreshOutcome =
  | { kind: "renewed"; sealed: string }
  | { kind: "ended" }
  | { kind: "unavailable" };

/** Find the spans of a trace; replied with `spans-found`. */
export interface FindSpansMessage {
  type: "find-spans";
  id: number;
  traceId: string;
}

/** Messages from the control plane to a worker. */
export type ToWorker =
  | StageMessage
  | ApplyMessage
  | FindSpansMessage
  /** Sets the response of `/readyz`: 200 if `up`, with `checks` as warnings, otherwise 503 with `checks`. Down until the first such message. */
  | { type: "readiness"; up: boolean; checks: Record<string, string> }
  /** Stop accepting, finish active requests, close the rest after `deadlineMs`; replies `drained`. */
  | { type: "drain"; deadlineMs: number }
  /** New keys of TLS session tickets. */
  | { type: "ticket-keys"; ticketKeys: TicketKeySpec }
  /** Tokens that were revoked since the previous such message. */
  | {
      type: "revocations";
      entries: readonly Revocation[];
      /** Policy version of the issuer; undefined if it does not report one. */
      policyVersion?: number | undefined;
    }
  /** The answer to `refresh-session`. */
  | { type: "session-refreshed"; id: number; outcome: RefreshOutcome }
  /** The answer to `find-similar`; without `found` if no stored question is alike. */
  | { type: "similar-found"; id: number; found?: SimilarQuestion | undefined }
  /** The access log was renamed or removed: open its path again; replies `reopened`. */
  | { type: "reopen-access-log" };

/** Messages from a worker to the control plane. */
export type FromWorker =
  /** The listener is open, which the first `apply` causes. */
  | { type: "listening"; port: number }
  | { type: "listen-failed"; code: string; message: string }
  /** Every further request on this worker sees the change `seq`; for a part of a change, the part is stored. */
  | { type: "applied"; seq: number }
  /** The change could not be applied and had no effect. */
  | { type: "apply-failed"; seq: number; message: string }
  /** The drain deadline ended `cut` exchanges of a removed or replaced route. */
  | { type: "streams-cut"; key: RouteKey; cut: number }
  /** All connections are closed, `cut` of them by the deadline. The worker can be terminated. */
  | { type: "drained"; cut: number }
  | { type: "reopened" }
  /** The answer to `find-spans`. */
  | { type: "spans-found"; id: number; spans: readonly FinishedSpan[] }
  /** No certificate fits the name of a handshake. */
  | { type: "unknown-name"; name: string }
  /** Calls of guests since the previous such message. */
  | { type: "guest-figures"; figures: readonly GuestFigures[] }
  /** Settled requests to models since the previous such message. */
  | { type: "ai-figures"; figures: readonly AiFigures[] }
  /** Renew the session of a browser; replied with `session-refreshed`. */
  | { type: "refresh-session"; id: number; client: string; sealed: string }
  /** Find a stored question that is alike; replied with `similar-found`. */
  | { type: "find-similar"; id: number; scope: string; text: string; threshold: number }
  /** The answer to this question is stored under `digest`. */
  | { type: "add-similar"; scope: string; text: string; digest: string; ttlMs: number }
  /** A line for the log of the process. */
  | {
      type: "log";
      level: "debug" | "info" | "warn" | "error";
      msg: string;
      fields: Record<string, string | number | boolean>;
    };
