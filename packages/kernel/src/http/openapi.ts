// The OpenAPI 3.1 document of an API, generated from its routes' schemas. https://spec.openapis.org/oas/v3.1.1.html
import { z } from "zod";
import { BytesAnswer, NO_BODY } from "./answer.ts";
import type { ApiRoute } from "./route.ts";

/** A JSON object. */
export type JsonObject = Record<string, unknown>;

/** The `info` object of the document. */
export interface OpenApiInfo {
  title: string;
  version: string;
  description?: string;
}

/** The document as an answer. */
export const openApiAnswer = z.record(z.string(), z.unknown()).describe("An OpenAPI 3.1 document");

const PROBLEM_SCHEMA: JsonObject = {
  type: "object",
  description: "RFC 9457 problem document",
  required: ["type", "title", "status", "detail", "code", "error", "trace_id"],
  properties: {
    type: { type: "string" },
    title: { type: "string" },
    status: { type: "integer" },
    detail: { type: "string" },
    instance: { type: "string" },
    code: { type: "string", description: "Stable identifier of the error." },
    error: { type: "string", description: "Same as detail." },
    trace_id: { type: "string" },
    errors: {
      type: "array",
      description: "Validation errors by location (with validation_failed).",
      items: {
        type: "object",
        properties: {
          in: { enum: ["path", "query", "body"] },
          path: { type: "string" },
          message: { type: "string", description: "English sentence." },
          code: {
            type: "string",
            description:
              "Stable identifier of the fault, such as `required` or `too_long`; absent if only the message describes it.",
          },
          params: {
            type: "object",
            description: "Values of the fault, such as `min` and `max`.",
            additionalProperties: { type: ["string", "number"] },
          },
        },
      },
    },
  },
};

/** Builds the document. Schemas with a `meta({ id })` become components. */
export function buildOpenApi(info: OpenApiInfo, routes: readonly ApiRoute[]): JsonObject {
  const components = new Components();
  const paths: Record<string, JsonObject> = {};
  for (const route of routes) {
    const path = (paths[route.path] ??= {});
    path[route.method.toLowerCase()] = describeOperation(route, components);
  }
  return {
    openapi: "3.1.0",
    info,
    servers: [{ url: "/" }],
    paths,
    components: {
      schemas: { Problem: PROBLEM_SCHEMA, ...components.schemas },
      securitySchemes: { bearer: { type: "http", scheme: "bearer" } },
    },
  };
}

function describeOperation(route: ApiRoute, components: Components): JsonObject {
  const operation: JsonObject = {
    operationId: nameOperation(route),
    summary: route.summary,
    security: route.access === "public" ? [] : [{ bearer: [] }],
    ...describeRequirement(route),
    responses: describeAnswers(route, components),
  };
  if (route.description !== undefined) operation["description"] = route.description;
  if (route.tag !== undefined) operation["tags"] = [route.tag];
  const parameters = [
    ...describeParameters("path", route.params, route.path, components),
    ...describeParameters("query", route.query, route.path, components),
  ];
  if (parameters.length > 0) operation["parameters"] = parameters;
  if (route.bodyKind === "bytes" || route.bodyKind === "stream") {
    operation["requestBody"] = { required: true, content: { "application/octet-stream": {} } };
  } else if (route.body !== undefined) {
    const schema = components.convert(route.body, "input");
    operation["requestBody"] = {
      required: !route.body.safeParse(undefined).success,
      content: { "application/json": { schema } },
    };
  }
  return operation;
}

// A member of its own: OpenAPI has scopes only for OAuth, where all of a list are required.
function describeRequirement({ access, requires }: ApiRoute): JsonObject {
  const check = typeof access === "object" ? access.otherwise : access;
  const declared =
    requires ??
    (typeof check === "function" && "requires" in check ? check.requires : undefined) ??
    (check === "public" ? check : undefined);
  return declared === undefined ? {} : { "x-requires": declared };
}

