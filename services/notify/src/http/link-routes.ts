// Links in mails: unsubscribing and tracking. They are open to all holders; guessing them is limited.
import { RateLimit, type ApiRoute } from "@platform/kernel/http";
import type { Logger } from "@platform/kernel/log";
import type { Clock } from "@platform/kernel/time";
import type { Tracking } from "../tracking/tracking.ts";
import type { Unsubscribes } from "../unsubscribe/unsubscribes.ts";
import { createTrackingRoutes } from "./tracking-routes.ts";
import { createUnsubscribeRoutes } from "./unsubscribe-routes.ts";

/** Options of the routes. */
export interface LinkRoutesOptions {
  unsubscribes: Unsubscribes;
  tracking: Tracking;
  clock: Clock;
  log: Logger;
}

/** Invalid links per minute and peer. */
const INVALID_PER_MINUTE = 60;

export function createLinkRoutes({ unsubscribes, ...options }: LinkRoutesOptions): ApiRoute[] {
  const invalidRate = new RateLimit({
    name: "invalid-links",
    detail: "Too many invalid links.",
    clock: options.clock,
    ratePerSecond: INVALID_PER_MINUTE / 60,
    capacity: INVALID_PER_MINUTE,
  });
  return [
    ...createUnsubscribeRoutes({ unsubscribes, invalidRate }),
    ...createTrackingRoutes({ ...options, invalidRate }),
  ];
}
