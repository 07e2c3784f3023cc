// Figures that every service has: its process, and the requests in its metrics.
import { memoryUsage } from "node:process";
import { performance, type EventLoopUtilization } from "node:perf_hooks";
import {
  estimateQuantile,
  sumSeries,
  type LabelPairs,
  type MetricRegistry,
} from "../metrics/index.ts";
import type { Figure } from "./series.ts";

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
    createLatency(registry, names.duration, 0.5),
    createLatency(registry, names.duration, 0.99),
  ];
}

// Of the requests that ended since the last sample.
function createLatency(registry: MetricRegistry, name: string, quantile: number): Figure {
  let before: number[] = [];
  return {
    name: `latency_p${quantile * 100}`,
    unit: "ms",
    title: `Latency, ${quantile * 100}th percentile`,
    kind: "gauge",
    read: () => {
      const { bounds, counts } = sumHistogram(registry, name);
      const fresh = counts.map((count, index) => count - (before[index] ?? 0));
      before = counts;
      return estimateQuantile(bounds, fresh, quantile) * 1000;
    },
  };
}

function hasServerError(labels: LabelPairs): boolean {
  return labels.some(([name, value]) => name === "status" && value.startsWith("5"));
}

function sumHistogram(
  registry: MetricRegistry,
  name: string,
): { bounds: number[]; counts: number[] } {
  const family = registry.find(name);
  if (family?.type !== "histogram") return { bounds: [], counts: [] };
  let bounds: number[] = [];
  const counts: number[] = [];
  for (const sample of family.samples) {
    bounds = Array.from(sample.bounds);
    for (let index = 0; index < sample.counts.length; index += 1) {
      counts[index] = (counts[index] ?? 0) + sample.counts[index]!;
    }
  }
  return { bounds, counts };
}
