// Plans, targets and failures of forwarding.
import type { UpstreamPool } from "./upstream.ts";

/** Rewrite rules for requests to one target; compiled once by `compilePlan`. */
export interface ForwardPlanOptions {
  /** `keep` forwards the client's Host, otherwise `value` is sent. Default `keep`. */
  host?: "keep" | { readonly value: string };
  /** Host for HTTP/1.0 requests without one; default `localhost`. */
  hostFallback?: string;
  /** Request fields to remove, case-insensitive. Hop-by-hop fields are always removed. */
  removeRequestFields?: readonly string[];
  /** Fields added to every request. */
  addRequestFields?: readonly (readonly [name: string, value: string])[];
  removeResponseFields?: readonly string[];
  addResponseFields?: readonly (readonly [name: string, value: string])[];
  /** Number of leading path bytes to remove; a leading `/` is added if the rest has none. Default 0. */
  stripPathBytes?: number;
  /** Path to prepend; must start with `/` and not end with one; default "". */
  prependPath?: string;
  /** Forwards `Upgrade` requests; default true. Otherwise the fields are removed. */
  upgrade?: boolean;
  timeouts?: ForwardTimeouts;
}

/** Timeouts of a forwarded request in milliseconds, checked once per sweep; 0 disables a timeout. */
export interface ForwardTimeouts {
  /** From the end of the request to the response head; default 60 000 (504). */
  responseHeadMs?: number;
  /** Between two chunks of the response body; default 300 000. */
  bodyIdleMs?: number;
  /** From the request head to the end of the response; default 0. Does not apply to tunnels. */
  totalMs?: number;
  /** Between two bytes of a tunnel in either direction; default 0. */
  tunnelIdleMs?: number;
}

/** A compiled plan: opaque, immutable, shared by all requests of a route's target. */
export interface ForwardPlan {
  readonly options: ForwardPlanOptions;
}

/** A pool with its plan; created once per target. */
export interface ForwardTarget {
  readonly pool: UpstreamPool;
  readonly plan: ForwardPlan;
}

/** Reason why an attempt failed. */
export type FailureKind =
  | "connect-refused"
  | "connect-timeout"
  | "connect-failed"
  | "tls-failed"
  | "queue-full"
  | "queue-timeout"
  | "pool-closed"
  /** A reused connection was lost before any byte of the response, most likely because it was idle too long. */
  | "reset-on-idle"
  /** A new connection was lost before any byte of the response. */
  | "reset"
  | "response-timeout"
  | "malformed-response"
  | "total-timeout";

/** A failed attempt before any response. Reused: read it only during the callback. */
export interface ForwardFailure {
  readonly kind: FailureKind;
  /** System or parser code (`ECONNREFUSED`, …), "" if absent. */
  readonly code: string;
  readonly target: ForwardTarget;
  /** Number of the attempt, starting at 1. */
  readonly attempt: number;
  /** True if any byte of the request was written to a socket. */
  readonly requestSent: boolean;
  /** True if the request can be sent again, because all forwarded body bytes are still buffered. */
  readonly replayable: boolean;
  /** Status of the engine's default response. */
  readonly status: 502 | 503 | 504;
}

/** A connected pair of sockets after a 101. */
export interface Tunnel {
  readonly bytesIn: number;
  readonly bytesOut: number;
  /** Closes both sides. */
  close(): void;
}
