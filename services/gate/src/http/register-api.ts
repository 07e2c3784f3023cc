// Registration of a service's routes by its compiler: POST /api/v1/routes/register.
import { PlatformError } from "@platform/kernel/errors";
import { type ApiRoute, defineRoute } from "@platform/kernel/http";
import { z } from "zod";
import { type RouteConfig, routeSchema } from "../config/route.ts";
import { text, upstreamUrl } from "../config/value.ts";
import type { Controller } from "../control/controller.ts";
import { stringifySorted } from "../resolve/sorted-json.ts";
import { readPatternSegment } from "../shared-state/index.ts";
import { JSON_BODY_BYTES_MAX, readJsonBody } from "./json-body.ts";
import { readChangeRequest } from "./request.ts";

const ROUTES_MAX = 10_000;

const registrationSchema = z.strictObject({
  service: text(128).regex(/^[\w.@/-]+$/, { error: "expected the name of a service" }),
  version: text(128).optional(),
  base_url: upstreamUrl(),
  routes: z
    .array(
      z.looseObject({
        method: text(64).default("*").meta({ description: "method of the endpoint, or *" }),
        path: text(2_048).meta({ description: "path of the endpoint: /notes/:id" }),
      }),
    )
    .max(ROUTES_MAX),
});

type Registration = z.output<typeof registrationSchema>;

export function createRegisterRoute(controller: Controller): ApiRoute {
  return defineRoute({
    method: "POST",
    path: "/api/v1/routes/register",
    tag: "Routes",
    summary: "Register the routes of a service in place of those of its previous registration",
    description:
      "The prefix of an endpoint's route is its path before the first parameter, and its `paths` are the paths of the endpoints. Further members of an endpoint are fields of its route.",
    bodyKind: "bytes",
    bodyBytesMax: JSON_BODY_BYTES_MAX,
    answer: z.object({ registered: z.int(), removed: z.int() }),
    problems: {
      400: "The registration is invalid; nothing has changed",
      409: "A route of another origin has the same prefix, host and methods",
    },
    handle: async (exchange) => {
      const given = readJsonBody(exchange.body, exchange.headers, registrationSchema);
      const routes = listRoutes(given);
      const request = readChangeRequest(exchange);
      const report = await controller.registerRoutes(given.service, routes, request);
      exchange.answerHeaders.set("ETag", report.etag);
      return { registered: routes.length, removed: report.removed };
    },
  });
}

interface Endpoints {
  readonly fields: Record<string, unknown>;
  readonly methods: Set<string>;
  readonly paths: Set<string>;
}

/**
 * Endpoints with the same prefix and fields are one route for each set of paths that some methods have, so that no
 * method gets a path of another.
 */
function listRoutes({ service, base_url: target, routes }: Registration): RouteConfig[] {
  const byMethod = group(
    routes.map(({ method, path, ...fields }) => ({
      // Variants of one prefix are told apart by their paths.
      fields: { ...fields, prefix: fields["variant"] === undefined ? findPrefix(path) : "/" },
      methods: [method.toUpperCase()],
      paths: [path],
    })),
    ({ methods }) => methods,
  );
  const merged = group(byMethod, ({ paths }) => [...paths].sort());
  return merged.map(({ fields, methods, paths }) =>
    parseRoute({
      target,
      ...fields,
      paths: [...paths],
      registered_by: service,
      ...(methods.has("*") ? {} : { methods: [...methods] }),
    }),
  );
}

// Merges endpoints with the same fields and the same `by`.
function group(
  endpoints: readonly {
    readonly fields: Record<string, unknown>;
    readonly methods: Iterable<string>;
    readonly paths: Iterable<string>;
  }[],
  by: (endpoint: Endpoints) => Iterable<string>,
): Endpoints[] {
  const groups = new Map<string, Endpoints>();
  for (const { fields, ...given } of endpoints) {
    const methods = new Set(given.methods);
    const paths = new Set(given.paths);
    const key = stringifySorted([fields, ...by({ fields, methods, paths })]);
    const known = groups.get(key);
    if (known === undefined) groups.set(key, { fields, methods, paths });
    else {
      for (const method of methods) known.methods.add(method);
      for (const path of paths) known.paths.add(path);
    }
  }
  return [...groups.values()];
}

// The segments before the first that stands for others.
function findPrefix(path: string): string {
  const segments = path.split("/");
  const at = segments.findIndex(
    (segment, index) => readPatternSegment(segment, index === segments.length - 1) !== undefined,
  );
  const fixed = (at === -1 ? segments : segments.slice(0, at)).join("/");
  return fixed === "" ? "/" : fixed;
}

function parseRoute(route: Record<string, unknown>): RouteConfig {
  const result = routeSchema.safeParse(route);
  if (result.success) return result.data;
  const [issue] = result.error.issues;
  throw new PlatformError(
    "validation_failed",
    `the route ${String(route["prefix"])}: ${issue?.path.join(".")}: ${issue?.message}`,
  );
}
