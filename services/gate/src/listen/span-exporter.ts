// The span exporter of a worker.
import { createOtlpExporter, type SpanExporter } from "@platform/kernel/trace";
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
