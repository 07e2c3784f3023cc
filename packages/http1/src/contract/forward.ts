// What forwarding is given and what it tells.
import type { UpstreamPool } from "./upstream.ts";

/** How requests to one target are rewritten; compiled once by `compilePlan`. */
export interface ForwardPlanOptions {
  /** `keep` sends the client's Host; anything else is sent as the Host. Default `keep`. */
  host?: "keep" | { readonly value: string };
  /** Host for HTTP/1.0 requests that came without one; default `localhost`. */
  hostFallback?: string;
  /** Request fields that are not passed on, any case. Hop-by-hop fields are always removed. */
  removeRequestFields?: readonly string[];
  /** Fields added to every request. */
  addRequestFields?: readonly (readonly [name: string, value: string])[];
  removeResponseFields?: readonly string[];
  addResponseFields?: readonly (readonly [name: string, value: string])[];
  /** Leading bytes of the path that are cut off; what remains gets a leading `/` if it has none. Default 0. */
  stripPathBytes?: number;
  /** Path put in front; must begin with `/` and not end with one; default "". */
  prependPath?: string;
  /** Allows `Upgrade` requests through; default true. Otherwise the fields are removed and the request is a plain one. */
  upgrade?: boolean;
  timeouts?: ForwardTimeouts;
}

/** Waits of a forwarded request in milliseconds, compared once per sweep; 0 switches one off. */
export interface ForwardTimeouts {
  /** From the whole request sent to the response head; default 60 000 (504). */
  responseHeadMs?: number;
  /** Between two pieces of the response body; default 300 000. */
  bodyIdleMs?: number;
  /** From the head of the request to the end of the answer; default 0. Not for tunnels. */
  totalMs?: number;
  /** Between two bytes in a tunnel, either way; default 0. */
  tunnelIdleMs?: number;
}

/** A compiled plan: opaque, immutable, shared by all requests of a route's target. */
export interface ForwardPlan {
  readonly options: ForwardPlanOptions;
}

/** A pool together with the plan for it; made once per target. */
export interface ForwardTarget {
  readonly pool: UpstreamPool;
  readonly plan: ForwardPlan;
}

/** Why a try failed. */
export type FailureKind =
  | "connect-refused"
  | "connect-timeout"
  | "connect-failed"
  | "tls-failed"
  | "queue-full"
  | "queue-timeout"
  | "pool-closed"
  /** A reused connection was lost before any byte of the response: most likely it was idle too long. */
  | "reset-on-idle"
  /** A fresh connection was lost before any byte of the response. */
  | "reset"
  | "response-timeout"
  | "malformed-response"
  | "total-timeout";

/** A failed try, before anything was answered. Reused: read it inside the callback only. */
export interface ForwardFailure {
  readonly kind: FailureKind;
  /** System or parser code (`ECONNREFUSED`, …), "" if none. */
  readonly code: string;
  readonly target: ForwardTarget;
  /** 1 for the first try. */
  readonly attempt: number;
  /** Whether any byte of the request reached a socket. */
  readonly requestSent: boolean;
  /** Whether the request can be sent again: its body, if any, has not been passed on beyond what is still held. */
  readonly replayable: boolean;
  /** The status that the engine answers if nobody does: 502, 503 or 504. */
  readonly status: 502 | 503 | 504;
}

/** A spliced pair of sockets after a 101. */
export interface Tunnel {
  readonly bytesIn: number;
  readonly bytesOut: number;
  /** Closes both sides. */
  close(): void;
}
