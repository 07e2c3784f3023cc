// The trace in which a row was written, which calls continue that are made later.
import { formatTraceparent, parseTraceContext, type TraceContext } from "@platform/kernel/trace";

/** Columns of a trace context, as its two header fields; null without one. */
export interface TraceColumns {
  traceparent: string | null;
  tracestate: string | null;
}

/** Returns the columns of a context. */
export function toTraceColumns(context: TraceContext): TraceColumns {
  return {
    traceparent: formatTraceparent(context),
    tracestate: context.traceState === "" ? null : context.traceState,
  };
}

/** Returns the context of a row; undefined if it has none, as rows of earlier versions. */
export function readTrace({ traceparent, tracestate }: TraceColumns): TraceContext | undefined {
  return parseTraceContext(traceparent, tracestate);
}
