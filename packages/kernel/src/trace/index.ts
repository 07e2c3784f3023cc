// Tracing: W3C trace context, spans, and export by OTLP/HTTP.
export {
  formatTraceHeaders,
  formatTraceparent,
  normalizeTraceState,
  parseTraceContext,
  type TraceContext,
  type TraceHeaders,
} from "./context.ts";
export { createTraceHeaders, getCurrentTrace, runInTrace } from "./current.ts";
export {
  createOtlpExporter,
  createSpanCounts,
  resolveTracesEndpoint,
  SPAN_METRICS,
  type OtlpExporterOptions,
  type SpanCounts,
  type SpanLoss,
} from "./otlp-exporter.ts";
export { createServiceTracer } from "./service-tracer.ts";
export {
  combineExporters,
  KEPT_SPANS_BYTES_MAX,
  SpanKeeper,
  type SpanKeeperOptions,
} from "./span-keeper.ts";
export {
  createTracer,
  isSampled,
  type AttributeValue,
  type FinishedSpan,
  type Span,
  type SpanExporter,
  type Tracer,
} from "./tracer.ts";
