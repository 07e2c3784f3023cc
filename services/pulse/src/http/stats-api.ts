// The broker's figures as JSON.
import { defineRoute, type ApiRoute } from "@platform/kernel/http";

/** The operation. */
export function createStatsRoute(readStats: () => Record<string, number>): ApiRoute {
  return defineRoute({
    method: "GET",
    path: "/api/v1/stats",
    summary: "Figures of the broker; /api/v1/stats/ws sends them each second",
    tag: "Operation",
    handle: () => readStats(),
  });
}
