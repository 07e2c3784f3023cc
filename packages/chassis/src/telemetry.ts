// Metrics, traces and health of a service.
import { HealthRegistry } from "@platform/kernel/health";
import type { IdSource } from "@platform/kernel/ids";
import type { Logger } from "@platform/kernel/log";
import { createProcessCollector, MetricRegistry } from "@platform/kernel/metrics";
import type { Clock } from "@platform/kernel/time";
import {
  combineExporters,
  createOtlpExporter,
  createSpanCounts,
  createTracer,
  SpanKeeper,
  type SpanCounts,
  type SpanExporter,
  type Tracer,
} from "@platform/kernel/trace";

/** Options of {@link createTelemetry}. */
export interface TelemetryOptions {
  name: string;
  version: string;
  /** URL of the OTLP collector; without one spans are only kept. */
  endpoint: string | undefined;
  /** Counts of exported spans; default: metrics of the service. */
  spanCounts?: SpanCounts | undefined;
  log: Logger;
  ids: IdSource;
  clock: Clock;
}

/** The reports of a service about itself. */
export interface Telemetry {
  readonly metrics: MetricRegistry;
  readonly tracer: Tracer;
  /** Keeps the spans of the last requests. */
  readonly kept: SpanKeeper;
  /** Keeps spans, and sends them to a collector if there is one. */
  readonly spans: SpanExporter;
  readonly health: HealthRegistry;
  /** Sends the last spans, at most for `flushMs`. */
  close(flushMs: number): Promise<void>;
}

/** Creates the registries. */
export function createTelemetry(options: TelemetryOptions): Telemetry {
  const { name: service, version, endpoint, spanCounts, log, ids, clock } = options;
  const metrics = new MetricRegistry();
  const processCollector = createProcessCollector({ service, version });
  metrics.collect(processCollector);
  const resource = { service, version };
  const kept = new SpanKeeper({ readMonotonicMs: () => clock.monotonicMs() });
  const createExporter = (collector: string): SpanExporter => {
    const counts = spanCounts ?? createSpanCounts(metrics);
    return createOtlpExporter({ endpoint: collector, resource, counts });
  };
  const spans = endpoint === undefined ? kept : combineExporters(kept, createExporter(endpoint));
  const tracer = createTracer({ ids, clock, exporter: spans });
  const onCheckError = (check: string, error: unknown): void => {
    log.error("health check failed", { check, error });
  };
  const health = new HealthRegistry({ service, version, onCheckError });
  const close = async (flushMs: number): Promise<void> => {
    processCollector.close();
    await tracer.shutdown(flushMs);
  };
  return { metrics, tracer, kept, spans, health, close };
}
