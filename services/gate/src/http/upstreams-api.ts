// GET /api/v1/admin/upstreams and /api/v1/admin/changes: the state of targets, and the last changes of routes.
import { type ApiRoute, defineRoute } from "@platform/kernel/http";
import { z } from "zod";
import { type RouteChange, routeChange } from "../control/change-log.ts";
import { makeRouteLabel } from "../shared-state/index.ts";
import { seesSecrets } from "./request.ts";
import { circuitName, type RoutesApiOptions } from "./routes-api.ts";

const CHANGES_DEFAULT = 50;
const CHANGES_MAX = 200;

const upstream = z.object({
  url: z.string(),
  active: z.int().meta({ description: "requests, streams and WebSockets" }),
  ejected: z.boolean().meta({ description: "it gets no requests, after failures" }),
  routes: z.array(
    z.object({
      route: z.string(),
      weight: z.number(),
      circuit: circuitName.optional(),
    }),
  ),
});

type Upstream = z.infer<typeof upstream>;

export function createUpstreamRoutes(options: RoutesApiOptions): ApiRoute[] {
  const own = { method: "GET", tag: "Operation" } as const;
  return [
    defineRoute({
      ...own,
      path: "/api/v1/admin/upstreams",
      summary: "Targets of all routes with their state",
      answer: z.object({ upstreams: z.array(upstream) }),
      handle: () => ({ upstreams: listUpstreams(options) }),
    }),
    defineRoute({
      ...own,
      path: "/api/v1/admin/changes",
      summary: "The last changes of routes since the start, the latest first",
      description:
        "`etag_before` and `etag_after` cover secrets: callers with only the scope `gate:read` do not see them.",
      query: z.object({
        limit: z.coerce.number().int().min(1).max(CHANGES_MAX).default(CHANGES_DEFAULT),
      }),
      answer: z.object({
        changes: z.array(routeChange.partial({ etag_before: true, etag_after: true })),
      }),
      handle: ({ query, caller }) => {
        const changes = options.controller.changes.list(query.limit);
        return { changes: seesSecrets(caller) ? changes : changes.map(hideTags) };
      },
    }),
  ];
}

function hideTags({ etag_before: _before, etag_after: _after, ...change }: RouteChange) {
  return change;
}

function listUpstreams({ planner, metrics, readCircuit }: RoutesApiOptions): Upstream[] {
  const found = new Map<number, Upstream>();
  for (const { host, prefix, targets, resilience } of planner.listSpecs()) {
    for (const { url, slot, link, weight } of targets) {
      const known = found.get(slot) ?? {
        url,
        active: metrics.countActive(slot),
        ejected: metrics.isEjected(slot),
        routes: [],
      };
      const hasBreaker = resilience?.breaker !== undefined;
      const circuit = hasBreaker ? { circuit: readCircuit(link) } : {};
      known.routes.push({ route: makeRouteLabel(host, prefix), weight, ...circuit });
      found.set(slot, known);
    }
  }
  return [...found.values()];
}
