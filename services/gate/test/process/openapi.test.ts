// Validation against OpenAPI documents at the real gateway: what conforms is forwarded unchanged, the rest gets 400 with its place.
import assert from "node:assert/strict";
import { createServer } from "node:http";
import { connect } from "node:net";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { test, type TestContext } from "node:test";
import { gzipSync } from "node:zlib";
import { makeFolder, runtimesOfRules, spawnGate } from "../fixture/gate-process.ts";
import { serve } from "../fixture/serve.ts";
import { shareGate } from "../fixture/shared-gate.ts";

const YAML = `
openapi: 3.0.3
info: { title: Pets, version: "1" }
servers: [{ url: "https://api.test/v1" }]
paths:
  /pets:
    get:
      parameters:
        - { name: limit, in: query, schema: { type: integer, minimum: 1, maximum: 100 } }
        - { name: tags, in: query, explode: false, schema: { type: array, items: { enum: [a, b] } } }
        - { name: X-Trace, in: header, required: true, schema: { type: string, format: uuid } }
    post:
      requestBody:
        required: true
        content:
          application/json: { schema: { $ref: "#/components/schemas/Pet" } }
          text/*: {}
          application/x-www-form-urlencoded: { schema: { $ref: "#/components/schemas/Pet" } }
          multipart/form-data: { schema: { $ref: "#/components/schemas/Pet" } }
  /pets/mine:
    get: {}
  /pets/{id}:
    parameters: [{ $ref: "#/components/parameters/Id" }]
    get: {}
components:
  parameters:
    Id: { name: id, in: path, required: true, schema: { type: integer } }
  schemas:
    Pet:
      type: object
      required: [name]
      additionalProperties: false
      properties:
        id: { type: integer }
        name: { type: string, pattern: "^(a+)+$" }
        owner: { type: string, nullable: true }
        age: { type: integer, minimum: 0, exclusiveMinimum: true }
        parent: { $ref: "#/components/schemas/Pet" }
`;

const NEWER = {
  openapi: "3.1.0",
  info: { title: "Notes", version: "1" },
  paths: {
    "/notes": {
      post: {
        requestBody: {
          content: {
            "application/json": {
              schema: {
                type: "object",
                properties: { text: { type: ["string", "null"] } },
                required: ["text"],
              },
            },
          },
        },
      },
    },
  },
};

async function startUpstream(context: TestContext): Promise<string> {
  const server = createServer((request, response) => {
    let text = "";
    request.setEncoding("utf8").on("data", (piece: string) => (text += piece));
    request.on("end", () => response.end(`${request.method} ${request.url} ${text}`));
  });
  return await serve(context, server);
}

async function ask(url: string, body?: string, type = "application/json") {
  const headers = {
    "X-Trace": "123e4567-e89b-12d3-a456-426614174000",
    ...(body === undefined ? {} : { "Content-Type": type }),
  };
  const answer = await fetch(
    url,
    body === undefined ? { headers } : { method: "POST", headers, body },
  );
  const text = await answer.text();
  const errors = answer.status === 400 ? (JSON.parse(text) as { errors: unknown[] }).errors : [];
  return { status: answer.status, text, errors };
}

