// Metrics, traces and health of the service.
import { HealthRegistry } from "@platform/kernel/health";
import type { IdSource } from "@platform/kernel/ids";
import type { Logger } from "@platform/kernel/log";
import { createProcessCollector, MetricRegistry } from "@platform/kernel/metrics";
import type { Clock } from "@platform/kernel/time";
import { createServiceTracer } from "@platform/kernel/trace";
import { VERSION, type NotifyConfig } from "./config.ts";

/** Options of {@link createTelemetry}. */
export interface TelemetryOptions {
  config: NotifyConfig;
  log: Logger;
  ids: IdSource;
  clock: Clock;
}

const TRACES_FLUSH_MS = 1_000;

/** Creates the registries; `close` sends the last traces. */
export function createTelemetry({ config, log, ids, clock }: TelemetryOptions) {
  const registry = new MetricRegistry();
  const processCollector = createProcessCollector({ service: "notify", version: VERSION });
  registry.collect(processCollector);
  const tracer = createServiceTracer({
    resource: { service: "notify", version: VERSION },
    endpoint: config.otel_endpoint,
    metrics: registry,
    ids,
    clock,
  });
  const health = new HealthRegistry({
    service: "notify",
    version: VERSION,
    onCheckError: (check, error) => log.error("health check failed", { check, error }),
  });
  const close = async (): Promise<void> => {
    processCollector.close();
    await tracer.shutdown(TRACES_FLUSH_MS);
  };
  return { registry, tracer, health, close };
}
