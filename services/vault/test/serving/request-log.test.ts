// The traces of requests to a running service: log lines, spans, metrics and the access log.
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { after, before, test } from "node:test";
import { waitFor } from "@platform/testing/wait";
import { DEFAULT_ACCESS_KEY, DEFAULT_SECRET_KEY } from "../../src/config.ts";
import { serve, type Serving } from "./serving.ts";

const TRACE_ID = "0af7651916cd43dd8448eb211c80319c";
const PARENT_ID = "b7ad6b7169203331";

interface Line {
  level: string;
  msg: string;
  trace_id: string;
  span_id: string;
  route?: string;
  status: number | null;
  [name: string]: unknown;
}

let spans = "";
const collector = createServer((request, response) => {
  request.setEncoding("utf8").on("data", (text: string) => (spans += text));
  request.on("end", () => response.end("{}"));
});
let serving: Serving;

before(async () => {
  collector.listen(0, "127.0.0.1");
  await once(collector, "listening");
  const { port } = collector.address() as AddressInfo;
  const env = { PLATFORM_VAULT_OTEL_ENDPOINT: `http://127.0.0.1:${port}` };
  serving = await serve({ env });
  await serving.s3.must("PUT", "/log");
});
after(async () => {
  await serving[Symbol.asyncDispose]();
  collector.close();
  collector.closeAllConnections();
});

function readLines(of = serving): Line[] {
  const whole = of.vault.output.split("\n").filter((line) => line.endsWith("}"));
  return whole.map((line) => JSON.parse(line) as Line);
}

test("a request has a line and a span in the trace of its client, without its query", async () => {
  const headers = { traceparent: `00-${TRACE_ID}-${PARENT_ID}-01` };
  await serving.s3.must("PUT", "/log/key?x-id=PutObject", { body: "x", headers });
  const line = await waitFor(
    () => readLines().find(({ trace_id: id, msg }) => id === TRACE_ID && msg === "request"),
    "the line",
  );
  assert.equal(line.level, "info");
  assert.equal(line["service"], "vault");
  assert.equal(line.route, "PutObject");
  assert.equal(line["method"], "PUT");
  assert.equal(line["path"], "/log/key");
  assert.equal(line.status, 200);
  assert.match(line.span_id, /^[0-9a-f]{16}$/);
  assert.notEqual(line.span_id, PARENT_ID);
  assert.ok(Number(line["duration_ms"]) > 0);
  await waitFor(() => spans.includes(line.span_id), "the span");
  for (const text of [TRACE_ID, PARENT_ID, "PUT PutObject"]) assert.ok(spans.includes(text), text);
});

test("a request without a trace begins one", async () => {
  await serving.s3.must("GET", "/log?list-type=2");
  const line = await waitFor(
    () => readLines().find(({ route }) => route === "ListObjectsV2"),
    "the line",
  );
  assert.match(line.trace_id, /^[0-9a-f]{32}$/);
});

test("an unimplemented request has a line, and is not logged as an error", async () => {
  const headers = { "if-none-match": '"etag"' };
  const answer = await serving.s3.send("PUT", "/log/other", { headers });
  assert.equal(answer.status, 501);
  const line = await waitFor(() => readLines().find(({ status }) => status === 501), "the line");
  assert.equal(line.level, "info");
  assert.equal(line["error_code"], "NotImplemented");
  assert.deepEqual(
    readLines().filter(({ level }) => level === "error"),
    [],
  );
});

test("probes are named in metrics, and have no line", async () => {
  for (const path of ["/healthz", "/readyz"]) {
    assert.equal((await serving.s3.send("GET", path, { key: null })).status, 200);
  }
  const { text } = await serving.admin.must("GET", "/metrics", { key: null });
  assert.match(text, /^platform_vault_http_requests_total\{operation="Probe".* 2$/m);
  assert.doesNotMatch(text, /operation="Unknown"/);
  await serving.s3.must("HEAD", "/log");
  await waitFor(() => readLines().some(({ route }) => route === "HeadBucket"), "a later line");
  assert.ok(readLines().every(({ path }) => path !== "/healthz" && path !== "/readyz"));
});

test("the built-in credentials cause a warning at the start, even on loopback", async () => {
  await using vault = await serve({
    env: {
      STORE_ACCESS_KEY_ID: DEFAULT_ACCESS_KEY,
      STORE_SECRET_ACCESS_KEY: DEFAULT_SECRET_KEY,
    },
  });
  const warnings = readLines(vault).filter(({ level }) => level === "warn");
  assert.equal(warnings.length, 1);
  assert.match(warnings[0]!.msg, /built-in credentials/);
});
