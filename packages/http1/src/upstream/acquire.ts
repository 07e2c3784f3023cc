// What a request says when it needs a connection, and why it may not get one.
import { type MethodId, isIdempotent } from "../parse/index.ts";
import type { UpstreamConnection } from "./connection.ts";

/** Why no connection could be had. */
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
  /** Any open one: a request that is lost on a stale connection is sent again. */
  Any: 0,
  /** One that was used before only after its socket was polled once more: the request may not be repeatable. */
  Checked: 1,
  /** Only one that no request has been sent on. */
  Never: 2,
} as const;

/** One of the values in `Reuse`. */
export type ReuseKind = (typeof Reuse)[keyof typeof Reuse];

/** A request that needs a connection. */
export interface Acquirer {
  /** The pool's mark while waiting; 0 otherwise. Set by the pool only. */
  waitingSinceMs: number;
  /** What it accepts. Set by the pool only. */
  reuse: ReuseKind;
  onAcquired(connection: UpstreamConnection): void;
  onAcquireFailed(kind: AcquireFailure, code: string): void;
}

/** What a first try accepts: a request that cannot be sent again must not meet a closed connection. */
export function chooseReuse(methodId: MethodId, hasBodyToCome: boolean): ReuseKind {
  return isIdempotent(methodId) && !hasBodyToCome ? Reuse.Any : Reuse.Checked;
}

/** The failure that a system or TLS error code of a connection attempt stands for. */
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
