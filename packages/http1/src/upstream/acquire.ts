// Requests for an upstream connection, and reasons why they fail.
import { type MethodId, isIdempotent } from "../parse/index.ts";
import type { UpstreamConnection } from "./connection.ts";

/** Reason why no connection is available. */
export type AcquireFailure =
  | "connect-refused"
  | "connect-timeout"
  | "connect-failed"
  | "tls-failed"
  | "queue-full"
  | "queue-timeout"
  | "pool-closed";

/** Which connections a request accepts. */
export const Reuse = {
  /** Any open one: a request that is lost on a stale connection can be sent again. */
  Any: 0,
  /** A used one only after its socket has been polled again, because the request may not be repeatable. */
  Checked: 1,
  /** Only a connection without previous requests. */
  Never: 2,
} as const;

/** One of the values in `Reuse`. */
export type ReuseKind = (typeof Reuse)[keyof typeof Reuse];

/** A request that needs a connection. */
export interface Acquirer {
  /** Time since which it waits; 0 otherwise. Set only by the pool. */
  waitingSinceMs: number;
  /** Accepted connections. Set only by the pool. */
  reuse: ReuseKind;
  onAcquired(connection: UpstreamConnection): void;
  onAcquireFailed(kind: AcquireFailure, code: string): void;
}

/** Connections that a first attempt accepts: a request that cannot be sent again must not meet a closed one. */
export function chooseReuse(methodId: MethodId, hasBodyToCome: boolean): ReuseKind {
  return isIdempotent(methodId) && !hasBodyToCome ? Reuse.Any : Reuse.Checked;
}

/** Maps a system or TLS error code of a connection attempt to a failure. */
export function kindOfCode(code: string): AcquireFailure {
  if (code === "ECONNREFUSED" || code === "ENOENT") return "connect-refused";
  if (code === "ETIMEDOUT") return "connect-timeout";
  if (
    code.startsWith("ERR_TLS") ||
    code.startsWith("ERR_SSL") ||
    /CERT|SIGNATURE|ISSUER/.test(code)
  ) {
    return "tls-failed";
  }
  return "connect-failed";
}
