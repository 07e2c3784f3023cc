// GET and POST /api/v1/admin/console/sync: the whole of it at once.
import type { Hono } from "hono";
import * as z from "zod";
import { routesSchema } from "../config/document.ts";
import type { MetricsStream } from "../control/metrics-stream.ts";
import { readJsonBody } from "./json-body.ts";
import { readChangeRequest } from "./request.ts";
import { viewRoutes } from "./routes-api.ts";
import type { RoutesApiParts } from "./routes-api.ts";

/** The body of a synchronisation; `version` and the other parts of the snapshot may stand in it and are not read. */
export const syncSchema = z.strictObject({
  routes: routesSchema,
  version: z.unknown().optional(),
  connections: z.unknown().optional(),
  metrics: z.unknown().optional(),
});

/** Serves the snapshot and its replacement at `path`. */
export function serveConsoleSync(
  app: Hono,
  path: string,
  parts: RoutesApiParts & { stream: MetricsStream },
): void {
  const { controller, metrics, stream } = parts;
  app.get(path, (context) => {
    const { etag } = controller.state;
    context.header("ETag", etag);
    return context.json({
      version: etag.replaceAll('"', ""),
      routes: viewRoutes(parts),
      connections: metrics.readConnections(),
      metrics: stream.latest,
    });
  });
  app.post(path, async (context) => {
    const { routes } = await readJsonBody(context.req.raw, syncSchema);
    const report = await controller.replaceRoutes(routes, readChangeRequest(context));
    context.header("ETag", report.etag);
    const { added, updated, removed } = report;
    return context.json({ applied: true, added, updated, removed });
  });
}
