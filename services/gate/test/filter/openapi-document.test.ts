// Operations, bodies and references of OpenAPI documents.
import assert from "node:assert/strict";
import { test } from "node:test";
import {
  checkJson,
  findContent,
  hasForeignCharset,
} from "../../src/filter/openapi/openapi-body.ts";
import { type BodyCheck, OpenApiDocument } from "../../src/filter/openapi/openapi-document.ts";

type Content = Record<string, unknown>;

function open(document: object): OpenApiDocument {
  const opened = new OpenApiDocument({ openapi: "3.1.0", ...document });
  opened.check();
  return opened;
}

function findBody(content: Content, type: string, more: object = {}): BodyCheck | undefined {
  const paths = { "/a": { post: { requestBody: { content } } } };
  const rule = open({ paths, ...more }).find("POST", "/a")?.operation.body ?? assert.fail();
  return findContent(rule.content, type);
}

/** The finding of a body as text; "" if it conforms, "unchecked" if it is not checked. */
function send(content: Content, body: string, more: object = {}, type?: string): string {
  const found = findBody(content, type ?? Object.keys(content)[0] ?? "", more);
  if (!found) return "unchecked";
  const bytes = Buffer.from(body);
  const finding = "json" in found ? checkJson(bytes, found.json) : found.form.checkEncoded(bytes);
  return finding === undefined ? "" : `${finding.path}: ${finding.message}`;
}

const json = (schema: object): Content => ({ "application/json": { schema } });

test("parts of segments are parameters, and the base path ends at a segment", () => {
  const document = open({
    servers: [
      {
        url: "https://{host}/{base}",
        variables: { host: { default: "h" }, base: { default: "v1" } },
      },
    ],
    paths: {
      "/files/{name}.{type}": {
        get: { parameters: [{ name: "type", in: "path", schema: { enum: ["png"] } }] },
      },
      "/files/{id}": { get: {} },
      "/jobs/{id}:cancel": { post: {} },
      "/caf%C3%A9": { get: {} },
    },
  });
  const values = (method: string, path: string) => document.find(method, path)?.values;
  assert.deepEqual(values("GET", "/v1/files/a.b.png"), ["a", "b.png"]);
  assert.deepEqual(values("GET", "/v1/files/a"), ["a"]);
  assert.deepEqual(values("POST", "/v1/jobs/7:cancel"), ["7"]);
  assert.deepEqual(values("GET", "/v1/caf%C3%A9"), []);
  assert.equal(values("POST", "/v1/jobs/7"), undefined);
  assert.equal(values("GET", "/v1x/files/a"), undefined);
  assert.equal(values("GET", "/v1"), undefined);
});

test("a media type is found in any case, with parameters, by its range, and never by two types at once", () => {
  const content = {
    "Application/JSON; charset=utf-8": { schema: { type: "object" } },
    "text/*": {},
  };
  assert.ok(findBody(content, "application/json"));
  assert.ok(findBody(content, "APPLICATION/Json ; charset=UTF-8"));
  assert.equal(findBody(content, "text/plain"), null);
  assert.equal(findBody(content, "text/plain, application/json"), undefined);
  assert.equal(findBody(content, ""), undefined);
  assert.equal(
    send({ "*/*": { schema: { type: "object" } } }, "[]", {}, "application/json"),
    ": must be object",
  );
  assert.equal(
    send({ "application/*": { schema: { type: "object" } } }, "[]", {}, "application/a+json"),
    ": must be object",
  );
  assert.ok(hasForeignCharset("application/json; charset=utf-7"));
  assert.ok(hasForeignCharset('application/json;a=b; Charset="UTF-16"'));
  assert.ok(!hasForeignCharset('application/json; charset="utf-8"'));
});

test("properties that only a response has are not required of a request", () => {
  const Pet = {
    type: "object",
    required: ["id", "name", "at"],
    properties: {
      id: { type: "integer", readOnly: true },
      name: { type: "string" },
      at: { $ref: "#/components/schemas/At" },
    },
  };
  const more = { components: { schemas: { Pet, At: { type: "string", readOnly: true } } } };
  const pet = json({ $ref: "#/components/schemas/Pet" });
  assert.equal(send(pet, '{"name":"a"}', more), "");
  assert.match(send(pet, "{}", more), /required property 'name'/);
});

