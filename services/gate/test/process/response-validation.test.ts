// Responses that do not conform to the OpenAPI document of their route: reported, and passed on unchanged.
import assert from "node:assert/strict";
import { createServer } from "node:http";
import { test, type TestContext } from "node:test";
import { gzipSync } from "node:zlib";
import { waitFor } from "@platform/testing/wait";
import { runtimesOfRules, startGate } from "../fixture/gate-process.ts";
import { serve } from "../fixture/serve.ts";

const PET = {
  type: "object",
  required: ["name"],
  properties: { name: { type: "string" }, age: { type: "integer" } },
};
const get = (responses: object) => ({ get: { responses } });
const json = (schema: object) => ({ content: { "application/json": { schema } } });
const DOCUMENT = {
  openapi: "3.1.0",
  paths: {
    "/good": get({ 200: json(PET) }),
    "/wrong": get({ 200: json(PET) }),
    "/text": get({ 200: json(PET) }),
    "/status": get({ 200: json(PET), "4XX": {} }),
    "/class": get({ 200: json(PET), "4XX": json(PET) }),
    "/default": get({ default: json(PET) }),
    "/large": get({ 200: json({ type: "string" }) }),
    "/coded": get({ 200: json(PET) }),
    "/free": { get: {} },
  },
};

/** Body, status and fields by path. */
const RESPONSES: Record<string, [body: string | Buffer, status?: number, fields?: object]> = {
  "/good": ['{ "name": "a",  "age": 1 }'],
  "/wrong": ['{"name":"a","age":"1"}'],
  "/text": ["plain", 200, { "Content-Type": "text/plain" }],
  "/status": ["{}", 500],
  "/class": ['{"name":"a"}', 404],
  "/default": ["{}", 503],
  "/large": [JSON.stringify("x".repeat(2_000_000))],
  "/coded": [gzipSync("{}"), 200, { "Content-Encoding": "gzip" }],
  "/free": ["anything", 299],
};

async function startUpstream(context: TestContext): Promise<string> {
  const server = createServer((request, response) => {
    const [body, status = 200, fields = {}] = RESPONSES[request.url ?? ""]!;
    response.writeHead(status, { "Content-Type": "application/json", ...fields }).end(body);
  });
  return await serve(context, server);
}

for (const runtime of runtimesOfRules) {
  test(`responses that do not conform are counted and logged, not changed (${runtime.name})`, async (context) => {
    const target = await startUpstream(context);
    const route = { prefix: "/", target, openapi: DOCUMENT, openapi_responses: "report" };
    const gate = await startGate(context, {
      runtime,
      config: { workers: 1, routes: [{ ...route, compress: true }] },
    });
    const count = async (name: string): Promise<number> => {
      const text = await (await fetch(`${gate.url}/metrics`)).text();
      return Number(new RegExp(`^platform_gate_${name}_total (\\d+)`, "m").exec(text)?.[1]);
    };
    for (const [path, [body, status = 200]] of Object.entries(RESPONSES)) {
      const answer = await fetch(`${gate.url}${path}`);
      assert.equal(answer.status, status);
      const expected = path === "/coded" ? "{}" : body.toString();
      assert.equal(await answer.text(), expected, path);
    }
    // /wrong, /text, /status and /default; /large and /coded are not checked.
    await waitFor(async () => (await count("response_violations")) === 4, "four violations");
    assert.equal(await count("responses_unchecked"), 2);
    const readReasons = (): string[] =>
      gate
        .lines()
        .filter(({ msg }) => msg === "a response does not conform to the OpenAPI document")
        .map((line) => `${String(line["url"])} ${String(line["error"])}`);
    await waitFor(() => readReasons().length === 4, "four log lines");
    assert.deepEqual(readReasons().toSorted(), [
      "GET /default status 503: body must have required property 'name'",
      "GET /status status 500: the status 500 is not in the document",
      "GET /text status 200: the media type text/plain is not in the document",
      "GET /wrong status 200: /age must be integer",
    ]);
  });
}
