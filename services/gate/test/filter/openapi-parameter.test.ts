// Parameters in all styles of OpenAPI, with the values of its table "Style Examples".
import assert from "node:assert/strict";
import { test } from "node:test";
import { OpenApiDocument } from "../../src/filter/openapi-document.ts";

const COLOR = {
  type: "object",
  required: ["R", "G"],
  properties: {
    R: { type: "integer" },
    G: { type: "integer" },
    B: { type: "integer", maximum: 255 },
  },
};
const LIST = { type: "array", items: { enum: ["blue", "black", "brown"] }, minItems: 2 };

interface Sent {
  path?: string;
  query?: string;
  headers?: Record<string, string>;
  cookies?: Record<string, string>;
}

function check(parameter: object, sent: Sent, more: readonly object[] = []): string[] {
  const isInPath = (parameter as { in: string }).in === "path";
  const path = isInPath ? "/p/{color}" : "/p";
  const document = new OpenApiDocument({
    openapi: "3.1.0",
    paths: {
      [path]: { get: { parameters: [{ name: "color", required: true, ...parameter }, ...more] } },
    },
    components: { schemas: { Color: COLOR } },
  });
  document.check();
  const found = document.find("GET", isInPath ? `/p/${sent.path}` : "/p");
  assert.ok(found !== undefined);
  return found.operation
    .checkParameters({
      path: found.values,
      query: new URLSearchParams(sent.query),
      readHeader: (name) => sent.headers?.[name],
      readCookie: (name) => sent.cookies?.[name],
    })
    .map(({ in: place, path: at, message }) => `${place} ${at}: ${message}`);
}

