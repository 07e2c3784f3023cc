// Parameters in all styles of OpenAPI, with the values of its table "Style Examples".
import assert from "node:assert/strict";
import { test } from "node:test";
import { OpenApiDocument } from "../../src/filter/openapi/openapi-document.ts";

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
  cookies?: Record<string, string | string[]>;
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
      readCookies: (name) => [sent.cookies?.[name] ?? []].flat(),
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

const values: [schema: object, good: string[], bad: string[]][] = [
  [
    { type: "integer" },
    ["0", "-1", "10", "9007199254740993"],
    [
      "",
      " 1",
      "1 ",
      "01",
      "+1",
      "1.0",
      "1e3",
      "0x10",
      "--1",
      "Infinity",
      "true",
      "1_000",
      "\u0661",
    ],
  ],
  [
    { type: "number" },
    ["0", "-0.5", "1e3", "1E-3", "10.50"],
    ["", " 1", "01", ".5", "1.", "0x10", "NaN", "Infinity", "1e999", "1,5"],
  ],
  [{ type: "boolean" }, ["true", "false"], ["", "True", "1", "0", "yes", " true"]],
  [{ type: "string", minLength: 1 }, ["a", "1", " ", "true"], [""]],
  [{ type: ["integer", "null"] }, ["1", ""], ["null", "a"]],
  [{ type: ["integer", "string"], minLength: 2 }, ["1", "ab"], ["a"]],
  [{ enum: [1, "a", true, null] }, ["1", "a", "true"], ["2", "b", "false"]],
  [{ const: 5 }, ["5"], ["6", "05"]],
  [{ oneOf: [{ type: "boolean" }, { type: "integer" }] }, ["true", "7"], ["x"]],
  [
    {
      anyOf: [
        { type: "integer", minimum: 10 },
        { type: "string", pattern: "^[a5]" },
      ],
    },
    ["10", "a", "5"],
    ["7"],
  ],
  [{ allOf: [{ type: "integer" }, { maximum: 5 }] }, ["5"], ["6", "x"]],
  [{ type: "string", pattern: "^[\\u00e0-\\u00ff\\x41]+$" }, ["A\u00e9"], ["B", "A\u00c9"]],
  [{ type: "number", multipleOf: 0.01 }, ["19.99", "0.07", "4.35"], ["0.005"]],
  [{ type: "integer", format: "int32" }, ["2147483647"], ["2147483648"]],
  [{ type: "string", format: "date" }, ["2024-02-29"], ["2024-02-30", "2023-02-29", "2024-13-01"]],
  [
    { type: "string", format: "date-time" },
    ["2024-02-29T23:59:60Z", "2024-01-01t00:00:00.5z", "2024-01-01T00:00:00+02:00"],
    [
      "2024-02-30T00:00:00Z",
      "2024-01-01T24:00:00Z",
      "2024-01-01T00:00:00",
      "2024-01-01T00:00:00+25:00",
    ],
  ],
];

test("values are those of the grammar of JSON, so that no upstream reads another one", () => {
  for (const [schema, good, bad] of values) {
    const say = (value: string): string => `${JSON.stringify(schema)} ${JSON.stringify(value)}`;
    const ask = (value: string): string[] =>
      check({ in: "query", schema }, { query: `color=${encodeURIComponent(value)}` });
    for (const value of good) assert.deepEqual(ask(value), [], say(value));
    for (const value of bad)
      assert.match(ask(value)[0] ?? "passed", /^query \/color: /, say(value));
  }
});

test("a value that is not in its style, or sent twice, is refused by name", () => {
  const integer = { type: "integer" };
  const wrong: [parameter: object, sent: Sent, fault: RegExp][] = [
    [{ in: "path", style: "label", schema: integer }, { path: "5" }, /not in the style label/],
    [{ in: "path", style: "matrix", schema: integer }, { path: "5" }, /not in the style matrix/],
    [{ in: "path", style: "matrix", schema: integer }, { path: ";other=5" }, /style matrix/],
    [
      { in: "path", style: "matrix", schema: integer },
      { path: ";color=5;color=6" },
      /style matrix/,
    ],
    [{ in: "path", schema: COLOR }, { path: "R,1,G,2,R,x" }, /not in the style simple/],
    [{ in: "query", explode: false, schema: COLOR }, { query: "color=R,1,G,2,R,3" }, /style form/],
    [{ in: "query", schema: integer }, { query: "color=1&color=1" }, /must be integer/],
    [{ in: "query", schema: { type: "string" } }, { query: "color=a&color=b" }, /must be string/],
    [
      { in: "query", style: "deepObject", schema: COLOR },
      { query: "color[R]=1&color[R]=2&color[G]=1" },
      /\/color\/R: must be integer/,
    ],
    [
      { in: "cookie", schema: integer },
      { cookies: { color: ["1", "x"] } },
      /not in the style form/,
    ],
    [{ in: "header", schema: integer }, { headers: { color: "1, x" } }, /must be integer/],
    [{ in: "query", schema: { type: "string" } }, {}, /is required/],
  ];
  for (const [parameter, sent, fault] of wrong) {
    assert.match(check(parameter, sent)[0] ?? "passed", fault, JSON.stringify([parameter, sent]));
  }
});

test("empty values, lists of one, and encodings that clients use pass", () => {
  const ids = { type: "array", items: { type: "integer" } };
  const right: [parameter: object, sent: Sent][] = [
    [{ in: "query", allowEmptyValue: true, schema: { type: "boolean" } }, { query: "color" }],
    [{ in: "query", explode: false, schema: ids }, { query: "color=" }],
    [{ in: "query", explode: false, schema: ids }, { query: "color=1%2C2" }],
    [{ in: "query", schema: ids }, { query: "color=1" }],
    [
      { in: "query", style: "pipeDelimited", explode: false, schema: ids },
      { query: "color=1%7C2" },
    ],
    [{ in: "query", style: "spaceDelimited", explode: false, schema: ids }, { query: "color=1+2" }],
    [{ in: "query", schema: { oneOf: [{ const: "all" }, ids] } }, { query: "color=all" }],
    [{ in: "query", schema: { const: "a b+c" } }, { query: "color=a+b%2Bc" }],
    [{ in: "query", allowReserved: true, schema: { const: "/a:b?c" } }, { query: "color=/a:b?c" }],
    [
      {
        in: "query",
        schema: { type: "array", prefixItems: [{ type: "integer" }, { type: "boolean" }] },
      },
      { query: "color=1&color=true" },
    ],
    [{ in: "path", style: "matrix", schema: { type: "string" } }, { path: ";color" }],
    [{ in: "cookie", schema: { const: "a b" } }, { cookies: { color: "a b" } }],
    [
      { in: "query", content: { "application/json; charset=utf-8": { schema: COLOR } } },
      { query: 'color={"R":1,"G":2}' },
    ],
  ];
  for (const [parameter, sent] of right) {
    assert.deepEqual(check(parameter, sent), [], JSON.stringify([parameter, sent]));
  }
});
