// Metrics: families with bounded labels, collectors called at each scrape, Prometheus text.
export { METRICS_CONTENT_TYPE, renderMetrics } from "./exposition.ts";
export {
  DURATION_BOUNDS_SECONDS,
  sumSeries,
  type Collector,
  type HistogramSample,
  type LabelPairs,
  type MetricFamily,
  type ScalarSample,
} from "./family.ts";
export {
  HTTP_METHODS,
  createHttpMetrics,
  foldMethod,
  HTTP_METRICS,
  USER_HTTP_METRICS,
  type HttpMetrics,
  type HttpSeries,
} from "./http.ts";
export { type Counter, type Gauge, type Histogram } from "./instrument.ts";
export { OWN_REQUEST, OWN_REQUEST_HEADER } from "./own-request.ts";
export { createProcessCollector } from "./process.ts";
export { estimateQuantile } from "./quantile.ts";
export { MetricRegistry } from "./registry.ts";
