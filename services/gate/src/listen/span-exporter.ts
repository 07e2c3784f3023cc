// The spans of a worker: kept for the console, and exported.
import {
  createOtlpExporter,
  KEPT_SPANS_BYTES_MAX,
  SpanKeeper,
  type SpanExporter,
} from "@platform/kernel/trace";
import { SPAN_LOSS_COUNTERS, type GlobalSpec, type MetricBlock } from "../shared-state/index.ts";

/** Creates the exporter; undefined if spans are not exported. */
export function createSpanExporter(
  globals: GlobalSpec,
  block: MetricBlock,
): SpanExporter | undefined {
  if (globals.otlpEndpoint === undefined) return undefined;
  return createOtlpExporter({
    endpoint: globals.otlpEndpoint,
    resource: { service: "gate", version: globals.serviceVersion },
    counts: {
      exported: (spans) => block.addCounter("spansExported", spans),
      dropped: (reason, spans) => block.addCounter(SPAN_LOSS_COUNTERS[reason], spans),
    },
  });
}

/** Creates the keeper of one of `workers` threads, which share the memory for spans. */
export function createSpanKeeper(workers: number, readMonotonicMs: () => number): SpanKeeper {
  const bytesMax = Math.floor(KEPT_SPANS_BYTES_MAX / workers);
  return new SpanKeeper({ bytesMax, readMonotonicMs });
}
