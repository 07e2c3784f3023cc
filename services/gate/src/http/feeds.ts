// The operator's side of the gateway: its admin feeds.
import type { Operation, Service } from "@platform/chassis";
import type { Condition, Figure } from "@platform/kernel/feeds";
import type { Certificates } from "../control/certificates.ts";
import type {
  MetricsStream,
  MetricsSums,
  MetricsUpdate,
  ModelRates,
} from "../telemetry/metrics-stream.ts";
import { listCertificateConditions } from "./certificates-api.ts";
import type { WorkerPools } from "../worker/worker-pools.ts";
import { createWorkerGuard } from "./request.ts";

/** Creates the feeds. `readCostToday` returns USD; `secret` is that of the workers, which they add to requests of callers that they admit. */
export function openOperation(
  service: Service,
  stream: MetricsStream,
  certificates: Certificates,
  readCostToday: () => number,
  secret: string,
  pools: Pick<WorkerPools, "findSpans">,
): Operation {
  return service.openOperation({
    findOtherSpans: async (traceId) =>
      (await pools.findSpans(traceId)).map((span) => ({ service: service.name, span })),
    guard: createWorkerGuard(secret),
    figures: [...createFigures(stream), ...createModelFigures(stream, readCostToday)],
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

// Without requests to models they have no value.
function createModelFigures(stream: MetricsStream, readCostToday: () => number): Figure[] {
  const figure = (
    name: string,
    unit: string,
    title: string,
    read: (models: ModelRates) => number | null,
  ): Figure => ({
    name,
    unit,
    title,
    kind: "gauge",
    read: () => {
      const { ai } = stream.sums;
      return ai === undefined ? Number.NaN : (read(ai) ?? Number.NaN);
    },
  });
  return [
    figure("ai_tokens", "1/s", "Tokens of models", (models) => models.tokensPerSecond),
    figure("ai_cost_today", "USD", "Cost of models today (UTC)", readCostToday),
    figure("ai_blocked", "1/s", "Prompts refused", (models) => models.blockedPerSecond),
    figure("ai_hit_ratio", "", "Share of stored answers of models", (models) => models.hitRatio),
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
