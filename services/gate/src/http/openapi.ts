// The OpenAPI document: the API itself, and the routes in force as the paths that clients can call.
import * as z from "zod";
import { gateVersion } from "../config/document.ts";
import { routeSchema } from "../config/route.ts";
import type { GateState } from "../control/controller.ts";
import { makeRouteLabel } from "../snapshot/index.ts";
import { syncSchema } from "./console-api.ts";

const routesShownMax = 1000;

type Json = Record<string, unknown>;

/** Builds the document (OpenAPI 3.1) for the routes of `state`. */
export function buildOpenApi(state: GateState): Json {
  const routes = [...state.routes.values()].slice(0, routesShownMax);
  return {
    openapi: "3.1.0",
    info: {
      title: "Gateway",
      version: gateVersion,
      description: `The gateway's own API, and ${state.routes.size} routes in force. The /api/v1/ paths are served at /api/ too.`,
    },
    security: [{ bearer: [] }],
    tags: [
      { name: "gateway", description: "The gateway's own API" },
      { name: "routes", description: "What the routes in force proxy" },
    ],
    paths: { ...describeApi(), ...Object.fromEntries(routes.map(describeRoute)) },
    components: {
      securitySchemes: { bearer: { type: "http", scheme: "bearer" } },
      schemas: { Route: toSchema(routeSchema), Problem: problemSchema },
      responses: {
        Problem: {
          description: "What went wrong",
          content: { "application/problem+json": { schema: refTo("Problem") } },
        },
      },
    },
  };
}

const problemSchema: Json = {
  type: "object",
  required: ["type", "title", "status", "detail", "code", "error", "trace_id"],
  properties: {
    type: { type: "string" },
    title: { type: "string" },
    status: { type: "integer" },
    detail: { type: "string" },
    instance: { type: "string" },
    code: { type: "string" },
    error: { type: "string" },
    trace_id: { type: "string" },
  },
};

function describeApi(): Json {
  const count = { type: "integer", minimum: 0 };
  const counts = { type: "object", additionalProperties: count };
  const changes = { applied: { type: "boolean" }, added: count, updated: count, removed: count };
  const health = {
    type: "object",
    properties: {
      status: { enum: ["UP", "DOWN"] },
      service: { type: "string" },
      version: { type: "string" },
    },
  };
  const snapshot = {
    type: "object",
    properties: {
      version: { type: "string" },
      routes: { type: "array", items: refTo("Route") },
      connections: counts,
      metrics: { type: "object" },
    },
  };
  return {
    "/healthz": { get: operation("Is the process alive", json(health), { open: true }) },
    "/readyz": { get: operation("Does the gateway take requests", json(health), { open: true }) },
    "/metrics": { get: operation("Metrics for Prometheus", text()) },
    "/api/v1/routes": {
      get: operation("The routes in force", json({ type: "array", items: refTo("Route") })),
      post: operation("Register or replace a route", text(), {
        body: refTo("Route"),
        parameters: [ifMatch],
      }),
      delete: operation("Remove a route", text(), {
        parameters: [query("prefix", true), query("host", false), ifMatch],
      }),
    },
    "/api/v1/admin/connections": {
      get: operation("Requests under way by upstream", json(counts)),
    },
    "/api/v1/admin/reload": {
      post: operation(
        "Read the configuration anew",
        json({
          type: "object",
          properties: {
            ...changes,
            restart_required: { type: "array", items: { type: "string" } },
          },
        }),
        { parameters: [ifMatch] },
      ),
    },
    "/api/v1/admin/console/sync": {
      get: operation("Snapshot of routes, connections and metrics", json(snapshot)),
      post: operation(
        "Replace the whole set of routes",
        json({ type: "object", properties: changes }),
        { body: toSchema(syncSchema), parameters: [ifMatch] },
      ),
    },
    "/api/v1/admin/metrics/ws": {
      get: {
        ...operation("Live metrics, one WebSocket message a second", text()),
        responses: { "101": { description: "WebSocket" }, default: problemRef },
      },
    },
    "/api/docs": { get: operation("This page", text("text/html")) },
    "/api/docs/openapi.json": { get: operation("This document", json({ type: "object" })) },
  };
}

/** A route as the path that clients call; its upstreams are told, its files and settings are not. */
function describeRoute(route: {
  prefix: string;
  host?: string;
  auth?: { type: string };
}): [path: string, item: Json] {
  const path = `${route.prefix.replace(/\/$/, "")}/{path}`;
  const label = makeRouteLabel(route.host, route.prefix);
  const any = {
    tags: ["routes"],
    summary: `Proxied by the route ${label}`,
    ...(route.auth?.type === "none" ? { security: [] } : {}),
    responses: {
      default: { description: "What the upstream answers" },
      "502": problemRef,
      "504": problemRef,
    },
  };
  const methods = ["get", "head", "post", "put", "patch", "delete", "options"];
  return [
    route.host === undefined ? path : `${path}#${route.host}`,
    {
      parameters: [
        {
          name: "path",
          in: "path",
          required: true,
          description: "The rest of the path; may hold slashes and may be empty",
          schema: { type: "string" },
        },
      ],
      ...(route.host === undefined ? {} : { servers: [{ url: `//${route.host}` }] }),
      ...Object.fromEntries(methods.map((method) => [method, any])),
    },
  ];
}

const problemRef = { $ref: "#/components/responses/Problem" };

const ifMatch = {
  name: "If-Match",
  in: "header",
  required: false,
  description: "ETag of the routes that the change was made for",
  schema: { type: "string" },
};

function operation(
  summary: string,
  content: Json,
  more: { body?: Json; parameters?: Json[]; open?: boolean } = {},
): Json {
  return {
    tags: ["gateway"],
    summary,
    ...(more.open === true ? { security: [] } : {}),
    ...(more.parameters === undefined ? {} : { parameters: more.parameters }),
    ...(more.body === undefined
      ? {}
      : { requestBody: { required: true, content: json(more.body) } }),
    responses: { "200": { description: "Done", content }, default: problemRef },
  };
}

function query(name: string, required: boolean): Json {
  return { name, in: "query", required, schema: { type: "string" } };
}

function json(schema: Json): Json {
  return { "application/json": { schema } };
}

function text(type = "text/plain"): Json {
  return { [type]: { schema: { type: "string" } } };
}

function refTo(name: string): Json {
  return { $ref: `#/components/schemas/${name}` };
}

function toSchema(schema: z.ZodType): Json {
  const { $schema: _dialect, ...rest } = z.toJSONSchema(schema, {
    io: "input",
    unrepresentable: "any",
  });
  return rest;
}
