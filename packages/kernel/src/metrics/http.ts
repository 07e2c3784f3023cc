// Request metrics of all services, with labels that clients cannot inflate.
import { DURATION_BOUNDS_SECONDS } from "./family.ts";
import type { CounterSeries, HistogramSeries } from "./instrument.ts";
import type { MetricRegistry } from "./registry.ts";

/** Names, help texts and labels of the request metrics, for collectors with their own counters. */
export const HTTP_METRICS = {
  labels: ["route", "method", "status"],
  requests: { name: "platform_http_requests_total", help: "HTTP requests answered." },
  duration: {
    name: "platform_http_duration_seconds",
    help: "Time from the arrival of a request to the head of its response; streams have none.",
    bounds: DURATION_BOUNDS_SECONDS,
  },
} as const;

/**
 * Names, help texts and labels of the metrics of users' requests: without those of the platform itself, which are probes,
 * scrapes, the web console and the requests that services repeat.
 */
export const USER_HTTP_METRICS = {
  labels: ["status"],
  requests: {
    name: "platform_http_user_requests_total",
    help: "HTTP requests answered, without probes, scrapes, the web console and requests that services repeat.",
  },
  duration: {
    name: "platform_http_user_duration_seconds",
    help: "Time from the arrival of a user's request to the head of its response.",
    bounds: DURATION_BOUNDS_SECONDS,
  },
} as const;

/** The series of a finished request. */
export interface HttpSeries {
  requests: CounterSeries;
  duration: HistogramSeries;
}

/** Request metrics of a service. */
export interface HttpMetrics {
  /** Returns the series of these labels; `route` must be a pattern or a prefix, never the raw path. */
  series(route: string, method: string, status: number): HttpSeries;
  /** Records a finished request. */
  observe(route: string, method: string, status: number, durationMs: number): void;
  /** Records that a finished request was one of a user. */
  observeUser(status: number, durationMs: number): void;
}

/** Methods with their own label: those of RFC 9110, and PATCH. */
export const HTTP_METHODS: readonly string[] = [
  "GET",
  "HEAD",
  "POST",
  "PUT",
  "DELETE",
  "PATCH",
  "OPTIONS",
  "TRACE",
  "CONNECT",
];
const METHODS: ReadonlySet<string> = new Set(HTTP_METHODS);

/** Returns the label of a method: itself if it is in RFC 9110 or PATCH, otherwise `OTHER`. */
export function foldMethod(method: string): string {
  return METHODS.has(method) ? method : "OTHER";
}

/** Creates the request metrics in `registry`; `seriesMax` bounds their label combinations (default 2 000). */
export function createHttpMetrics(registry: MetricRegistry, seriesMax = 2_000): HttpMetrics {
  const { labels } = HTTP_METRICS;
  const requests = registry.counter({ ...HTTP_METRICS.requests, labels, seriesMax });
  const duration = registry.histogram({ ...HTTP_METRICS.duration, labels, seriesMax });
  const userRequests = registry.counter({
    ...USER_HTTP_METRICS.requests,
    labels: USER_HTTP_METRICS.labels,
  });
  const userDuration = registry.histogram({ ...USER_HTTP_METRICS.duration }).with({});
  const series = (route: string, method: string, status: number): HttpSeries => {
    const values = { route, method: foldMethod(method), status };
    return { requests: requests.with(values), duration: duration.with(values) };
  };
  return {
    series,
    observe: (route, method, status, durationMs) => {
      const found = series(route, method, status);
      found.requests.add();
      found.duration.observe(durationMs / 1000);
    },
    observeUser: (status, durationMs) => {
      userRequests.with({ status }).add();
      userDuration.observe(durationMs / 1000);
    },
  };
}
