// Admin endpoints: connections, reload, live metrics.
import { type ApiRoute, defineRoute, defineUpgradeRoute } from "@platform/kernel/http";
import { z } from "zod";
import { changedRoutes } from "../control/route-check.ts";
import { connectionCounts } from "../telemetry/gate-metrics.ts";
import { createCacheRoutes } from "./cache-api.ts";
import { readChangeRequest } from "./request.ts";
import type { RoutesApiOptions } from "./routes-api.ts";

/** Path of the live metrics WebSocket. */
export const METRICS_SOCKET_PATH = "/api/v1/admin/metrics/ws";

/** Creates the admin routes. */
export function createAdminRoutes(options: RoutesApiOptions): ApiRoute[] {
  const own = { tag: "Operation" } as const;
  return [
    defineRoute({
      ...own,
      method: "GET",
      path: "/api/v1/admin/connections",
      summary: "Active requests, streams and WebSockets by upstream",
      answer: connectionCounts,
      handle: () => options.metrics.readConnections(),
    }),
    defineRoute({
      ...own,
      method: "POST",
      path: "/api/v1/admin/reload",
      summary: "Reload configuration, overlay and certificates",
      problems: { 400: "The configuration is invalid; nothing has changed" },
      answer: z.object({
        applied: z.boolean(),
        ...changedRoutes,
        restart_required: z.array(z.string()).describe("Changed keys that require a restart"),
      }),
      handle: async (exchange) => {
        const report = await options.controller.reload(readChangeRequest(exchange));
        exchange.answerHeaders.set("ETag", report.etag);
        const { added, updated, removed, restartRequired } = report;
        return { applied: true, added, updated, removed, restart_required: restartRequired };
      },
    }),
    defineUpgradeRoute({
      tag: own.tag,
      path: METRICS_SOCKET_PATH,
      summary: "Live metrics: a WebSocket with one update per second",
      description:
        "Each text frame is an update as JSON: figures of the gateway, routes and targets.",
    }),
    ...createCacheRoutes(options),
  ];
}