test("siblings of a reference count in 3.1 and are ignored in 3.0", () => {
  const more = { components: { schemas: { Name: { type: "string" } } } };
  const short = json({ $ref: "#/components/schemas/Name", maxLength: 1 });
  assert.match(send(short, '"ab"', more), /more than 1/);
  assert.equal(send(short, '"ab"', { ...more, openapi: "3.0.3" }), "");
});

test("recursive schemas check every level, and name the place", () => {
  const Tree = {
    type: "object",
    additionalProperties: false,
    properties: { left: { $ref: "#/components/schemas/Tree" }, "a/b": { type: "integer" } },
  };
  const more = { components: { schemas: { Tree } } };
  const tree = json({ $ref: "#/components/schemas/Tree" });
  assert.equal(send(tree, '{"left":{"left":{"a/b":1}}}', more), "");
  assert.equal(
    send(tree, '{"left":{"left":{"a/b":"1"}}}', more),
    "/left/left/a~1b: must be integer",
  );
  assert.equal(
    send(tree, '{"left":{"x":1}}', more),
    '/left: must NOT have additional properties: "x"',
  );
  const depth = 200_000;
  assert.equal(
    send(tree, `${'{"left":'.repeat(depth)}{}${"}".repeat(depth)}`, more),
    ": is too deep",
  );
});

test("unique items are found in time that grows with the body only", () => {
  const unique = json({ type: "array", uniqueItems: true });
  const items = Array.from({ length: 100_000 }, (_, index) => `{"a":${index},"b":1}`);
  assert.equal(send(unique, `[${items.join()}]`), "");
  assert.equal(send(unique, `[${items.join()},{"b":1,"a":7}]`), ": must NOT have duplicate items");
  assert.equal(send(json({ uniqueItems: false }), "[1,1]"), "");
});

test("a form is checked as an object, with the encoding of each property", () => {
  const form = (schema: object, encoding: object = {}): Content => ({
    "application/x-www-form-urlencoded": { schema, encoding },
  });
  const order = form(
    {
      type: "object",
      required: ["id", "name"],
      additionalProperties: false,
      properties: {
        id: { type: "integer" },
        name: { type: "string" },
        tags: { type: "array", items: { enum: ["a", "b"] } },
        ids: { type: "array", items: { type: "integer" } },
        at: { type: "object", properties: { x: { type: "number" } } },
        to: { type: "object", required: ["zip"], properties: { zip: { type: "string" } } },
      },
    },
    { ids: { style: "form", explode: false }, at: { style: "deepObject", explode: true } },
  );
  const right = "id=1&name=a+b&tags=a&tags=b&ids=1,2&at[x]=1.5&to=%7B%22zip%22%3A%2201%22%7D";
  assert.equal(send(order, right), "");
  assert.equal(send(order, "id=x&name=a"), "/id: must be integer");
  assert.equal(send(order, "id=1&id=2&name=a"), "/id: must be integer");
  assert.equal(send(order, "id=1"), ": must have required property 'name'");
  assert.equal(
    send(order, "id=1&name=a&tags=c"),
    "/tags/0: must be equal to one of the allowed values",
  );
  assert.equal(send(order, "id=1&name=a&ids=1,x"), "/ids/1: must be integer");
  assert.equal(send(order, "id=1&name=a&at%5Bx%5D=b"), "/at/x: must be number");
  assert.equal(send(order, "id=1&name=a&to={}"), "/to: must have required property 'zip'");
  assert.equal(send(order, "id=1&name=a&to={"), "/to: is not JSON");
  assert.equal(
    send(order, "id=1&name=a&__proto__=1"),
    ': must NOT have additional properties: "__proto__"',
  );
});

