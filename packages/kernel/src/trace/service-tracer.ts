// The tracer of a service, as its configuration has it.
import type { IdSource } from "../ids/index.ts";
import type { MetricRegistry } from "../metrics/index.ts";
import type { Clock } from "../time/index.ts";
import { createOtlpExporter, createSpanCounts } from "./otlp-exporter.ts";
import type { TraceResource } from "./otlp-json.ts";
import { createTracer, type Tracer } from "./tracer.ts";

/** What the tracer of a service is made of. */
export interface ServiceTracerOptions {
  resource: TraceResource;
  /** The collector; without one spans only carry their ids. */
  endpoint: string | undefined;
  metrics: MetricRegistry;
  ids: IdSource;
  clock: Clock;
}

/** Makes the tracer; `shutdown` sends what waits. */
export function createServiceTracer(options: ServiceTracerOptions): Tracer {
  const { resource, endpoint, metrics, ids, clock } = options;
  const exporter =
    endpoint === undefined
      ? undefined
      : createOtlpExporter({ endpoint, resource, counts: createSpanCounts(metrics) });
  return createTracer({ ids, clock, exporter });
}
