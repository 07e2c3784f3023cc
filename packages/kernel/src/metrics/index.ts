// Metrics: families with bounded labels, collectors called at each scrape, Prometheus text.
export { METRICS_CONTENT_TYPE, renderLabels, renderMetrics } from "./exposition.ts";
export {
  DURATION_BOUNDS_SECONDS,
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
  type HttpMetrics,
  type HttpSeries,
} from "./http.ts";
export {
  OVERFLOW_LABEL,
  SERIES_MAX_DEFAULT,
  type Counter,
  type CounterSeries,
  type FamilyOptions,
  type Gauge,
  type GaugeSeries,
  type Histogram,
  type HistogramOptions,
  type HistogramSeries,
  type LabelValues,
} from "./instrument.ts";
export { createProcessCollector, type BuildInfo, type ProcessCollector } from "./process.ts";
export { MetricRegistry, type MetricRegistryOptions } from "./registry.ts";
