// GET and POST /api/v1/admin/console/sync: the whole of it at once.
import { defineRoute } from "@platform/kernel/http";
import type { ApiRoute } from "@platform/kernel/http";
import * as z from "zod";
import { routesSchema } from "../config/document.ts";
import type { MetricsStream } from "../control/metrics-stream.ts";
import { jsonBodyBytesMax, readJsonBody } from "./json-body.ts";
import { readChangeRequest } from "./request.ts";
import { viewRoutes } from "./routes-api.ts";
import type { RoutesApiParts } from "./routes-api.ts";

/** Where the console synchronises. */
export const consoleSyncPath = "/api/v1/admin/console/sync";

/** The body of a synchronisation; the other parts of the snapshot may stand in it and are not read. */
export const syncSchema = z.strictObject({
  routes: routesSchema,
  version: z.unknown().optional(),
  connections: z.unknown().optional(),
  metrics: z.unknown().optional(),
});

/** The operations of the console. */
export function listConsoleOperations(
  parts: RoutesApiParts & { stream: MetricsStream },
): ApiRoute[] {
  const { controller, metrics, stream } = parts;
  const own = { path: consoleSyncPath, tag: "Operation" } as const;
  return [
    defineRoute({
      ...own,
      method: "GET",
      summary: "Snapshot of routes, connections and metrics",
      answerType: "application/json",
      handle: ({ answerHeaders }) => {
        const { etag } = controller.state;
        answerHeaders.set("ETag", etag);
        return {
          version: etag.replaceAll('"', ""),
          routes: viewRoutes(parts),
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
      bodyBytesMax: jsonBodyBytesMax,
      answerType: "application/json",
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
