// Admin feeds: figures over time, conditions that need an operator, live updates, lines of logs.
export {
  AdminFeeds,
  CONSOLE_LIVE_PATH,
  describeUpgrade,
  LIVE_PATH,
  type AdminFeedsOptions,
} from "./feeds.ts";
export { LineStreams, type LineStreamsOptions, type PathValues } from "./line-streams.ts";
export type { Condition } from "./attention.ts";
export type { KeptSpan } from "./trace-route.ts";
export { refuseUpgrade } from "./live.ts";
export type { HistogramCounts } from "./quantile-span.ts";
export { SERIES_STEPS, SeriesStore, type Figure, type QuantileFigure } from "./series.ts";