function describeAnswers(route: ApiRoute, components: Components): JsonObject {
  const { answer } = route;
  const [status = answer === NO_BODY ? 204 : 200, ...others] = [route.status ?? []].flat();
  const success: JsonObject = { description: "Success" };
  const json =
    answer instanceof BytesAnswer ? answer.json : answer === NO_BODY ? undefined : answer;
  const content = {
    ...(answer instanceof BytesAnswer ? { [answer.mediaType]: {} } : {}),
    ...(json === undefined
      ? {}
      : { "application/json": { schema: components.convert(json, "output") } }),
  };
  if (answer !== NO_BODY) success["content"] = content;
  const problem = (description: string): JsonObject => ({
    description,
    content: { "application/problem+json": { schema: { $ref: "#/components/schemas/Problem" } } },
  });
  const answers: JsonObject = Object.fromEntries(
    [status, ...others].map((code) => [code, success]),
  );
  const problems = { ...listCommonProblems(route), ...route.problems };
  for (const [code, text] of Object.entries(problems)) answers[code] = problem(text);
  answers["default"] = problem("Any error");
  return answers;
}

// Problems that the API itself answers with.
function listCommonProblems({ access, params, query, body, bodyKind }: ApiRoute) {
  const isJson = body !== undefined && bodyKind !== "bytes";
  const hasInput = params !== undefined || query !== undefined || isJson;
  return {
    ...(hasInput ? { 400: "The path, the query or the body is not valid" } : {}),
    ...(access === "public"
      ? {}
      : {
          401: "The credentials are missing, invalid or expired",
          403: "The caller does not have the right",
        }),
    ...(isJson || bodyKind === "bytes" ? { 413: "The body is too large" } : {}),
    ...(isJson ? { 415: "The body is not JSON in UTF-8" } : {}),
  };
}

function describeParameters(
  place: "path" | "query",
  schema: z.ZodType | undefined,
  path: string,
  components: Components,
): JsonObject[] {
  const converted = schema === undefined ? {} : components.convert(schema, "input");
  const properties = (converted["properties"] ?? {}) as Record<string, JsonObject>;
  if (place === "path") {
    return Array.from(path.matchAll(/\{(\w+)\}/g), ([, name = ""]) => ({
      name,
      in: place,
      required: true,
      schema: properties[name] ?? { type: "string" },
    }));
  }
  const required = (converted["required"] ?? []) as string[];
  return Object.entries(properties).map(([name, property]) => ({
    name,
    in: place,
    required: required.includes(name),
    ...(property["description"] === undefined ? {} : { description: property["description"] }),
    schema: property,
  }));
}

function nameOperation(route: ApiRoute): string {
  const words = route.path.replace(/^\/api\/v1\//, "").split(/[^A-Za-z0-9]+/);
  return [route.method.toLowerCase(), ...words.filter(Boolean)]
    .map((word, index) => (index === 0 ? word : `${word[0]!.toUpperCase()}${word.slice(1)}`))
    .join("");
}

// Moves `$defs` and self-references of schemas, which are invalid inside a larger document, to components.
class Components {
  readonly schemas: Record<string, JsonObject> = {};

  convert(schema: z.ZodType, io: "input" | "output"): JsonObject {
    const {
      $schema: _,
      $defs,
      ...root
    } = z.toJSONSchema(schema, {
      io,
      unrepresentable: "any",
    }) as JsonObject & { $defs?: Record<string, JsonObject> };
    const names = new Map<string, string>();
    for (const [id, definition] of Object.entries($defs ?? {})) {
      names.set(`#/$defs/${id}`, this.#reserve(id, definition, io));
    }
    if (JSON.stringify(root).includes('"$ref":"#"')) {
      names.set("#", this.#reserve("Recursive", root, io));
    }
    for (const [id, definition] of Object.entries($defs ?? {})) {
      this.schemas[names.get(`#/$defs/${id}`)!] = relink(definition, names) as JsonObject;
    }
    const linked = relink(root, names) as JsonObject;
    const own = names.get("#");
    if (own === undefined) return linked;
    this.schemas[own] = linked;
    return { $ref: `#/components/schemas/${own}` };
  }

  // An id may have two shapes, of input and output (defaults, transforms).
  #reserve(id: string, definition: JsonObject, io: "input" | "output"): string {
    const known = this.#sources.get(id);
    const source = JSON.stringify(definition);
    if (known === undefined || known === source) {
      this.#sources.set(id, source);
      return id;
    }
    return this.#reserve(io === "input" ? `${id}Input` : `${id}Output`, definition, io);
  }

  readonly #sources = new Map<string, string>();
}

function relink(value: unknown, names: ReadonlyMap<string, string>): unknown {
  if (Array.isArray(value)) return value.map((item) => relink(item, names));
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, item]) => {
      const name = key === "$ref" && typeof item === "string" ? names.get(item) : undefined;
      return [key, name === undefined ? relink(item, names) : `#/components/schemas/${name}`];
    }),
  );
}