test("a multipart form is checked part by part, and only in the one form that all upstreams read alike", () => {
  const content: Content = {
    "multipart/form-data": {
      schema: {
        type: "object",
        required: ["id", "file"],
        additionalProperties: false,
        properties: {
          id: { type: "integer" },
          note: { type: "string", maxLength: 3 },
          file: { type: "string", format: "binary", maxLength: 4 },
          to: { type: "object", required: ["zip"], properties: { zip: { type: "string" } } },
          more: { type: "array", items: { type: "string", format: "binary" } },
        },
      },
      encoding: { file: { contentType: "image/png, text/*" } },
    },
  };
  const found = findBody(content, "Multipart/Form-Data; boundary=x");
  assert.ok(found && "form" in found);
  const part = (name: string, text: string, more = ""): string =>
    `--x\r\nContent-Disposition: form-data; name="${name}"${more}\r\n\r\n${text}\r\n`;
  const file = part("file", "\u0089PNG", '; filename="a.png"\r\nContent-Type: image/png');
  const check = (body: string, type = "multipart/form-data; boundary=x"): string => {
    const finding = found.form.checkMultipart(Buffer.from(body, "latin1"), type);
    return finding === undefined ? "" : `${finding.path}: ${finding.message}`;
  };
  const json = part("to", '{"zip":"01"}', "\r\nContent-Type: application/json");
  const right = `${part("id", "1")}${file}${json}${part("note", "\u00c3\u00a4bc")}${part("more", "a")}${part("more", "")}--x--`;
  assert.equal(check(right), "");
  assert.equal(check(`${right}\r\n`, 'multipart/form-data; BOUNDARY="x"'), "");
  const wrong: [body: string, finding: string][] = [
    [`${part("id", "x")}${file}--x--`, "/id: must be integer"],
    [`${part("id", "1")}${part("id", "2")}${file}--x--`, "/id: must be integer"],
    [`${file}--x--`, ": must have required property 'id'"],
    [
      `${part("id", "1")}${file}${part("other", "1")}--x--`,
      ': must NOT have additional properties: "other"',
    ],
    [
      `${part("id", "1")}${file}${part("note", "abcd")}--x--`,
      "/note: must NOT have more than 3 characters",
    ],
    [
      `${part("id", "1")}${part("file", "a", "\r\nContent-Type: image/gif")}--x--`,
      "/file: must be of the type image/png, text/*",
    ],
    [`${part("id", "1")}${file}${part("to", "{}")}--x--`, "/to: must have required property 'zip'"],
    [
      `${part("id", "1", "\r\nContent-Type: text/plain; charset=utf-7")}${file}--x--`,
      "/id: must be UTF-8",
    ],
  ];
  for (const [body, finding] of wrong) assert.equal(check(body), finding);
  const malformed = [
    "",
    "--x--x",
    right.slice(0, -2),
    `preamble\r\n${right}`,
    `${right}\r\nepilogue`,
    right.replaceAll("\r\n", "\n"),
    `${part("id", "1", '; name="other"')}${file}--x--`,
    `${part("id", "1", "; name*=utf-8''other")}${file}--x--`,
    `${part('i\\"d', "1")}${file}--x--`,
    `${part("id", "1", "\r\nContent-Transfer-Encoding: base64")}${file}--x--`,
    `${part("id", "1", '\r\nContent-Disposition: form-data; name="id"')}${file}--x--`,
    `--x\r\nContent-Type: text/plain\r\n\r\n1\r\n--x--`,
    `${part("a", "1").repeat(1_001)}--x--`,
  ];
  for (const body of malformed)
    assert.equal(check(body), ": is not multipart/form-data", body.slice(0, 200));
  assert.equal(check(right, "multipart/form-data"), ": is not multipart/form-data");
  assert.equal(
    check(right, "multipart/form-data; boundary=x; boundary=y"),
    ": is not multipart/form-data",
  );
});

/** Bodies, each with true if the schema accepts it. */
type Verdicts = readonly (readonly [body: string, fits: boolean])[];

function judge(schema: object, verdicts: Verdicts, more: object = {}): void {
  for (const [body, fits] of verdicts) {
    assert.equal(send(json(schema), body, more) === "", fits, `${JSON.stringify(schema)} ${body}`);
  }
}

