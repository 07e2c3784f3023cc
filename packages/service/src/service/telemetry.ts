// Logs, metrics, traces and health of a service.
import { HealthRegistry } from "@platform/kernel/health";
import { createIdSource } from "@platform/kernel/ids";
import { createLogger, type Logger } from "@platform/kernel/log";
import { createProcessCollector, MetricRegistry } from "@platform/kernel/metrics";
import type { Clock } from "@platform/kernel/time";
import { createServiceTracer, type SpanExporter, type Tracer } from "@platform/kernel/trace";
import type { Cache } from "../cache/cache.ts";
import { createReportingLog } from "./reporting-log.ts";
import type { Settings } from "./settings.ts";

/** Telemetry of a service. */
export interface Telemetry {
  readonly log: Logger;
  readonly metrics: MetricRegistry;
  readonly tracer: Tracer;
  readonly health: HealthRegistry;
  /** Counts a run of a schedule. */
  readonly countRun: (name: string, outcome: string, durationMs: number) => void;
  close(): Promise<void>;
}

/** Options of {@link createTelemetry}. */
export interface TelemetryOptions {
  name: string;
  version: string;
  settings: Settings;
  clock: Clock;
  caches: readonly Cache[];
  /** True if errors in the log have the lines of the author's files. */
  isReporting: boolean;
  /** Receives ended spans; undefined without the platform. */
  spans?: SpanExporter | undefined;
  /** Writes a log line; default: to standard output. */
  writeLog?: ((line: string) => void) | undefined;
}

const FLUSH_MS = 1_000;

/** Creates the telemetry. */
export function createTelemetry(options: TelemetryOptions): Telemetry {
  const { name, version, settings, clock, caches, writeLog } = options;
  const ids = createIdSource({ clock });
  const written = createLogger({
    service: name,
    level: settings.log_level,
    format: settings.log_format,
    ...(writeLog === undefined ? {} : { write: writeLog }),
  });
  const log = options.isReporting ? createReportingLog(written) : written;
  const metrics = new MetricRegistry();
  const collector = createProcessCollector({ service: name, version });
  metrics.collect(collector);
  collectCaches(metrics, caches);
  const health = new HealthRegistry({
    service: name,
    version,
    onCheckError: (check, error) => log.error("health check failed", { check, error }),
  });
  const instance = ids.uuid();
  const tracer = createServiceTracer({
    resource: { service: name, version, instance },
    endpoint: settings.otlp_endpoint,
    metrics,
    ids,
    clock,
    receiver: options.spans,
  });
  const runs = metrics.counter({
    name: "platform_service_schedule_runs_total",
    help: "Runs of schedules.",
    labels: ["schedule", "outcome"],
  });
  const seconds = metrics.counter({
    name: "platform_service_schedule_seconds_total",
    help: "Time spent in runs of schedules.",
    labels: ["schedule"],
  });
  return {
    log,
    metrics,
    tracer,
    health,
    countRun: (schedule, outcome, durationMs) => {
      runs.with({ schedule, outcome }).add();
      seconds.with({ schedule }).add(durationMs / 1_000);
    },
    close: async () => {
      collector.close();
      await tracer.shutdown(FLUSH_MS);
    },
  };
}

function collectCaches(metrics: MetricRegistry, caches: readonly Cache[]): void {
  if (caches.length === 0) return;
  const family = (
    type: "counter" | "gauge",
    name: string,
    help: string,
    read: (cache: Cache) => number,
  ) => ({
    type,
    name: `platform_service_cache_${name}`,
    help,
    samples: caches.map((cache, index) => ({
      labels: [["cache", String(index + 1)]] as [string, string][],
      value: read(cache),
    })),
  });
  metrics.collect({
    name: "caches",
    collect: () => [
      family("gauge", "entries", "Entries of a cache.", ({ counts }) => counts.entries),
      family("gauge", "bytes", "Size of a cache as JSON.", ({ counts }) => counts.bytes),
      family("counter", "hits_total", "Values found.", ({ counts }) => counts.hits),
      family("counter", "misses_total", "Values not found.", ({ counts }) => counts.misses),
      family(
        "counter",
        "evictions_total",
        "Values evicted for space.",
        ({ counts }) => counts.evictions,
      ),
    ],
  });
}
