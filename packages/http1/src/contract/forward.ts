// What forwarding is given and what it tells.
import type { ResponseHead } from "../parse/index.ts";
import type { Exchange } from "./exchange.ts";
import type { UpstreamPool } from "./upstream.ts";
import type { HeadWriter } from "../write/index.ts";

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

/** How a forwarded exchange ended. */
export type ForwardOutcome =
  | "complete"
  /** The tunnel after a 101 was closed. */
  | "tunnel-closed"
  /** The client went away first. */
  | "client-aborted"
  /** No try succeeded; an own answer was sent. */
  | "failed"
  /** The upstream broke off, timed out or sent too little after its head was passed on: the client's connection was destroyed. */
  | "truncated"
  /** The request body was refused while it streamed: malformed (400), too large (413) or too slow (408). */
  | "request-refused";

/** The end of a forwarded exchange. Reused: read it inside the callback only. */
export interface ForwardResult {
  readonly outcome: ForwardOutcome;
  /** Status sent to the client, 0 if none was. */
  readonly status: number;
  /** Body bytes from and to the client; in a tunnel all bytes. */
  readonly bytesIn: number;
  readonly bytesOut: number;
  /** From `forward` to the response head in milliseconds, -1 if none came. */
  readonly upstreamMs: number;
  /** From the request head to the end in milliseconds. */
  readonly totalMs: number;
  readonly attempts: number;
  /** The target of the last try. */
  readonly target: ForwardTarget;
}

/** A spliced pair of sockets after a 101. */
export interface Tunnel {
  readonly bytesIn: number;
  readonly bytesOut: number;
  /** Closes both sides. */
  close(): void;
}

/**
 * Watches and shapes forwarded exchanges. One object serves many requests: what belongs to one is in
 * `exchange.userData`. Only `onFailure` and `onDone` may answer or forward again.
 */
export interface ForwardObserver<U = unknown> {
  /** Appends fields to the request, once per try (X-Forwarded-*, traceparent, …). */
  onRequestHead?(exchange: Exchange<U>, writer: HeadWriter, target: ForwardTarget): void;
  /** A final response head (or a 101) came: appends fields to it. The head is valid inside the callback only. */
  onResponseHead?(exchange: Exchange<U>, head: ResponseHead, writer: HeadWriter): void;
  /**
   * A try failed and nothing was answered: returns a target to try next, or null. After null the engine answers
   * `failure.status`, unless the callback called `exchange.respond` itself.
   */
  onFailure?(exchange: Exchange<U>, failure: ForwardFailure): ForwardTarget | null;
  /** A 101 was passed on; the tunnel lives until `onDone`. */
  onTunnel?(exchange: Exchange<U>, tunnel: Tunnel): void;
  /** The exchange is over: called exactly once per `forward`. */
  onDone?(exchange: Exchange<U>, result: ForwardResult): void;
}
