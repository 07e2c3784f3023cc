// Registration of a service's routes by its compiler: POST /api/v1/routes/register.
import { PlatformError } from "@platform/kernel/errors";
import { type ApiRoute, defineRoute } from "@platform/kernel/http";
import * as z from "zod";
import { type RouteConfig, routeSchema } from "../config/route.ts";
import { text, upstreamUrl } from "../config/value.ts";
import type { Controller } from "../control/controller.ts";
import { stringifySorted } from "../control/sorted-json.ts";
import { JSON_BODY_BYTES_MAX, readJsonBody } from "./json-body.ts";
import { readChangeRequest } from "./request.ts";

const ROUTES_MAX = 10_000;
/** A segment with a parameter: `:id`, `{id}` or `*`. */
const PARAMETER = /^[:*]|^\{.*\}$/;

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

/** Creates the endpoint. */
export function createRegisterRoute(controller: Controller): ApiRoute {
  return defineRoute({
    method: "POST",
    path: "/api/v1/routes/register",
    tag: "Routes",
    summary: "Register the routes of a service in place of those of its previous registration",
    description:
      "Endpoints become routes by the part of their path before the first parameter. Further members of an endpoint are fields of its route.",
    bodyKind: "bytes",
    bodyBytesMax: JSON_BODY_BYTES_MAX,
    answerType: "application/json",
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
  methods: Set<string>;
  fields: Record<string, unknown>;
}

/** Endpoints with the same prefix and fields are one route. */
function listRoutes({ service, base_url: target, routes }: Registration): RouteConfig[] {
  const merged = new Map<string, Endpoints>();
  for (const { method, path, ...fields } of routes) {
    const route = { ...fields, prefix: findPrefix(path) };
    const key = stringifySorted(route);
    const known = merged.get(key) ?? { methods: new Set(), fields: route };
    known.methods.add(method.toUpperCase());
    merged.set(key, known);
  }
  return [...merged.values()].map(({ methods, fields }) =>
    parseRoute({
      target,
      ...fields,
      registered_by: service,
      ...(methods.has("*") ? {} : { methods: [...methods] }),
    }),
  );
}

function findPrefix(path: string): string {
  const segments = path.split("/");
  const at = segments.findIndex((segment) => PARAMETER.test(segment));
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
