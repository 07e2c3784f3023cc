// The request metrics that every service shares, with labels that cannot grow with what clients send.
import { DURATION_BOUNDS_SECONDS } from "./family.ts";
import type { CounterSeries, HistogramSeries } from "./instrument.ts";
import type { MetricRegistry } from "./registry.ts";

/** The names, helps and labels of the shared request metrics, for collectors that count on their own. */
export const HTTP_METRICS = {
  labels: ["route", "method", "status"],
  requests: { name: "platform_http_requests_total", help: "HTTP requests answered." },
  duration: {
    name: "platform_http_duration_seconds",
    help: "Time from a request's arrival to the end of its answer.",
    bounds: DURATION_BOUNDS_SECONDS,
  },
} as const;

/** What to add one finished request to. */
export interface HttpSeries {
  requests: CounterSeries;
  duration: HistogramSeries;
}

/** The shared request metrics of one service. */
export interface HttpMetrics {
  /** The two series of these labels; `route` must be a pattern or a prefix, never the raw path. */
  series(route: string, method: string, status: number): HttpSeries;
  /** Counts one finished request. */
  observe(route: string, method: string, status: number, durationMs: number): void;
}

/** The methods that have a label of their own: those of RFC 9110, and PATCH. */
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

/** The method as a label: itself when it is one of RFC 9110 or PATCH, else `OTHER`. */
export function foldMethod(method: string): string {
  return METHODS.has(method) ? method : "OTHER";
}

/** Makes the shared request metrics in `registry`; `seriesMax` bounds their label combinations (default 2 000). */
export function createHttpMetrics(registry: MetricRegistry, seriesMax = 2_000): HttpMetrics {
  const { labels } = HTTP_METRICS;
  const requests = registry.counter({ ...HTTP_METRICS.requests, labels, seriesMax });
  const duration = registry.histogram({ ...HTTP_METRICS.duration, labels, seriesMax });
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
  };
}
