// Figures that every service has: its process, and the requests in its metrics.
import { memoryUsage } from "node:process";
import { performance, type EventLoopUtilization } from "node:perf_hooks";
import { sumSeries, type LabelPairs, type MetricRegistry } from "../metrics/index.ts";
import type { HistogramCounts } from "./quantile-span.ts";
import type { Figure, QuantileFigure } from "./series.ts";

/** Names of the metrics with a service's requests. */
export interface RequestMetrics {
  /** A counter with the label `status`. */
  requests: string;
  /** A histogram in seconds. */
  duration: string;
}

/** CPU, memory and event loop of this process. */
export function createProcessFigures(): Figure[] {
  let before: EventLoopUtilization = performance.eventLoopUtilization();
  return [
    {
      name: "cpu",
      unit: "cores",
      title: "CPU",
      kind: "counter",
      read: () => {
        const { user, system } = process.cpuUsage();
        return (user + system) / 1e6;
      },
    },
    {
      name: "memory",
      unit: "bytes",
      title: "Memory",
      kind: "gauge",
      read: () => memoryUsage.rss(),
    },
    {
      name: "event_loop",
      unit: "ratio",
      title: "Event loop in use",
      kind: "gauge",
      read: () => {
        const now = performance.eventLoopUtilization();
        const { utilization } = performance.eventLoopUtilization(now, before);
        before = now;
        return utilization;
      },
    },
  ];
}

/** Requests, failed requests and latencies. */
export function createRequestFigures(registry: MetricRegistry, names: RequestMetrics): Figure[] {
  const readDurations = (): HistogramCounts => sumHistogram(registry, names.duration);
  return [
    {
      name: "requests",
      unit: "1/s",
      title: "Requests",
      kind: "counter",
      read: () => sumSeries(registry.find(names.requests), () => true),
    },
    {
      name: "errors",
      unit: "1/s",
      title: "Requests answered with 5xx",
      kind: "counter",
      read: () => sumSeries(registry.find(names.requests), hasServerError),
    },
    createLatency(readDurations, 0.5),
    createLatency(readDurations, 0.99),
  ];
}

function createLatency(read: QuantileFigure["read"], quantile: number): Figure {
  return {
    name: `latency_p${quantile * 100}`,
    unit: "ms",
    title: `Latency, ${quantile * 100}th percentile`,
    kind: "quantile",
    quantile,
    read,
  };
}

function hasServerError(labels: LabelPairs): boolean {
  return labels.some(([name, value]) => name === "status" && value.startsWith("5"));
}

// In ms.
function sumHistogram(registry: MetricRegistry, name: string): HistogramCounts {
  const family = registry.find(name);
  if (family?.type !== "histogram") return { bounds: [], counts: [] };
  let bounds: number[] = [];
  const counts: number[] = [];
  for (const sample of family.samples) {
    bounds = Array.from(sample.bounds, (seconds) => seconds * 1000);
    for (let index = 0; index < sample.counts.length; index += 1) {
      counts[index] = (counts[index] ?? 0) + sample.counts[index]!;
    }
  }
  return { bounds, counts };
}
