// The admin feeds of the gateway.
import { AdminFeeds, type Condition, type Figure } from "@platform/kernel/feeds";
import type { HealthRegistry } from "@platform/kernel/health";
import type { Logger } from "@platform/kernel/log";
import type { MetricRegistry } from "@platform/kernel/metrics";
import { systemClock } from "@platform/kernel/time";
import { GATE_VERSION } from "../config/document.ts";
import type { Certificates } from "../control/certificates.ts";
import type { MetricsStream, MetricsSums, MetricsUpdate } from "../telemetry/metrics-stream.ts";
import { listCertificateConditions } from "./certificates-api.ts";
import { createWorkerGuard } from "./request.ts";

/** Options of {@link createFeeds}. */
export interface FeedsOptions {
  stream: MetricsStream;
  registry: MetricRegistry;
  health: HealthRegistry;
  log: Logger;
  certificates: Certificates;
  /** Secret that the workers add to requests of callers that they admit. */
  secret: string;
}

/** Creates the feeds. */
export function createFeeds(options: FeedsOptions): AdminFeeds {
  const { stream, registry, health, log, certificates, secret } = options;
  return new AdminFeeds({
    service: "gate",
    version: GATE_VERSION,
    figures: createFigures(stream),
    conditions: [
      () => (stream.sums.circuitsOpen === 0 ? [] : listOpenCircuits(stream.latest)),
      () => listCertificateConditions(certificates, systemClock),
    ],
    registry,
    requests: undefined,
    health,
    guard: createWorkerGuard(secret),
    clock: systemClock,
    logger: log,
  });
}

// The figures are those of the live metrics.
function createFigures(stream: MetricsStream): Figure[] {
  const figure = (
    name: string,
    unit: string,
    title: string,
    read: (update: MetricsUpdate, sums: MetricsSums) => number | null,
  ): Figure => ({
    name,
    unit,
    title,
    kind: "gauge",
    read: () => read(stream.latest, stream.sums) ?? Number.NaN,
  });
  return [
    figure("requests", "1/s", "Requests", (update) => update.request_rate),
    figure("errors", "1/s", "Requests answered with 5xx", (update) => update.error_rate),
    figure("latency_p50", "ms", "Latency, 50th percentile", (update) => update.p50_ms),
    figure("latency_p99", "ms", "Latency, 99th percentile", (update) => update.p99_ms),
    figure("active", "", "Active requests, streams and WebSockets", (_, sums) => sums.active),
    figure(
      "cache_hit_ratio",
      "",
      "Share of responses from the cache",
      (update) => update.cache_hit_ratio,
    ),
    figure("circuits_open", "", "Targets with an open circuit", (_, sums) => sums.circuitsOpen),
    figure(
      "circuits_half_open",
      "",
      "Targets whose circuit is being tried",
      (_, sums) => sums.circuitsHalfOpen,
    ),
  ];
}

function listOpenCircuits({ breakers }: MetricsUpdate): Condition[] {
  return Object.entries(breakers)
    .filter(([, state]) => state === "open")
    .map(([url]) => ({
      id: `circuit ${url}`,
      level: "warning",
      title: `Requests to ${url} are stopped`,
      detail: "Its circuit is open after failures; it is tried again by itself.",
      href: "/gateway/upstreams",
    }));
}
