// Admin feeds: figures over time, conditions that need an operator, live updates.
export {
  AdminFeeds,
  CONSOLE_LIVE_PATH,
  describeUpgrade,
  LIVE_PATH,
  type AdminFeedsOptions,
} from "./feeds.ts";
export type { Condition } from "./attention.ts";
export { refuseUpgrade } from "./live.ts";
export type { Figure } from "./series.ts";
