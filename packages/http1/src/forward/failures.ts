// Failed attempts: their maximum number, and the default responses.
import { ERROR_TABLE } from "@platform/kernel/errors";

import type { FailureKind } from "../contract/forward.ts";

/** Maximum number of attempts of a request. */
export const ATTEMPTS_MAX = 16;

const table = {
  "connect-refused": ["upstream_unreachable", "The upstream refused the connection."],
  "connect-timeout": ["upstream_timeout", "The upstream could not be reached in time."],
  "connect-failed": ["upstream_unreachable", "The upstream could not be reached."],
  "tls-failed": ["upstream_unreachable", "The TLS handshake with the upstream failed."],
  "queue-full": ["queue_full", "Too many requests are waiting for the upstream."],
  "queue-timeout": ["queue_timeout", "No connection to the upstream became free in time."],
  "pool-closed": ["unavailable", "The upstream has been removed."],
  "reset-on-idle": ["upstream_unreachable", "The upstream closed the connection."],
  reset: ["upstream_unreachable", "The upstream closed the connection without a response."],
  "response-timeout": ["upstream_timeout", "The upstream did not respond in time."],
  "malformed-response": ["upstream_invalid_response", "The upstream's response is malformed."],
  "total-timeout": ["upstream_timeout", "The request took too long."],
} as const satisfies Record<FailureKind, readonly [FailureCode, string]>;

type FailureCode =
  | "upstream_unreachable"
  | "upstream_timeout"
  | "upstream_invalid_response"
  | "queue_full"
  | "queue_timeout"
  | "unavailable";

/** Status of the response. */
export function statusOf(kind: FailureKind): 502 | 503 | 504 {
  return ERROR_TABLE[table[kind][0]].status;
}

/** Stable code of the response. */
export function codeOf(kind: FailureKind): FailureCode {
  return table[kind][0];
}

/** Detail of the response. */
export function detailOf(kind: FailureKind): string {
  return table[kind][1];
}
