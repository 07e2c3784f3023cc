// What each kind of failed try is answered with when nobody else answers.
import type { FailureKind } from "./contract.ts";

const table = {
  "connect-refused": [502, "upstream_unreachable", "The upstream refused the connection."],
  "connect-timeout": [504, "upstream_timeout", "The upstream could not be reached in time."],
  "connect-failed": [502, "upstream_unreachable", "The upstream could not be reached."],
  "tls-failed": [502, "upstream_unreachable", "The TLS handshake with the upstream failed."],
  "queue-full": [503, "queue_full", "Too many requests wait for the upstream."],
  "queue-timeout": [504, "queue_timeout", "No connection to the upstream became free in time."],
  "pool-closed": [503, "unavailable", "The upstream has been taken out of service."],
  "reset-on-idle": [502, "upstream_unreachable", "The upstream closed the connection."],
  reset: [502, "upstream_unreachable", "The upstream closed the connection without an answer."],
  "response-timeout": [504, "upstream_timeout", "The upstream did not answer in time."],
  "malformed-response": [502, "upstream_invalid_response", "The upstream's answer is malformed."],
  "total-timeout": [504, "upstream_timeout", "The request took longer than it may."],
} as const satisfies Record<FailureKind, readonly [502 | 503 | 504, string, string]>;

/** The status of the answer. */
export function statusOf(kind: FailureKind): 502 | 503 | 504 {
  return table[kind][0];
}

/** The stable code of the answer. */
export function codeOf(kind: FailureKind): string {
  return table[kind][1];
}

/** The sentence of the answer. */
export function detailOf(kind: FailureKind): string {
  return table[kind][2];
}
