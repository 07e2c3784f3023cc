// The table of what names a file, a variable or an address: complete, so that a new field cannot be forgotten.
import assert from "node:assert/strict";
import { test } from "node:test";
import { z } from "zod";
import { gateDefinition } from "../../src/config/document.ts";
import { GLOBAL_KEYS, listNamed, ROUTE_FIELDS } from "../../src/config/guarded-fields.ts";
import { routeSchema } from "../../src/config/route.ts";

interface Schema {
  type?: string;
  enum?: unknown[];
  const?: unknown;
  properties?: Record<string, Schema>;
  additionalProperties?: Schema | boolean;
  items?: Schema;
  anyOf?: Schema[];
  oneOf?: Schema[];
  allOf?: Schema[];
}

/** Fields with free text; values of enumerations name nothing. */
function listTexts(schema: Schema, path = ""): string[] {
  if (schema.enum !== undefined || schema.const !== undefined) return [];
  const { properties = {}, additionalProperties: more, items } = schema;
  const dot = path === "" ? "" : `${path}.`;
  return [
    ...(schema.type === "string" ? [path] : []),
    ...Object.entries(properties).flatMap(([name, inner]) => listTexts(inner, `${dot}${name}`)),
    ...(items === undefined ? [] : listTexts(items, `${path}[]`)),
    ...(typeof more === "object" ? listTexts(more, `${dot}*`) : []),
    ...[schema.anyOf, schema.oneOf, schema.allOf]
      .flatMap((list) => list ?? [])
      .flatMap((inner) => listTexts(inner, path)),
  ];
}

const describe = (schema: z.ZodType): Schema =>
  z.toJSONSchema(schema, { io: "input", unrepresentable: "any" }) as Schema;

test("the table has every text of a route, and nothing else", () => {
  const found = [...new Set(listTexts(describe(routeSchema)))].sort();
  assert.deepEqual(Object.keys(ROUTE_FIELDS).sort(), found);
});

test("the table has every key of the configuration with a text, and nothing else", () => {
  const found = Object.entries(gateDefinition.keys).flatMap(([name, { schema }]) => {
    const isText = name !== "routes" && listTexts(describe(schema)).length > 0;
    return isText ? [name] : [];
  });
  assert.deepEqual(Object.keys(GLOBAL_KEYS).sort(), found.sort());
});

test("everything that a route names is found, at any depth", () => {
  const route = routeSchema.parse({
    prefix: "/a",
    targets_weighted: [
      { url: "http://a.example", weight: 1 },
      { url: "http://b.example", weight: 1 },
    ],
    auth: { type: "oidc", issuer: "https://i.example", client_id: "c", client_secret_env: "E" },
    openapi: "api.yaml",
  });
  assert.deepEqual(
    listNamed(route).map(({ field, kind, value }) => `${kind} ${field} ${value}`),
    [
      "address targets_weighted[].url http://a.example",
      "address targets_weighted[].url http://b.example",
      "address auth.issuer https://i.example",
      "variable auth.client_secret_env E",
      "file openapi api.yaml",
    ],
  );
  assert.deepEqual(listNamed({ ...route, openapi: { openapi: "3.1.0" } }).at(-1)?.kind, "variable");
});
