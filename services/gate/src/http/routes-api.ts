// GET, POST and DELETE /api/v1/routes.
import { PlatformError } from "@platform/kernel/errors";
import { bytes, type ApiRoute, createEtag, defineRoute } from "@platform/kernel/http";
import type { Caller } from "@platform/kernel/identity";
import { z } from "zod";
import { extendRouteAnswer, type RouteConfig, routeSchema } from "../config/route.ts";
import { normalizePrefix } from "../config/value.ts";
import { canaryState, type CanaryEngine } from "../resilience/canary-engine.ts";
import type { Controller } from "../control/controller.ts";
import { routeCheck } from "../control/route-check.ts";
import type { GateMetrics } from "../telemetry/gate-metrics.ts";
import type { RoutePlanner } from "../control/planner.ts";
import {
  type CircuitName,
  type RouteKey,
  type SharedCache,
  makeRouteKey,
  makeRouteLabel,
} from "../shared-state/index.ts";
import { makeRouteId } from "../control/route-id.ts";
import { stringifySorted } from "../resolve/sorted-json.ts";
import { JSON_BODY_BYTES_MAX, readJsonBody } from "./json-body.ts";
import { hideSecrets } from "./hidden-secrets.ts";
import { readChangeRequest, seesSecrets } from "./request.ts";

/** Path of the routes. */
export const ROUTES_PATH = "/api/v1/routes";

/** State of a circuit. */
export const circuitName: z.ZodType<CircuitName, CircuitName> = z.enum([
  "closed",
  "half_open",
  "open",
]);

const targetView = z.object({
  url: z.string(),
  share: z.number().describe("Share of the requests in percent by the current weights"),
  active: z.int(),
  ejected: z.boolean(),
  circuit: circuitName.optional().describe("If the route has a circuit breaker"),
});

const routeCanary = canaryState
  .extend({
    id: z.string(),
    step_points: z.number().describe("Percentage points of a step"),
    step_seconds: z.number().describe("Time between two steps"),
    error_rate_max: z
      .number()
      .describe("Share of failed attempts, 0 to 1, above which the canary is rolled back"),
  })
  .describe("Automatic promotion of the route's last target");

const routeStatus = z.object({
  source: z
    .enum(["configuration", "api"])
    .describe("Origin of the route: the configuration, or a change through the API"),
  etag: z
    .string()
    .optional()
    .describe(
      "Tag of the route for If-Match; absent for callers that see no secrets, which it covers",
    ),
  targets: z.array(targetView),
  canary: routeCanary.optional(),
});

/** A route with its read-only status. */
export const routeView = extendRouteAnswer({ status: routeStatus }, "RouteView");

/** A route with its read-only status. */
export type RouteView = z.infer<typeof routeView>;

type TargetView = z.infer<typeof targetView>;

/** Options of the route and admin endpoints. */
export interface RoutesApiOptions {
  controller: Controller;
  planner: RoutePlanner;
  metrics: GateMetrics;
  canaries: CanaryEngine;
  readCircuit: (link: number) => CircuitName;
  /** The current weight of a target; undefined: the configured one. */
  readWeight: (link: number) => number | undefined;
  cache: SharedCache;
}

const deleteQuery = z.object({
  prefix: z
    .string({ error: "is required once: DELETE /api/v1/routes?prefix=/shop" })
    .min(1, { error: "is required: DELETE /api/v1/routes?prefix=/shop" }),
  host: z.string({ error: "must be given once" }).optional(),
  methods: z.string({ error: "must be given once: methods=GET,POST" }).optional(),
  variant: z.string({ error: "must be given once" }).optional(),
});

