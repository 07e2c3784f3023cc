// Completes the OpenAPI document with the request bodies that the API validates itself and the active routes.
import type { JsonObject } from "@platform/kernel/http";
import { z } from "zod";
import { type RouteConfig, routeSchema } from "../config/route.ts";
import type { GateState } from "../control/gate-state.ts";
import { makeRouteLabel } from "../shared-state/index.ts";
import { CONSOLE_SYNC_PATH, syncSchema } from "./console-api.ts";
import { ROUTES_PATH } from "./routes-api.ts";

const ROUTES_SHOWN_MAX = 1000;
const PROXIED_METHODS = ["get", "post", "put", "patch", "delete"];

/** Returns a copy of the document with the first thousand routes of `state`. */
export function describeRoutes(document: JsonObject, state: GateState): JsonObject {
  const paths = { ...(document["paths"] as Record<string, JsonObject>) };
  paths[ROUTES_PATH] = withBody(paths[ROUTES_PATH], routeSchema);
  paths[CONSOLE_SYNC_PATH] = withBody(paths[CONSOLE_SYNC_PATH], syncSchema);
  for (const route of [...state.routes.values()].slice(0, ROUTES_SHOWN_MAX)) {
    const path = `${route.prefix.replace(/\/$/, "")}/{path}`;
    paths[path] = { ...describeRoute(route), ...paths[path] };
  }
  return { ...document, paths };
}

function withBody(item: JsonObject | undefined, schema: z.ZodType): JsonObject {
  const { $schema: _dialect, ...body } = z.toJSONSchema(schema, {
    io: "input",
    unrepresentable: "any",
  });
  const post = item?.["post"] as JsonObject;
  const requestBody = { required: true, content: { "application/json": { schema: body } } };
  return { ...item, post: { ...post, requestBody } };
}

/** Describes a route for clients, without its upstreams and settings. */
function describeRoute(route: RouteConfig): JsonObject {
  const operation = {
    tags: ["Proxied"],
    summary: `Proxied by the route ${makeRouteLabel(route.host, route.prefix)}`,
    ...(route.auth?.type === "none" ? { security: [] } : { security: [{ bearer: [] }] }),
    responses: { default: { description: "Response of the upstream" } },
  };
  return {
    ...(route.host === undefined ? {} : { servers: [{ url: `//${route.host}` }] }),
    parameters: [
      {
        name: "path",
        in: "path",
        required: true,
        description: "Rest of the path; may contain slashes or be empty",
        schema: { type: "string" },
      },
    ],
    ...Object.fromEntries(PROXIED_METHODS.map((method) => [method, operation])),
  };
}
