// The operator's side of the gateway: its admin feeds.
import type { Operation, Service } from "@platform/chassis";
import type { Condition, Figure } from "@platform/kernel/feeds";
import type { Certificates } from "../control/certificates.ts";
import type { MetricsStream, MetricsSums, MetricsUpdate } from "../telemetry/metrics-stream.ts";
import { listCertificateConditions } from "./certificates-api.ts";
import { createWorkerGuard } from "./request.ts";

/** Creates the feeds. `secret` is that of the workers, which they add to requests of callers that they admit. */
export function openOperation(
  service: Service,
  stream: MetricsStream,
  certificates: Certificates,
  secret: string,
): Operation {
  return service.openOperation({
    guard: createWorkerGuard(secret),
    figures: createFigures(stream),
    requests: undefined,
    conditions: [
      () => (stream.sums.circuitsOpen === 0 ? [] : listOpenCircuits(stream.latest)),
      () => listCertificateConditions(certificates, service.clock),
    ],
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