test("names of Object.prototype are ordinary names of properties", () => {
  const names = ["constructor", "toString", "valueOf", "hasOwnProperty", "isPrototypeOf"];
  for (const name of names) {
    const empty = "{}";
    const sent = `{"${name}":"x"}`;
    judge({ properties: { [name]: { type: "number" } } }, [
      [empty, true],
      [sent, false],
    ]);
    judge({ required: [name] }, [
      [empty, false],
      [sent, true],
    ]);
    judge({ properties: { a: {} }, additionalProperties: false }, [
      [empty, true],
      [sent, false],
    ]);
    judge({ dependentRequired: { [name]: ["b"] } }, [
      [empty, true],
      [sent, false],
    ]);
    judge({ dependentSchemas: { [name]: { required: ["b"] } } }, [
      [empty, true],
      [sent, false],
    ]);
    const either = [{ properties: { a: {} } }, { required: ["b"], properties: { b: {} } }];
    judge({ anyOf: either, unevaluatedProperties: false }, [
      ['{"a":1}', true],
      [sent, false],
    ]);
    const patterns = { patternProperties: { "^x": {} }, unevaluatedProperties: false };
    judge(patterns, [
      ['{"x":1}', true],
      [sent, false],
    ]);
  }
  judge({ required: ["__proto__"] }, [
    ["{}", false],
    ['{"__proto__":1}', true],
  ]);
  const hidden = JSON.parse('{"properties":{"__proto__":{"type":"number"}}}') as object;
  assert.throws(() => send(json(hidden), "{}"), /__proto__ is not supported/);
});

/** A schema with a condition. */
function choose(condition: object, consequence: unknown, alternative?: object): object {
  const otherwise = alternative === undefined ? {} : { else: alternative };
  // oxlint-disable-next-line unicorn/no-thenable -- a keyword of JSON Schema
  return { if: condition, then: consequence, ...otherwise };
}

// https://json-schema.org/draft/2020-12/json-schema-core sections 10.2.2 and 11.3
test("what a failed condition has seen is not evaluated", () => {
  const isOne = { properties: { a: { const: 1 } }, required: ["a"] };
  const b = { properties: { b: {} } };
  const c = { properties: { c: {} } };
  const closed = { unevaluatedProperties: false };
  const [a1, a1b, a1c, a2, a2b, a2c, onlyB, onlyC] = [
    '{"a":1}',
    '{"a":1,"b":1}',
    '{"a":1,"c":1}',
    '{"a":2}',
    '{"a":2,"b":1}',
    '{"a":2,"c":1}',
    '{"b":1}',
    '{"c":1}',
  ] as const;
  const none: Verdicts = [
    [a2, false],
    [a2b, false],
    [a2c, false],
  ];
  judge({ ...choose(isOne, b, c), ...closed }, [
    [a1, true],
    [a1b, true],
    [a1c, false],
    [onlyB, false],
    [onlyC, true],
    ...none,
  ]);
  judge({ if: isOne, else: c, ...closed }, [[a1, true], [a1b, false], [onlyC, true], ...none]);
  judge({ ...choose(isOne, b), ...closed }, [[a1b, true], [onlyB, false], ["{}", true], ...none]);
  judge({ ...choose(isOne, true, c), ...closed }, [[a1, true], [a1c, false], ...none]);
  judge({ if: isOne, ...closed }, [[a1, true], ["{}", true], [a1b, false], ...none]);
  const shared = { components: { schemas: { Choice: { if: isOne, else: c } } } };
  const reference = { $ref: "#/components/schemas/Choice", ...closed };
  judge(reference, [[a1, true], [onlyC, true], ...none], shared);
  judge({ allOf: [{ if: isOne, else: c }], ...closed }, [[a1, true], [a1c, false], ...none]);
  const items = { if: { prefixItems: [{ const: "a" }] }, else: { prefixItems: [true, true] } };
  judge({ ...items, unevaluatedItems: false }, [
    ['["a"]', true],
    ['["a","b"]', false],
    ['["b","c"]', true],
    ['["b","c","d"]', false],
  ]);
  const nested = { if: choose(isOne, b), else: c, ...closed };
  assert.throws(() => send(json(nested), "{}"), /if within if is not supported/);
  // Without unevaluated keywords, it has its plain meaning.
  judge({ if: choose(isOne, b), else: c }, [[a2c, true]]);
});

