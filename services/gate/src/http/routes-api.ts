// GET, POST and DELETE /api/v1/routes.
import { PlatformError } from "@platform/kernel/errors";
import { type ApiRoute, defineRoute } from "@platform/kernel/http";
import * as z from "zod";
import { type RouteConfig, routeSchema } from "../config/route.ts";
import { normalizePrefix } from "../config/value.ts";
import type { Controller } from "../control/controller.ts";
import type { GateMetrics } from "../control/gate-metrics.ts";
import type { RoutePlanner } from "../control/planner.ts";
import { type RouteKey, makeRouteKey, makeRouteLabel } from "../shared-state/index.ts";
import { JSON_BODY_BYTES_MAX, readJsonBody } from "./json-body.ts";
import { readChangeRequest } from "./request.ts";

/** Where the routes are. */
export const ROUTES_PATH = "/api/v1/routes";

/** A route with what is to be seen of it, read-only. */
export type RouteView = RouteConfig & {
  status: {
    /** Whether the route comes from the configuration or from a change made through the API. */
    source: "configuration" | "api";
    targets: { url: string; active: number; ejected: boolean }[];
  };
};

/** What the resource needs. */
export interface RoutesApiOptions {
  controller: Controller;
  planner: RoutePlanner;
  metrics: GateMetrics;
}

const deleteQuery = z.object({
  prefix: z
    .string({ error: "is required once: DELETE /api/v1/routes?prefix=/shop" })
    .min(1, { error: "is required: DELETE /api/v1/routes?prefix=/shop" }),
  host: z.string({ error: "must be given once" }).optional(),
});

/** The operations on routes. */
export function createRouteRoutes(options: RoutesApiOptions): ApiRoute[] {
  const { controller } = options;
  const own = { path: ROUTES_PATH, tag: "Routes" } as const;
  const problems = {
    400: "The route is not valid; `errors` tells where",
    412: "The routes have changed since the ETag in If-Match",
  };
  return [
    defineRoute({
      ...own,
      method: "GET",
      summary: "The routes in force",
      description: "The ETag names the set of routes, not their status.",
      answerType: "application/json",
      handle: ({ answerHeaders }) => {
        answerHeaders.set("ETag", controller.state.etag);
        return viewRoutes(options);
      },
    }),
    defineRoute({
      ...own,
      method: "POST",
      summary: "Register a route, or replace the one of its prefix and host",
      bodyKind: "bytes",
      bodyBytesMax: JSON_BODY_BYTES_MAX,
      answerType: "text/plain",
      problems,
      handle: async (exchange) => {
        const route = readJsonBody(exchange.body, exchange.headers, routeSchema);
        const report = await controller.setRoute(route, readChangeRequest(exchange));
        exchange.answerHeaders.set("ETag", report.etag);
        const done = report.added > 0 ? "registered" : report.updated > 0 ? "updated" : "unchanged";
        return `route ${makeRouteLabel(route.host, route.prefix)} ${done}\n`;
      },
    }),
    defineRoute({
      ...own,
      method: "DELETE",
      summary: "Remove a route",
      query: deleteQuery,
      answerType: "text/plain",
      problems: { ...problems, 404: "There is no such route" },
      handle: async (exchange) => {
        const { host = "" } = exchange.query;
        const prefix = normalizePrefix(exchange.query.prefix);
        const name = host === "" ? { prefix } : { prefix, host: host.toLowerCase() };
        if (name.host === undefined) checkHostMeant(controller, prefix);
        const report = await controller.removeRoute(name, readChangeRequest(exchange));
        exchange.answerHeaders.set("ETag", report.etag);
        return `route ${makeRouteLabel(name.host, prefix)} removed\n`;
      },
    }),
  ];
}

/** Every route in force, in the order of the configuration, those of the API after them. */
export function viewRoutes(options: RoutesApiOptions): RouteView[] {
  const { overlay, routes } = options.controller.state;
  return [...routes].map(([key, route]) => ({
    ...route,
    status: {
      source: overlay.upserts.has(key) ? "api" : "configuration",
      targets: viewTargets(options, key),
    },
  }));
}

function viewTargets(options: RoutesApiOptions, key: RouteKey): RouteView["status"]["targets"] {
  return (options.planner.findSpec(key)?.targets ?? []).map(({ url, slot }) => ({
    url,
    active: options.metrics.countActive(slot),
    ejected: options.metrics.isEjected(slot),
  }));
}

/** A prefix that exists only under hosts is most often meant with one of them. */
function checkHostMeant(controller: Controller, prefix: string): void {
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
