// The built modules of examples/middleware: what they do, and that they keep no memory from one request for the next.
import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { FieldList, type GuestMessages, HttpGuest, compileHttpModule } from "@platform/wasm/http";

/** The samples, and what the first release had: in those, two samples are in AssemblyScript as well. */
const SAMPLES = new URL("../../../../examples/middleware/", import.meta.url);
const FIRST_RELEASE = new URL("first-release/", import.meta.url);
const MODULE_BYTES_MAX = 20_480;
const REQUESTS = 300;

function start(url: URL, config: string): HttpGuest {
  const bytes = readFileSync(url);
  assert.ok(bytes.length <= MODULE_BYTES_MAX);
  return new HttpGuest(compileHttpModule(bytes), {
    config: Buffer.from(config),
    fuelPerCall: 5_000_000,
    log: () => undefined,
    isLogged: () => false,
  });
}

interface Sent {
  fields?: [string, string][];
  body?: string;
  response?: { fields: [string, string][]; body: string };
}

/** Passes an exchange by a guest many times; the results are the same each time. */
async function pass(guest: HttpGuest, { fields = [], body = "", response }: Sent) {
  const results: object[] = [];
  const memoryBefore = guest.memoryBytes;
  for (let count = 0; count < REQUESTS; count++) {
    const messages: GuestMessages = {
      method: "POST",
      uri: "/",
      protocolVersion: "HTTP/1.1",
      sourceAddress: "",
      status: 200,
      requestFields: new FieldList(fields),
      responseFields: new FieldList(),
      readRequestBody: () => Promise.resolve({ bytes: Buffer.from(body), isLast: true }),
      readResponseBody: () => Buffer.from(response?.body ?? ""),
      requestBodyBytesMax: 100_000,
      responseBodyBytesMax: 100_000,
    };
    const { next } = await guest.handleRequest(messages);
    const answer = guest.responseBody;
    if (next) {
      Object.assign(messages, { responseFields: new FieldList(response?.fields) });
      await guest.handleResponse(messages, 0, false);
    }
    results.push({
      next,
      status: messages.status,
      request: messages.requestFields.list(),
      response: messages.responseFields.list(),
      body: String(next ? (guest.responseBody ?? "") : answer),
    });
    guest.endRequest();
  }
  for (const result of results) assert.deepEqual(result, results[0]);
  assert.equal(guest.memoryBytes, memoryBefore);
  return results[0] as Record<string, unknown>;
}

/** A test for the sample, and for those of the first release. */
function testModules(
  names: readonly string[],
  what: string,
  work: (url: URL) => Promise<void>,
): void {
  const urls = [
    new URL(`${names[0]}.wasm`, SAMPLES),
    ...names.map((name) => new URL(`${name}.wasm`, FIRST_RELEASE)),
  ];
  for (const url of urls)
    test(`${url.pathname.split("/").slice(-2).join("/")} ${what}`, () => work(url));
}

testModules(["header-rules"], "changes fields of requests and responses", async (url) => {
  const guest = start(
    url,
    "request set X-Environment prod eu\nrequest remove x-debug\nresponse add Cache-Control no-store\n# other",
  );
  const result = await pass(guest, {
    fields: [
      ["X-Debug", "1"],
      ["X-Keep", "2"],
    ],
    response: { fields: [["Content-Type", "a"]], body: "" },
  });
  assert.deepEqual(result["request"], [
    ["X-Keep", "2"],
    ["X-Environment", "prod eu"],
  ]);
  assert.deepEqual(result["response"], [
    ["Content-Type", "a"],
    ["Cache-Control", "no-store"],
  ]);
});

testModules(["banner"], "goes into HTML pages, and into nothing else", async (url) => {
  const guest = start(url, "Try \u00fcber");
  const html = {
    fields: [["Content-Type", "text/html; charset=utf-8"]] as [string, string][],
    body: "<body>caf\u00e9</body>",
  };
  const page = await pass(guest, { response: html });
  assert.equal(page["body"], '<body>caf\u00e9<div class="banner">Try \u00fcber</div></body>');
  assert.equal(
    (await pass(guest, { response: { ...html, fields: [["Content-Type", "text/plain"]] } }))[
      "body"
    ],
    "",
  );
  const coded: [string, string][] = [...html.fields, ["Content-Encoding", "br"]];
  assert.equal((await pass(guest, { response: { ...html, fields: coded } }))["body"], "");
});

testModules(["redact", "redact-as"], "hides long numbers, and leaves others", async (url) => {
  const guest = start(url, "");
  const result = await pass(guest, {
    response: {
      fields: [["Content-Type", "application/json"]],
      body: '{"card":"4111111111111111","year":2026}',
    },
  });
  assert.equal(result["body"], '{"card":"****************","year":2026}');
});

testModules(["webhook", "webhook-as"], "admits signed bodies only", async (url) => {
  const sign = (key: string, body: string) =>
    `sha256=${createHmac("sha256", key).update(body).digest("hex")}`;
  for (const body of ["", "hello", "x".repeat(55), "x".repeat(56), "x".repeat(10_000)]) {
    const guest = start(url, "the key");
    const right = await pass(guest, {
      body,
      fields: [["X-Hub-Signature-256", sign("the key", body)]],
    });
    assert.equal(right["next"], true);
    const wrong = await pass(guest, {
      body,
      fields: [["X-Hub-Signature-256", sign("another", body)]],
    });
    assert.deepEqual(
      [wrong["next"], wrong["status"], wrong["body"]],
      [false, 401, "The signature is missing or wrong.\n"],
    );
  }
  const open = start(url, "");
  assert.equal(
    (await pass(open, { fields: [["X-Hub-Signature-256", sign("", "")]] }))["next"],
    false,
  );
});
