// The gateway's API as one Hono application: resources, errors as problem documents, what is not built yet.
import { METRICS_CONTENT_TYPE } from "@platform/kernel/metrics";
import type { MetricRegistry } from "@platform/kernel/metrics";
import {
  PlatformError,
  getProblemHeaders,
  toPlatformError,
  toProblem,
} from "@platform/kernel/errors";
import type { Logger } from "@platform/kernel/log";
import { Hono } from "hono";
import type { Context } from "hono";
import { notAvailableYet } from "../config/value.ts";
import type { MetricsStream } from "../control/metrics-stream.ts";
import { CONTROL_SECRET_HEADER } from "../snapshot/index.ts";
import { serveConsoleSync } from "./console-api.ts";
import { serveDocs } from "./docs-api.ts";
import { getCurrentPath } from "./own-paths.ts";
import { createSecretCheck, readChangeRequest } from "./request.ts";
import { serveRoutes } from "./routes-api.ts";
import type { RoutesApiParts } from "./routes-api.ts";

/** What the API works with. */
export type ApiParts = RoutesApiParts & {
  stream: MetricsStream;
  registry: MetricRegistry;
  log: Logger;
  /** Asked for with every request; the workers know it. */
  secret: string;
};

/** The path of the live metrics' WebSocket. */
export const metricsSocketPath = "/api/v1/admin/metrics/ws";

/** Endpoints of the specification that this release answers with 501, as Hono patterns. */
const unbuiltPaths = [
  "/api/v1/routes/register",
  "/api/v1/admin/middleware",
  "/api/v1/admin/middleware/*",
  "/api/v1/admin/cache",
  "/api/v1/admin/policy/reload",
  "/api/v1/admin/policy/revoke",
  "/api/v1/admin/api-keys",
  "/api/v1/admin/api-keys/*",
  "/api/v1/admin/ai-billing",
  "/api/v1/admin/ai-cost-attribution",
  "/api/v1/gitops/webhook",
  "/ui/*",
];

/** Builds the API. */
export function createApi(parts: ApiParts): Hono {
  const app = new Hono({ getPath: (request) => getCurrentPath(new URL(request.url).pathname) });
  const isSecret = createSecretCheck(parts.secret);
  app.use(async (context, next) => {
    if (!isSecret(context.req.header(CONTROL_SECRET_HEADER))) {
      throw new PlatformError("forbidden", "the control plane answers the gateway's workers only");
    }
    await next();
    context.header("Cache-Control", "no-store");
  });
  serveRoutes(app, "/api/v1/routes", parts);
  serveConsoleSync(app, "/api/v1/admin/console/sync", parts);
  serveDocs(app, parts.controller);
  app.get("/api/v1/admin/connections", (context) => context.json(parts.metrics.readConnections()));
  app.post("/api/v1/admin/reload", async (context) => {
    const report = await parts.controller.reload(readChangeRequest(context));
    const { added, updated, removed, restartRequired } = report;
    context.header("ETag", report.etag);
    return context.json({
      applied: true,
      added,
      updated,
      removed,
      restart_required: restartRequired,
    });
  });
  app.get(metricsSocketPath, () => {
    throw new PlatformError("upgrade_required", "this path speaks WebSocket only", {
      headers: { Upgrade: "websocket", Connection: "Upgrade" },
    });
  });
  app.get("/metrics", async (context) => {
    context.header("Content-Type", METRICS_CONTENT_TYPE);
    return context.body(await parts.registry.render());
  });
  refuseOtherMethods(app);
  for (const path of unbuiltPaths) {
    app.all(path, () => {
      throw new PlatformError("not_available_yet", `this endpoint is ${notAvailableYet}`);
    });
  }
  app.notFound((context) =>
    answerError(context, new PlatformError("not_found", "there is no such endpoint")),
  );
  app.onError((error, context) => {
    const known = toPlatformError(error);
    if (known.status >= 500 && known.code !== "not_available_yet") {
      parts.log.error("a request to the API failed", { code: known.code, error });
    }
    return answerError(context, error);
  });
  return app;
}

/** Everything served above answers other methods with 405 and the list of its own. */
function refuseOtherMethods(app: Hono): void {
  const methods = new Map<string, Set<string>>();
  for (const { path, method } of app.routes) {
    if (method === "ALL") continue;
    const known = methods.get(path) ?? new Set();
    known.add(method);
    if (method === "GET") known.add("HEAD");
    methods.set(path, known);
  }
  for (const [path, allowed] of methods) {
    const list = [...allowed].sort().join(", ");
    app.all(path, (context) => {
      throw new PlatformError(
        "method_not_allowed",
        `${context.req.method} is not allowed here; allowed are ${list}`,
        { headers: { Allow: list } },
      );
    });
  }
}

function answerError(context: Context, error: unknown): Response {
  const traceId = /^00-([0-9a-f]{32})-/.exec(context.req.header("traceparent") ?? "")?.[1] ?? "";
  const problem = toProblem(error, { instance: context.req.path, traceId });
  return new Response(JSON.stringify(problem), {
    status: problem.status,
    headers: getProblemHeaders(error),
  });
}
