// GET, POST and DELETE /api/v1/routes.
import { PlatformError } from "@platform/kernel/errors";
import type { Context, Hono } from "hono";
import { routeSchema } from "../config/route.ts";
import type { RouteConfig } from "../config/route.ts";
import type { Controller } from "../control/controller.ts";
import type { GateMetrics } from "../control/gate-metrics.ts";
import type { RoutePlanner } from "../control/planner.ts";
import { makeRouteKey, makeRouteLabel } from "../snapshot/index.ts";
import type { RouteKey } from "../snapshot/index.ts";
import { readJsonBody } from "./json-body.ts";
import { readChangeRequest } from "./request.ts";

/** A route with what is to be seen of it, read-only. */
export type RouteView = RouteConfig & {
  status: {
    /** Whether the route comes from the configuration or from a change made through the API. */
    source: "configuration" | "api";
    targets: { url: string; active: number; ejected: boolean }[];
  };
};

/** What the resource needs. */
export type RoutesApiParts = {
  controller: Controller;
  planner: RoutePlanner;
  metrics: GateMetrics;
};

/** Serves the routes at `path`. */
export function serveRoutes(app: Hono, path: string, parts: RoutesApiParts): void {
  app.get(path, (context) => {
    context.header("ETag", parts.controller.state.etag);
    return context.json(viewRoutes(parts));
  });
  app.post(path, (context) => setRoute(context, parts));
  app.delete(path, (context) => removeRoute(context, parts));
}

/** Every route in force, in the order of the configuration, those of the API after them. */
export function viewRoutes(parts: RoutesApiParts): RouteView[] {
  const { overlay, routes } = parts.controller.state;
  return [...routes].map(([key, route]) => ({
    ...route,
    status: {
      source: overlay.upserts.has(key) ? "api" : "configuration",
      targets: viewTargets(parts, key),
    },
  }));
}

function viewTargets(parts: RoutesApiParts, key: RouteKey): RouteView["status"]["targets"] {
  return (parts.planner.findSpec(key)?.targets ?? []).map(({ url, slot }) => ({
    url,
    active: parts.metrics.countActive(slot),
    ejected: parts.metrics.isEjected(slot),
  }));
}

async function setRoute(context: Context, { controller }: RoutesApiParts): Promise<Response> {
  const route = await readJsonBody(context.req.raw, routeSchema);
  const report = await controller.setRoute(route, readChangeRequest(context));
  const outcome = report.added > 0 ? "registered" : report.updated > 0 ? "updated" : "unchanged";
  context.header("ETag", report.etag);
  return context.text(`route ${makeRouteLabel(route.host, route.prefix)} ${outcome}\n`);
}

async function removeRoute(context: Context, { controller }: RoutesApiParts): Promise<Response> {
  const prefix = context.req.query("prefix");
  const host = context.req.query("host")?.toLowerCase();
  if (prefix === undefined || prefix === "") {
    throw new PlatformError(
      "validation_failed",
      "the query parameter prefix is required: DELETE /api/v1/routes?prefix=/shop",
    );
  }
  const name = host === undefined || host === "" ? { prefix } : { prefix, host };
  if (name.host === undefined) suggestHost(controller, prefix);
  const report = await controller.removeRoute(name, readChangeRequest(context));
  context.header("ETag", report.etag);
  return context.text(`route ${makeRouteLabel(name.host, prefix)} removed\n`);
}

/** A prefix that exists only under a host is most often meant with it. */
function suggestHost(controller: Controller, prefix: string): void {
  const { routes } = controller.state;
  if (routes.has(makeRouteKey(undefined, prefix))) return;
  const hosts = [...routes.values()].flatMap((route) =>
    route.prefix === prefix && route.host !== undefined ? [route.host] : [],
  );
  if (hosts.length === 0) return;
  throw new PlatformError(
    "not_found",
    `there is no route ${prefix} for every host; add &host= with one of: ${hosts.slice(0, 10).join(", ")}`,
  );
}
