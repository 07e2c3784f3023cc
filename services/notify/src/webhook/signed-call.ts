// Signed calls to targets: the request, what its answer means, and when it is repeated. Webhooks and forwards share them.
import { EgressError, type EgressFetch } from "@platform/kernel/egress";
import type { Clock } from "@platform/kernel/time";
import { formatTraceHeaders, type Tracer } from "@platform/kernel/trace";
import { readTrace, type TraceColumns } from "../database/trace.ts";
import { signWebhook } from "./signature.ts";

/** Parts that calls use. */
export interface CallParts {
  /** Checks and pins addresses; does not follow redirects. */
  fetch: EgressFetch;
  clock: Clock;
  tracer: Tracer;
}

/** A call. Repetitions have the same id. */
export interface TargetCall {
  url: string;
  id: string;
  /** JSON. */
  body: string;
  secrets: readonly string[];
  /** The trace that the call continues; without one it starts its own. */
  trace: TraceColumns;
}

/** Result of an attempt. */
export type CallResult =
  | { kind: "delivered" | "failed"; detail: string }
  | { kind: "retry"; detail: string; afterMs?: number | undefined };

/** The state after an attempt. `dueAt` is the next attempt; null if the call has ended. */
export interface CallState {
  status: "pending" | "delivered" | "failed";
  detail: string;
  dueAt: number | null;
}

const MINUTE_MS = 60_000;
/** Delays after each failed attempt: about 16 hours in all. */
const RETRY_MINUTES = [1, 5, 15, 30, 45, 60, 72, 72, 72, 72, 72, 72, 72, 72, 72, 72];
const RETRY_AFTER_MS_MAX = 72 * MINUTE_MS;
/** No attempt is planned for a later time after the previous one, in ms. */
export const CALL_DELAY_MS_MAX = RETRY_AFTER_MS_MAX;
const DETAIL_CHARACTERS_MAX = 300;
const USER_AGENT = "platform-notify/1";

/** Calls a target once, in a span of its own. Never rejects. */
export async function callTarget(parts: CallParts, call: TargetCall): Promise<CallResult> {
  const span = parts.tracer.startSpan({
    name: "notify.webhook.call",
    kind: "client",
    parent: readTrace(call.trace),
    attributes: { "notify.call": call.id },
  });
  const result = await request(parts, call, formatTraceHeaders(span.context));
  if (result.kind !== "delivered") span.setStatus("error", result.detail);
  span.end();
  return result;
}

/** Returns the state after an attempt; `attempts` is the number of earlier ones. */
export function planCall(result: CallResult, attempts: number, nowMs: number): CallState {
  const detail = result.detail.slice(0, DETAIL_CHARACTERS_MAX);
  if (result.kind !== "retry") return { status: result.kind, detail, dueAt: null };
  const minutes = RETRY_MINUTES[attempts];
  if (minutes === undefined) return { status: "failed", detail, dueAt: null };
  const delayMs = Math.max(minutes * MINUTE_MS, result.afterMs ?? 0);
  return { status: "pending", detail, dueAt: nowMs + delayMs };
}

async function request(
  { fetch, clock }: CallParts,
  { url, id, body, secrets }: TargetCall,
  traceHeaders: Readonly<Record<string, string>>,
): Promise<CallResult> {
  const timestampSeconds = Math.floor(clock.now() / 1_000);
  const headers = {
    "content-type": "application/json",
    "user-agent": USER_AGENT,
    ...traceHeaders,
    ...signWebhook({ id, timestampSeconds, body }, secrets),
  };
  try {
    return judgeAnswer(await fetch(url, { method: "POST", headers, body }));
  } catch (error) {
    const detail = error instanceof EgressError ? error.message : "the request failed";
    return { kind: "retry", detail };
  }
}

// 410 ends the attempts, as Standard Webhooks recommends; every other answer than 2xx may change.
function judgeAnswer({ status, headers }: Response): CallResult {
  const detail = `the target returned ${status}`;
  if (status >= 200 && status < 300) return { kind: "delivered", detail };
  if (status === 410) return { kind: "failed", detail };
  const seconds = Number(headers.get("retry-after") ?? Number.NaN);
  const afterMs = seconds > 0 ? Math.min(seconds * 1_000, RETRY_AFTER_MS_MAX) : undefined;
  return { kind: "retry", detail, afterMs };
}