for (const runtime of runtimesOfRules) {
  const shared = shareGate({ runtime, config: { workers: 1 } });
  const start = async (context: TestContext) => {
    const { folder } = shared;
    writeFileSync(join(folder, "pets.yaml"), YAML);
    const target = await startUpstream(context);
    return shared.use({
      routes: [
        { prefix: "/v1", target, openapi: join(folder, "pets.yaml"), max_body_size: 1000 },
        { prefix: "/notes", target, openapi: NEWER, openapi_allow_unknown: true },
      ],
    });
  };

  test(`requests that conform are forwarded unchanged (${runtime.name})`, async (context) => {
    const { url } = await start(context);
    const query = "/v1/pets?limit=10&tags=a,b&other=1";
    assert.equal((await ask(`${url}${query}`)).text, `GET ${query} `);
    assert.equal((await ask(`${url}/v1/pets/7`)).text, "GET /v1/pets/7 ");
    assert.equal((await ask(`${url}/v1/pets/mine`)).status, 200);
    const pet = '{ "name": "aaa", "owner": null,\n "parent": {"name":"a", "id": 1} }';
    assert.equal((await ask(`${url}/v1/pets`, pet)).text, `POST /v1/pets ${pet}`);
    assert.equal((await ask(`${url}/v1/pets`, "any", "text/plain")).text, "POST /v1/pets any");
    assert.equal((await ask(`${url}/notes`, '{"text":null}')).status, 200);
    const form = "application/x-www-form-urlencoded";
    assert.equal(
      (await ask(`${url}/v1/pets`, "name=a&id=1", form)).text,
      "POST /v1/pets name=a&id=1",
    );
    const parts = new FormData();
    parts.append("name", "aa");
    parts.append("id", "7");
    const multipart = await fetch(`${url}/v1/pets`, { method: "POST", body: parts });
    assert.match(await multipart.text(), /^POST \/v1\/pets --[\s\S]*name="id"\r\n\r\n7\r\n/);
    const zipped = await fetch(`${url}/v1/pets`, {
      method: "POST",
      headers: { "Content-Type": "Application/JSON; charset=UTF-8", "Content-Encoding": "gzip" },
      body: gzipSync('{"name":"a"}'),
    });
    assert.equal(zipped.status, 200);
  });

  test(`other requests get 400 with the place of each fault (${runtime.name})`, async (context) => {
    const { url } = await start(context);
    const limit = await ask(`${url}/v1/pets?limit=0&tags=a,c`);
    assert.equal(limit.status, 400);
    assert.deepEqual(limit.errors, [
      { in: "query", path: "/limit", message: "must be >= 1" },
      { in: "query", path: "/tags/1", message: "must be equal to one of the allowed values" },
    ]);
    const repeated = await ask(`${url}/v1/pets?limit=1&limit=2`);
    assert.deepEqual(repeated.errors, [
      { in: "query", path: "/limit", message: "must be integer" },
    ]);
    const headless = await fetch(`${url}/v1/pets`);
    assert.match(await headless.text(), /"in":"header","path":"\/X-Trace","message":"is required"/);
    assert.deepEqual((await ask(`${url}/v1/pets/x`)).errors, [
      { in: "path", path: "/id", message: "must be integer" },
    ]);
    const faults: [body: string, path: string, message: RegExp][] = [
      ["{}", "", /required property 'name'/],
      ['{"name":"a","parent":{"name":1}}', "/parent/name", /must be string/],
      ['{"name":"a","more":1}', "", /additional properties/],
      ['{"name":"a","age":0}', "/age", /must be > 0/],
      ["{", "", /is not JSON/],
      // A backtracking expression would take years.
      [`{"name":"${"a".repeat(60)}!"}`, "/name", /must match pattern/],
    ];
    for (const [body, path, message] of faults) {
      const { status, errors } = await ask(`${url}/v1/pets`, body);
      const [fault] = errors as { in: string; path: string; message: string }[];
      assert.deepEqual([status, fault?.in, fault?.path], [400, "body", path], body);
      assert.match(fault!.message, message);
    }
    assert.equal((await ask(`${url}/notes`, '{"text":1}')).status, 400);
    const form = await ask(`${url}/v1/pets`, "name=a&id=x", "application/x-www-form-urlencoded");
    assert.deepEqual(form.errors, [{ in: "body", path: "/id", message: "must be integer" }]);
    assert.equal(
      (await ask(`${url}/v1/pets`, "{}", "application/json; charset=utf-7")).status,
      415,
    );
    const parts = new FormData();
    parts.append("name", new Blob(["b"]), "name.txt");
    const multipart = await fetch(`${url}/v1/pets`, { method: "POST", body: parts });
    assert.deepEqual(JSON.parse(await multipart.text()).errors, [
      { in: "body", path: "/name", message: 'must match pattern "^(a+)+$"' },
    ]);
    for (const [content, path] of [
      [gzipSync('{"name":1}'), "/name"],
      [gzipSync(JSON.stringify({ name: "a".repeat(2_000) })), ""],
      [Buffer.from("{}"), ""],
    ] as const) {
      const answer = await fetch(`${url}/v1/pets`, {
        method: "POST",
        headers: { "Content-Type": "application/json", "Content-Encoding": "gzip" },
        body: content,
      });
      assert.equal(answer.status, 400);
      assert.equal(JSON.parse(await answer.text()).errors[0].path, path);
    }
    // Node's client joins no lines: an upstream may use either type.
    const raw = connect(Number(new URL(url).port), "127.0.0.1");
    raw.end(
      "POST /v1/pets HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Type: text/plain\r\n" +
        "Content-Type: application/json\r\nContent-Length: 2\r\n\r\n{}",
    );
    assert.match(Buffer.concat(await raw.toArray()).toString(), /^HTTP\/1\.1 415 /);
  });

  test(`unknown operations, types and large bodies are refused (${runtime.name})`, async (context) => {
    const { url } = await start(context);
    assert.equal((await ask(`${url}/v1/owners`)).status, 404);
    const other = await fetch(`${url}/v1/pets/7`, { method: "POST", body: "{}" });
    assert.deepEqual([other.status, other.headers.get("allow")], [405, "GET, HEAD"]);
    assert.equal((await ask(`${url}/notes/7`)).status, 200);
    assert.equal((await ask(`${url}/v1/pets`, "<a/>", "application/xml")).status, 415);
    assert.equal((await ask(`${url}/v1/pets`, `{"name":"${"a".repeat(2000)}"}`)).status, 413);
    const chunked = await fetch(`${url}/v1/pets`, {
      method: "POST",
      headers: { "Content-Type": "application/json", "X-Trace": "x" },
      body: new Blob(["x".repeat(5000)]).stream(),
      duplex: "half",
    });
    assert.equal(chunked.status, 413);
    const empty = await fetch(`${url}/v1/pets`, { method: "POST" });
    assert.match(await empty.text(), /"in":"body","path":"","message":"is required"/);
  });

  test(`documents that cannot be used are refused with the reason (${runtime.name})`, async (context) => {
    const post = (schema: object) => ({
      openapi: "3.1.0",
      paths: { "/a": { post: { requestBody: { content: { "application/json": { schema } } } } } },
    });
    const wrong: [unknown, RegExp][] = [
      ["missing.yaml", /openapi "missing\.yaml" is not usable: .*no such file/],
      [{ swagger: "2.0", paths: {} }, /version 3\.0 or 3\.1/],
      [post({ type: "strng" }), /POST \/a: .*type/],
      [post({ $ref: "#/components/schemas/None" }), /POST \/a: .*None/],
      [post({ $ref: "https://other.test/schema" }), /reference https:\/\/other\.test\/schema/],
      [post({ pattern: "(?=a)" }), /POST \/a/],
    ];
    const { url } = await shared.use({ routes: [] });
    for (const [openapi, expected] of wrong) {
      const answer = await fetch(`${url}/api/v1/routes`, {
        method: "POST",
        headers: { "Content-Type": "application/json" },
        body: JSON.stringify({ prefix: "/", target: "http://t", openapi }),
      });
      assert.equal(answer.status, 400, JSON.stringify(openapi));
      assert.match(JSON.stringify(await answer.json()).replaceAll('\\"', '"'), expected);
    }
    const gate = spawnGate(context, {
      runtime,
      folder: makeFolder(context),
      config: { routes: [{ prefix: "/", target: "http://t", openapi: wrong[0]![0] }] },
      args: ["validate"],
    });
    const { code, stderr } = await gate.ended;
    assert.notEqual(code, 0);
    assert.match(stderr, wrong[0]![1]);
  });
}
