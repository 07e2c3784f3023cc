// The OpenAPI document of the declared routes. https://spec.openapis.org/oas/v3.1.1.html
import { parsePath } from "../route/path.ts";
import type { RouteDefinition } from "../http/definition.ts";
import { isSchema, toJsonSchema, type Schema } from "../schema/validate.ts";

type JsonObject = Record<string, unknown>;

const PROBLEM: JsonObject = {
  type: "object",
  description: "RFC 9457 problem document",
  required: ["type", "title", "status", "detail", "code", "trace_id"],
  properties: {
    type: { type: "string" },
    title: { type: "string" },
    status: { type: "integer" },
    detail: { type: "string" },
    instance: { type: "string" },
    code: { type: "string" },
    trace_id: { type: "string" },
    errors: { type: "array", items: { type: "object" } },
  },
};

/** Builds the document. */
export function buildOpenApi(
  info: { title: string; version: string },
  routes: readonly RouteDefinition[],
): JsonObject {
  const paths: Record<string, JsonObject> = {};
  for (const route of routes) {
    const path = formatPath(route.path);
    (paths[path] ??= {})[route.method.toLowerCase()] = describeRoute(route);
  }
  return {
    openapi: "3.1.0",
    info,
    servers: [{ url: "/" }],
    paths,
    components: {
      schemas: { Problem: PROBLEM },
      securitySchemes: { bearer: { type: "http", scheme: "bearer" } },
    },
  };
}

/** `/notes/:id` is `/notes/{id}`; the rest of a path is `{path}`. */
function formatPath(path: string): string {
  const parts = parsePath(path).map((segment) => {
    if (segment.kind === "text") return segment.text;
    return segment.kind === "param" ? `{${segment.name}}` : "{path}";
  });
  return `/${parts.join("/")}`;
}

function describeRoute({ method, path, options }: RouteDefinition): JsonObject {
  const { summary, requires, answer } = options;
  const scopes = requires === undefined ? [] : requires === true ? [] : [requires].flat();
  const parameters = [...describePath(path), ...describeQuery(options.query)];
  const requestBody = describeBody(options.body);
  return {
    operationId: nameOperation(method, path),
    ...(summary === undefined ? {} : { summary }),
    ...(scopes.length === 0 ? {} : { description: `Requires ${scopes.join(", ")}.` }),
    security: requires === undefined ? [] : [{ bearer: [] }],
    ...(parameters.length === 0 ? {} : { parameters }),
    ...(requestBody === undefined ? {} : { requestBody }),
    responses: {
      "2XX": {
        description: "Success",
        ...(answer === undefined
          ? {}
          : { content: { "application/json": { schema: toJsonSchema(answer) ?? {} } } }),
      },
      default: {
        description: "Any error",
        content: {
          "application/problem+json": { schema: { $ref: "#/components/schemas/Problem" } },
        },
      },
    },
  };
}

function describePath(path: string): JsonObject[] {
  return parsePath(path).flatMap((segment) => {
    if (segment.kind === "text") return [];
    const name = segment.kind === "param" ? segment.name : "path";
    return [{ name, in: "path", required: true, schema: { type: "string" } }];
  });
}

function describeQuery(query: Schema | undefined): JsonObject[] {
  const schema = query === undefined ? undefined : toJsonSchema(query);
  const required = (schema?.["required"] ?? []) as readonly string[];
  return Object.entries((schema?.["properties"] ?? {}) as JsonObject).map(([name, property]) => ({
    name,
    in: "query",
    required: required.includes(name),
    schema: property,
  }));
}

function describeBody(body: RouteDefinition["options"]["body"]): JsonObject | undefined {
  if (body === undefined) return undefined;
  if (!isSchema(body)) return { content: { "application/octet-stream": {} } };
  return {
    required: true,
    content: { "application/json": { schema: toJsonSchema(body) ?? {} } },
  };
}

function nameOperation(method: string, path: string): string {
  const words = path.split(/[^A-Za-z0-9]+/).filter(Boolean);
  const name = words.map((word) => `${word[0]!.toUpperCase()}${word.slice(1)}`).join("");
  return `${method.toLowerCase()}${name || "Root"}`;
}