test("references that depend on where they are used are refused by name", () => {
  const dynamic = { properties: { next: { $dynamicRef: "#node" } } };
  assert.throws(() => send(json(dynamic), "{}"), /\$dynamicRef is not supported/);
  assert.throws(() => send(json({ $recursiveRef: "#" }), "{}"), /\$recursiveRef is not supported/);
});

test("multiples are exact in decimal notation", () => {
  judge({ multipleOf: 1 }, [
    ["1", true],
    ["1.0000001", false],
    ["1e300", true],
    ["-7", true],
  ]);
  judge({ multipleOf: 0.01 }, [
    ["19.99", true],
    ["0.07", true],
    ["4.35", true],
    ["0.005", false],
  ]);
  judge({ multipleOf: 0.0001 }, [
    ["0.0075", true],
    ["0.00751", false],
    ["123456789.0001", true],
  ]);
  judge({ multipleOf: 1e-8 }, [
    ["12391239123", true],
    ["1e-8", true],
    ["1.5e-8", false],
  ]);
  judge({ multipleOf: 2.5 }, [
    ["1e17", true],
    ["7.5", true],
    ["7", false],
    ["0", true],
  ]);
});

test("host names, mailboxes and URIs are those of their RFCs", () => {
  const formats: Record<string, { good: string[]; bad: string[] }> = {
    hostname: {
      good: [
        "a",
        "www.example.com",
        "xn--4gbwdl.xn--wgbh1c",
        "1host",
        "a-b.c",
        `${"a".repeat(63)}.b`,
      ],
      bad: [
        "",
        ".",
        "a.",
        ".a",
        "a..b",
        "-a",
        "a-",
        "a_b",
        "a b",
        "é.fr",
        "ab--c",
        "xn--X",
        `${"a".repeat(64)}.b`,
        "a.".repeat(127).concat("b"),
      ],
    },
    email: {
      good: [
        "joe.bloggs@example.com",
        "te~st@example.com",
        "a@localhost",
        '"joe bloggs"@example.com',
        '"a@b"@c.d',
        "a@[127.0.0.1]",
        "a@[IPv6:::1]",
        "o'hara+x@e.org",
      ],
      bad: [
        "2962",
        "a@",
        "@b",
        ".t@e.com",
        "t.@e.com",
        "t..t@e.com",
        "a@b=c.com",
        "a@[127.0.0.300]",
        "a@[::1]",
        "a@b, c@d",
        "a b@c.d",
        "a@-b.c",
        `${"l".repeat(65)}@e.com`,
      ],
    },
    uri: {
      good: [
        "http://foo.bar/?baz=qux#quux",
        "http://foo.com/blah_(wikipedia)_blah#cite-1",
        "urn:oasis:names:x:1.2",
        "mailto:a@b.c",
        "http://[2001:db8::7]:80/c?d",
        "tel:+1-816-555-1212",
        "http://u:p@h:8080/%20",
        "ldap://[::1]/c=GB?one",
        "a:",
        "http://h?q/?",
        "http://[v1.fe80::a]",
      ],
      bad: [
        "",
        "//foo.bar/?q",
        "/abc",
        "\\\\WINDOWS\\x",
        "abc",
        "http:// shouldfail.com",
        ":// x",
        "bar,baz:foo",
        "http://h/%2",
        "http://h/%zz",
        "http://h/<a>",
        "http://h/{a}",
        'http://h/"',
        "http://h/a|b",
        "http://h/^",
        "http://é.fr",
        "http://[::1",
        "http://a[b]",
        "http://h:80a/",
        "http://[1:2]",
        "1a://b",
        "http://h/a#b#c",
      ],
    },
  };
  for (const [format, { good, bad }] of Object.entries(formats)) {
    judge({ type: "string", format }, [
      ...good.map((text) => [JSON.stringify(text), true] as const),
      ...bad.map((text) => [JSON.stringify(text), false] as const),
    ]);
  }
});
