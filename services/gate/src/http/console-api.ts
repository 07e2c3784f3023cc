// GET and POST /api/v1/admin/console/sync.
import { type ApiRoute, defineRoute } from "@platform/kernel/http";
import { z } from "zod";
import { routesSchema } from "../config/document.ts";
import { connectionCounts } from "../telemetry/gate-metrics.ts";
import { changedRoutes } from "../control/route-check.ts";
import { type MetricsStream, metricsUpdate } from "../telemetry/metrics-stream.ts";
import { JSON_BODY_BYTES_MAX, readJsonBody } from "./json-body.ts";
import { readChangeRequest } from "./request.ts";
import { routeView, type RoutesApiOptions, tagRoutes, viewRoutes } from "./routes-api.ts";

/** Path of the console synchronization. */
export const CONSOLE_SYNC_PATH = "/api/v1/admin/console/sync";

/** The body of a synchronization; fields of the snapshot other than `routes` are accepted and ignored. */
export const syncSchema = z.strictObject({
  routes: routesSchema,
  version: z.unknown().optional(),
  connections: z.unknown().optional(),
  metrics: z.unknown().optional(),
});

/** Creates the routes of the console. */
export function createConsoleRoutes(
  options: RoutesApiOptions & { stream: MetricsStream },
): ApiRoute[] {
  const { controller, metrics, stream } = options;
  const own = { path: CONSOLE_SYNC_PATH, tag: "Operation" } as const;
  return [
    defineRoute({
      ...own,
      method: "GET",
      summary: "Snapshot of routes, connections and metrics",
      answer: z.object({
        version: z.string().describe("The ETag of the routes"),
        routes: z.array(routeView),
        connections: connectionCounts,
        metrics: metricsUpdate,
      }),
      handle: ({ answerHeaders, caller }) => {
        const etag = tagRoutes(controller, caller);
        answerHeaders.set("ETag", etag);
        return {
          version: etag.replaceAll('"', ""),
          routes: viewRoutes(options, caller),
          connections: metrics.readConnections(),
          metrics: stream.latest,
        };
      },
    }),
    defineRoute({
      ...own,
      method: "POST",
      summary: "Replace the whole set of routes, all or nothing",
      bodyKind: "bytes",
      bodyBytesMax: JSON_BODY_BYTES_MAX,
      problems: { 400: "The routes are not valid" },
      answer: z.object({ applied: z.boolean(), ...changedRoutes }),
      handle: async (exchange) => {
        const { routes } = readJsonBody(exchange.body, exchange.headers, syncSchema);
        const report = await controller.replaceRoutes(routes, readChangeRequest(exchange));
        exchange.answerHeaders.set("ETag", report.etag);
        const { added, updated, removed } = report;
        return { applied: true, added, updated, removed };
      },
    }),
  ];
}