/** Creates the endpoints for routes. */
export function createRouteRoutes(options: RoutesApiOptions): ApiRoute[] {
  const { controller } = options;
  const own = { path: ROUTES_PATH, tag: "Routes" } as const;
  const problems = {
    400: "The route is invalid; `errors` lists the faults",
    412: "The ETag in If-Match is neither that of the routes nor of this route (`status.etag`), or the route exists and If-None-Match is `*`; `current` is the route as it is now, `route_etag` its tag, `sent` the route as it was sent",
    507: "The disk is full",
  };
  return [
    defineRoute({
      ...own,
      method: "GET",
      summary: "List the active routes",
      description:
        "The ETag covers all routes without their status, `status.etag` one of them; changes accept either in If-Match. Callers with only the scope `gate:read` see `[redacted]` in place of values that can be secrets, and a tag of what they see.",
      answer: z.array(routeView),
      handle: ({ answerHeaders, caller }) => {
        answerHeaders.set("ETag", tagRoutes(controller, caller));
        return viewRoutes(options, caller);
      },
    }),
    defineRoute({
      ...own,
      method: "POST",
      summary: "Register a route, or replace the one with its prefix and host",
      bodyKind: "bytes",
      bodyBytesMax: JSON_BODY_BYTES_MAX,
      answer: bytes("text/plain"),
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
      method: "POST",
      path: `${ROUTES_PATH}/check`,
      tag: "Routes",
      summary: "Check a route, and show its difference, without any change",
      bodyKind: "bytes",
      bodyBytesMax: JSON_BODY_BYTES_MAX,
      problems,
      answer: routeCheck,
      handle: async (exchange) => {
        const route = readJsonBody(exchange.body, exchange.headers, routeSchema);
        const check = await controller.checkRoute(route, readChangeRequest(exchange));
        exchange.answerHeaders.set("ETag", controller.state.etag);
        return check;
      },
    }),
    defineRoute({
      ...own,
      method: "DELETE",
      summary: "Remove a route",
      query: deleteQuery,
      answer: bytes("text/plain"),
      problems: { ...problems, 404: "The route does not exist" },
      handle: async (exchange) => {
        const { host = "", methods = "", variant = "" } = exchange.query;
        const prefix = normalizePrefix(exchange.query.prefix);
        const name = {
          prefix,
          ...(host === "" ? {} : { host: host.toLowerCase() }),
          ...(methods === "" ? {} : { methods: methods.toUpperCase().split(",").sort() }),
          ...(variant === "" ? {} : { variant }),
        };
        if (host === "" && methods === "") checkHostMeant(controller, prefix);
        const report = await controller.removeRoute(name, readChangeRequest(exchange));
        exchange.answerHeaders.set("ETag", report.etag);
        return `route ${makeRouteLabel(name.host, prefix)} removed\n`;
      },
    }),
  ];
}

/**
 * All active routes: those of the configuration in its order, then those added through the API. Without secrets for
 * callers that may only read.
 */
export function viewRoutes(options: RoutesApiOptions, caller: Caller): RouteView[] {
  const { overlay, routes, resolved } = options.controller.state;
  const isFull = seesSecrets(caller);
  const show = isFull ? (route: RouteConfig) => route : hideSecrets;
  return [...routes].map(([key, route]) => ({
    ...show(route),
    status: {
      source: overlay.upserts.has(key) ? "api" : "configuration",
      ...(isFull ? { etag: resolved.get(key)!.etag } : {}),
      targets: viewTargets(options, key),
      ...viewCanary(options, key),
    },
  }));
}

/**
 * Tag of the routes for a caller. That of the configuration covers its secrets: a reader could try values of a weak one
 * against it.
 */
export function tagRoutes({ state }: Controller, caller: Caller): string {
  if (seesSecrets(caller)) return state.etag;
  return createEtag(`reader\n${stringifySorted([...state.routes.values()].map(hideSecrets))}`);
}

function viewCanary(
  { canaries }: RoutesApiOptions,
  key: RouteKey,
): Pick<RouteView["status"], "canary"> {
  const canary = canaries.view(key);
  if (canary === undefined) return {};
  const { spec, ...state } = canary;
  return {
    canary: {
      id: makeRouteId(key),
      ...state,
      step_points: spec.stepPoints,
      step_seconds: spec.stepMs / 1_000,
      error_rate_max: spec.errorRateMax,
    },
  };
}

function viewTargets(options: RoutesApiOptions, key: RouteKey): TargetView[] {
  const spec = options.planner.findSpec(key);
  const hasBreaker = spec?.resilience?.breaker !== undefined;
  const targets = spec?.targets ?? [];
  const weights = targets.map(({ link, weight }) => options.readWeight(link) ?? weight);
  const sum = weights.reduce((total, weight) => total + weight, 0);
  return targets.map(({ url, slot, link }, index) => ({
    url,
    share: sum === 0 ? 0 : (100 * weights[index]!) / sum,
    active: options.metrics.countActive(slot),
    ejected: options.metrics.isEjected(slot),
    ...(hasBreaker ? { circuit: options.readCircuit(link) } : {}),
  }));
}

/** Throws `not_found` with a hint if the prefix exists only for certain hosts. */
function checkHostMeant(controller: Controller, prefix: string): void {
  const { routes } = controller.state;
  if (routes.has(makeRouteKey(undefined, prefix))) return;
  const hosts = [...routes.values()].flatMap((route) =>
    route.prefix === prefix && route.host !== undefined ? [route.host] : [],
  );
  if (hosts.length === 0) return;
  throw new PlatformError(
    "not_found",
    `route ${prefix} exists only for certain hosts; add &host= with one of: ${hosts.slice(0, 10).join(", ")}`,
  );
}
