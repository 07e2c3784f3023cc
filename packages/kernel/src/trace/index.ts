// Tracing: W3C trace context, spans, and export by OTLP/HTTP.
export {
  formatTraceparent,
  normalizeTraceState,
  parseTraceContext,
  type TraceContext,
} from "./context.ts";
export {
  createOtlpExporter,
  createSpanCounts,
  resolveTracesEndpoint,
  SPAN_METRICS,
  type OtlpExporterOptions,
  type SpanCounts,
  type SpanLoss,
} from "./otlp-exporter.ts";
export { encodeSpans, type TraceResource } from "./otlp-json.ts";
export { createServiceTracer, type ServiceTracerOptions } from "./service-tracer.ts";
export {
  createTracer,
  isSampled,
  type AttributeValue,
  type FinishedSpan,
  type Span,
  type SpanEvent,
  type SpanExporter,
  type SpanKind,
  type SpanStart,
  type Tracer,
  type TracerOptions,
} from "./tracer.ts";
