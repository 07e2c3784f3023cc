// Tracer of a service from its configuration.
import type { IdSource } from "../ids/index.ts";
import type { MetricRegistry } from "../metrics/index.ts";
import type { Clock } from "../time/index.ts";
import { createOtlpExporter, createSpanCounts } from "./otlp-exporter.ts";
import type { TraceResource } from "./otlp-json.ts";
import { createTracer, type Tracer } from "./tracer.ts";

/** Options of {@link createServiceTracer}. */
export interface ServiceTracerOptions {
  resource: TraceResource;
  /** URL of the collector; without one spans only have ids. */
  endpoint: string | undefined;
  metrics: MetricRegistry;
  ids: IdSource;
  clock: Clock;
}

/** Creates the tracer; `shutdown` sends queued spans. */
export function createServiceTracer(options: ServiceTracerOptions): Tracer {
  const { resource, endpoint, metrics, ids, clock } = options;
  const exporter =
    endpoint === undefined
      ? undefined
      : createOtlpExporter({ endpoint, resource, counts: createSpanCounts(metrics) });
  return createTracer({ ids, clock, exporter });
}
