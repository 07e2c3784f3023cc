// What each kind of failed try is answered with when nobody else answers.
import { ERROR_TABLE } from "@platform/kernel/errors";

import type { FailureKind } from "../contract/forward.ts";

const table = {
  "connect-refused": ["upstream_unreachable", "The upstream refused the connection."],
  "connect-timeout": ["upstream_timeout", "The upstream could not be reached in time."],
  "connect-failed": ["upstream_unreachable", "The upstream could not be reached."],
  "tls-failed": ["upstream_unreachable", "The TLS handshake with the upstream failed."],
  "queue-full": ["queue_full", "Too many requests wait for the upstream."],
  "queue-timeout": ["queue_timeout", "No connection to the upstream became free in time."],
  "pool-closed": ["unavailable", "The upstream has been taken out of service."],
  "reset-on-idle": ["upstream_unreachable", "The upstream closed the connection."],
  reset: ["upstream_unreachable", "The upstream closed the connection without an answer."],
  "response-timeout": ["upstream_timeout", "The upstream did not answer in time."],
  "malformed-response": ["upstream_invalid_response", "The upstream's answer is malformed."],
  "total-timeout": ["upstream_timeout", "The request took longer than it may."],
} as const satisfies Record<FailureKind, readonly [FailureCode, string]>;

type FailureCode =
  | "upstream_unreachable"
  | "upstream_timeout"
  | "upstream_invalid_response"
  | "queue_full"
  | "queue_timeout"
  | "unavailable";

/** The status of the answer. */
export function statusOf(kind: FailureKind): 502 | 503 | 504 {
  return ERROR_TABLE[table[kind][0]].status;
}

/** The stable code of the answer. */
export function codeOf(kind: FailureKind): FailureCode {
  return table[kind][0];
}

/** The sentence of the answer. */
export function detailOf(kind: FailureKind): string {
  return table[kind][1];
}
