// The trace of the request in flight, for calls to other services far below its handler.
import { AsyncLocalStorage } from "node:async_hooks";
import type { IdSource } from "../ids/index.ts";
import {
  formatTraceHeaders,
  formatTraceparent,
  type TraceContext,
  type TraceHeaders,
} from "./context.ts";

const current = new AsyncLocalStorage<TraceContext>();

/** Runs `work`, and everything that it starts, as a part of a trace. */
export function runInTrace<Result>(context: TraceContext, work: () => Result): Result {
  return current.run(context, work);
}

/** The trace of the request in flight; undefined outside of requests. */
export function getCurrentTrace(): TraceContext | undefined {
  return current.getStore();
}

/** The fields of the request in flight, or of a new trace outside of requests. */
export function createTraceHeaders(ids: Pick<IdSource, "traceId" | "spanId">): TraceHeaders {
  const context = getCurrentTrace();
  if (context !== undefined) return formatTraceHeaders(context);
  return {
    traceparent: formatTraceparent({ traceId: ids.traceId(), spanId: ids.spanId(), sampled: true }),
  };
}
