// Tracer of a service from its configuration.
import type { IdSource } from "../ids/index.ts";
import type { MetricRegistry } from "../metrics/index.ts";
import type { Clock } from "../time/index.ts";
import { createOtlpExporter, createSpanCounts } from "./otlp-exporter.ts";
import type { TraceResource } from "./otlp-json.ts";
import { combineExporters } from "./span-keeper.ts";
import { createTracer, type SpanExporter, type Tracer } from "./tracer.ts";

/** Options of {@link createServiceTracer}. */
export interface ServiceTracerOptions {
  resource: TraceResource;
  /** URL of the collector; without one spans only have ids. */
  endpoint: string | undefined;
  metrics: MetricRegistry;
  ids: IdSource;
  clock: Clock;
  /** Receives spans as well, with and without a collector. */
  receiver?: SpanExporter | undefined;
}

/** Creates the tracer; `shutdown` sends queued spans. */
export function createServiceTracer(options: ServiceTracerOptions): Tracer {
  const { resource, endpoint, metrics, ids, clock, receiver } = options;
  const exporters = receiver === undefined ? [] : [receiver];
  if (endpoint !== undefined) {
    exporters.push(createOtlpExporter({ endpoint, resource, counts: createSpanCounts(metrics) }));
  }
  const exporter = exporters.length === 0 ? undefined : combineExporters(...exporters);
  return createTracer({ ids, clock, exporter });
}