const cases: [title: string, parameter: object, good: Sent, bad: Sent, fault: RegExp][] = [
  [
    "simple object in the path",
    { in: "path", schema: COLOR },
    { path: "R,100,G,200,B,150" },
    { path: "R,100,G,200,B,999" },
    /^path \/color\/B: must be <= 255$/,
  ],
  [
    "exploded simple object in the path",
    { in: "path", explode: true, schema: COLOR },
    { path: "R=100,G=200,B=150" },
    { path: "R=100,G=x" },
    /^path \/color\/G: must be integer$/,
  ],
  [
    "label list",
    { in: "path", style: "label", explode: true, schema: LIST },
    { path: ".blue.black.brown" },
    { path: ".blue.red" },
    /\/color\/1: must be equal/,
  ],
  [
    "label object",
    { in: "path", style: "label", schema: COLOR },
    { path: ".R,100,G,200" },
    { path: ".R,100" },
    /required property 'G'/,
  ],
  [
    "exploded label object",
    { in: "path", style: "label", explode: true, schema: COLOR },
    { path: ".R=100.G=200" },
    { path: ".R=100" },
    /required property 'G'/,
  ],
  [
    "matrix list",
    { in: "path", style: "matrix", schema: LIST },
    { path: ";color=blue,black" },
    { path: ";color=blue" },
    /fewer than 2/,
  ],
  [
    "exploded matrix list",
    { in: "path", style: "matrix", explode: true, schema: LIST },
    { path: ";color=blue;color=black" },
    { path: ";color=blue;color=red" },
    /\/color\/1: must be equal/,
  ],
  [
    "exploded matrix object",
    { in: "path", style: "matrix", explode: true, schema: COLOR },
    { path: ";R=100;G=200" },
    { path: ";R=100;G=x" },
    /\/color\/G: must be integer/,
  ],
  [
    "deepObject",
    { in: "query", style: "deepObject", explode: true, schema: COLOR },
    { query: "color[R]=100&color[G]=200" },
    { query: "color[R]=100&color[G]=a" },
    /^query \/color\/G: must be integer$/,
  ],
  [
    "deepObject by reference",
    { in: "query", style: "deepObject", schema: { $ref: "#/components/schemas/Color" } },
    { query: "color%5BR%5D=100&color%5BG%5D=200" },
    { query: "color=R" },
    /is required/,
  ],
  [
    "nested deepObject with a list",
    {
      in: "query",
      style: "deepObject",
      schema: {
        type: "object",
        properties: {
          at: { type: "object", properties: { x: { type: "number" } } },
          tags: { type: "array", items: { type: "integer" } },
        },
      },
    },
    { query: "color[at][x]=1.5&color[tags]=1&color[tags]=2" },
    { query: "color[at][x]=a" },
    /\/color\/at\/x: must be number/,
  ],
  [
    "form object",
    { in: "query", explode: false, schema: COLOR },
    { query: "color=R,100,G,200" },
    { query: "color=R,100,G" },
    /^query \/color: must be object$/,
  ],
  [
    "exploded form object",
    { in: "query", schema: { ...COLOR, additionalProperties: false } },
    { query: "R=100&G=200&other=1" },
    { query: "R=100" },
    /required property 'G'/,
  ],
  [
    "pipe-delimited object",
    { in: "query", style: "pipeDelimited", explode: false, schema: COLOR },
    { query: "color=R|100|G|200" },
    { query: "color=R|100" },
    /required property 'G'/,
  ],
  [
    "space-delimited list",
    { in: "query", style: "spaceDelimited", explode: false, schema: LIST },
    { query: "color=blue%20black" },
    { query: "color=blue" },
    /fewer than 2/,
  ],
  [
    "object in a header",
    { in: "header", explode: true, schema: COLOR },
    { headers: { color: "R=100, G=200" } },
    { headers: { color: "R=100, G=x" } },
    /^header \/color\/G: must be integer$/,
  ],
  [
    "object in a cookie",
    { in: "cookie", explode: false, schema: COLOR },
    { cookies: { color: "R,100,G,200" } },
    { cookies: { color: "R,x,G,200" } },
    /^cookie \/color\/R: must be integer$/,
  ],
  [
    "exploded object of cookies",
    { in: "cookie", schema: COLOR },
    { cookies: { R: "1", G: "2" } },
    { cookies: { R: "1" } },
    /required property 'G'/,
  ],
  [
    "JSON in a parameter",
    { in: "query", content: { "application/json": { schema: COLOR } } },
    { query: `color=${encodeURIComponent('{"R":1,"G":2}')}` },
    { query: `color=${encodeURIComponent('{"R":"1","G":2}')}` },
    /^query \/color\/R: must be integer$/,
  ],
  [
    "malformed JSON in a parameter",
    { in: "query", content: { "application/json": { schema: COLOR } } },
    { query: `color=${encodeURIComponent('{"R":1,"G":2}')}` },
    { query: "color={" },
    /^query \/color: is not JSON$/,
  ],
  [
    "combined schemas",
    {
      in: "query",
      style: "deepObject",
      schema: { allOf: [{ $ref: "#/components/schemas/Color" }] },
    },
    { query: "color[R]=1&color[G]=2" },
    { query: "color[R]=1&color[G]=x" },
    /must be integer/,
  ],
];

for (const [title, parameter, good, bad, fault] of cases) {
  test(title, () => {
    assert.deepEqual(check(parameter, good), []);
    const [finding = ""] = check(parameter, bad);
    assert.match(finding, fault);
  });
}

test("an exploded object without named properties leaves other parameters alone", () => {
  const free = {
    in: "query",
    schema: { type: "object", additionalProperties: { type: "integer" } },
  };
  const limit = { name: "limit", in: "query", schema: { type: "string" } };
  assert.deepEqual(check(free, { query: "a=1&limit=ten" }, [limit]), []);
  assert.match(check(free, { query: "a=x&limit=ten" }, [limit])[0] ?? "", /must be integer/);
});

test("names of clients have no meaning for the gateway, and depth is bounded", () => {
  const deep = { in: "query", style: "deepObject", schema: { type: "object" } };
  assert.deepEqual(check(deep, { query: "color[__proto__][polluted]=1" }), []);
  assert.equal(({} as Record<string, unknown>)["polluted"], undefined);
  const brackets = "[a]".repeat(5_000);
  assert.match(check(deep, { query: `color${brackets}=1` })[0] ?? "", /must be object/);
});

test("a style that its place does not have is refused", () => {
  assert.throws(
    () => check({ in: "header", style: "deepObject", schema: COLOR }, {}),
    /GET \/p: the parameter color has a style/,
  );
});
