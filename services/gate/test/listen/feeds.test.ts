// Output of a worker: access log, spans, and its behavior at the connection limit.
import assert from "node:assert/strict";
import { once } from "node:events";
import { existsSync, mkdtempSync, readFileSync, renameSync, rmSync } from "node:fs";
import { connect, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, test } from "node:test";
import { waitFor } from "@platform/testing/wait";
import { LIMITS_DEFAULT } from "../../src/shared-state/index.ts";
import { ask, sendRaw, startGate, startUpstream, type GateWorker } from "./gate-worker.ts";

let folder = "";
const stops: (() => unknown)[] = [];
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "gate-feeds-"));
});
afterEach(async () => {
  for (const stop of stops.splice(0).reverse()) await stop();
  rmSync(folder, { recursive: true });
});

async function startWith(...parameters: Parameters<typeof startGate>): Promise<GateWorker> {
  const gate = await startGate(...parameters);
  stops.push(() => gate.stop());
  return gate;
}

type Line = Record<string, string | number | null>;

function readLines(path: string): Line[] {
  if (!existsSync(path)) return [];
  const text = readFileSync(path, "utf8");
  return text
    .split("\n")
    .filter(Boolean)
    .map((line) => JSON.parse(line) as Line);
}

test("each request of a logging route is logged once and soon, others are not", async () => {
  const path = join(folder, "access.jsonl");
  const upstream = await startUpstream((_request, response) => response.end("ok"));
  stops.push(upstream.stop);
  const gate = await startWith(
    [
      { prefix: "/a", accessLog: true, targets: ["http://127.0.0.1:1", upstream.url] },
      { prefix: "/b", targets: [upstream.url] },
      { prefix: "/down", accessLog: true, targets: ["http://127.0.0.1:1"] },
    ],
    { accessLog: { path, fileBytesMax: 1e9, filesMax: 2 } },
  );
  await ask(gate.port, "/b");
  const startedAt = Date.now();
  await ask(gate.port, "/a/x%20y/..//z?token=secret", {
    headers: {
      "X-Request-Id": 'id-"1"',
      traceparent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
    },
  });
  await ask(gate.port, "/down", { method: "POST" });
  await waitFor(() => readLines(path).length === 2);
  const [first, second] = readLines(path) as [Line, Line];
  assert.deepEqual(Object.keys(first), [
    "timestamp",
    "method",
    "path",
    "status",
    "latency_ms",
    "client_ip",
    "upstream",
    "code",
    "route",
    "request_id",
    "trace_id",
    "attempts",
    "upstream_ms",
  ]);
  assert.ok(Math.abs(Date.parse(String(first["timestamp"])) - startedAt) < 2_000);
  assert.deepEqual(
    [
      "method",
      "path",
      "status",
      "client_ip",
      "upstream",
      "code",
      "route",
      "request_id",
      "trace_id",
      "attempts",
    ].map((name) => first[name]),
    [
      "GET",
      "/a/z",
      200,
      "127.0.0.1",
      upstream.url,
      "",
      "/a",
      'id-"1"',
      "0af7651916cd43dd8448eb211c80319c",
      2,
    ],
  );
  assert.ok(Number(first["upstream_ms"]) >= 0);
  assert.deepEqual(
    ["method", "path", "status", "code", "attempts", "upstream_ms"].map((name) => second[name]),
    ["POST", "/down", 502, "upstream_unreachable", 1, null],
  );
});

test("the log is reopened on request without loss", async () => {
  const path = join(folder, "access.jsonl");
  const upstream = await startUpstream((_request, response) => response.end("ok"));
  stops.push(upstream.stop);
  const gate = await startWith([{ accessLog: true, targets: [upstream.url] }], {
    accessLog: { path, fileBytesMax: 1e9, filesMax: 2 },
  });
  for (let round = 0; round < 5; round++) await ask(gate.port, `/${round}`);
  renameSync(path, `${path}.1`);
  const reopened = gate.hear("reopened");
  gate.send({ type: "reopen-access-log" });
  await reopened;
  for (let round = 5; round < 8; round++) await ask(gate.port, `/${round}`);
  await waitFor(() => readLines(path).length === 3);
  const paths = [...readLines(`${path}.1`), ...readLines(path)].map((line) => line["path"]);
  assert.deepEqual(paths, ["/0", "/1", "/2", "/3", "/4", "/5", "/6", "/7"]);
  const drained = gate.hear("drained");
  await ask(gate.port, "/last");
  gate.send({ type: "drain", deadlineMs: 500 });
  await drained;
  assert.equal(readLines(path).at(-1)?.["path"], "/last");
  assert.equal(gate.metrics.readCounter("accessLogLines"), 9);
});

test("a client that disconnects before the response is logged and counted as 499", async () => {
  const path = join(folder, "access.jsonl");
  const upstream = await startUpstream(() => undefined);
  stops.push(upstream.stop);
  const gate = await startWith([{ accessLog: true, targets: [upstream.url] }], {
    accessLog: { path, fileBytesMax: 1e9, filesMax: 2 },
  });
  const socket = connect(gate.port, "127.0.0.1");
  socket.write("GET /slow HTTP/1.1\r\nHost: a\r\n\r\n");
  await waitFor(() => gate.active.sum(0) === 1);
  socket.destroy();
  await waitFor(() => readLines(path).length === 1);
  assert.equal(readLines(path)[0]?.["status"], 499);
  assert.equal(gate.active.sum(0), 0);
  assert.equal([...gate.metrics.readSeries()][0]?.status, 499);
});

test("every proxied request of a sampled trace exports a span under the caller's", async () => {
  const bodies: string[] = [];
  const collector = await startUpstream((request, response) => {
    let body = "";
    request.on("data", (chunk) => (body += String(chunk)));
    request.on("end", () => {
      bodies.push(body);
      response.setHeader("content-type", "application/json");
      response.end("{}");
    });
  });
  const upstream = await startUpstream((request, response) =>
    response.end(request.headers["traceparent"]),
  );
  stops.push(collector.stop, upstream.stop);
  const gate = await startWith([{ prefix: "/a", targets: [upstream.url] }], {
    otlpEndpoint: collector.url,
  });
  const trace = "0af7651916cd43dd8448eb211c80319c";
  const sent = await ask(gate.port, "/a/b", {
    headers: { traceparent: `00-${trace}-b7ad6b7169203331-01` },
  });
  await ask(gate.port, "/a/b", {
    headers: { traceparent: `00-${"1".repeat(32)}-b7ad6b7169203331-00` },
  });
  const drained = gate.hear("drained");
  gate.send({ type: "drain", deadlineMs: 1_000 });
  await drained;
  const text = bodies.join("\n");
  const spanId = sent.body.split("-")[2]!;
  assert.ok(text.includes(trace) && text.includes(spanId) && text.includes("b7ad6b7169203331"));
  assert.ok(
    text.includes('"GET /a"') &&
      text.includes("platform.upstream_ms") &&
      text.includes("http.route"),
  );
  assert.ok(!text.includes("1".repeat(32)));
});

test("connections beyond the limit get 503, probes are answered, and freed connections are used", async () => {
  const upstream = await startUpstream((_request, response) => response.end("ok"));
  stops.push(upstream.stop);
  const limits = { ...LIMITS_DEFAULT, connectionsMax: 3, connectionsPerAddressMax: 1_000 };
  const gate = await startWith([{ targets: [upstream.url] }], { limits });
  const held: Socket[] = [];
  for (let at = 0; at < 3; at++) {
    const socket = connect(gate.port, "127.0.0.1");
    stops.push(() => socket.destroy());
    await once(socket, "connect");
    socket.write("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    await once(socket, "data");
    held.push(socket);
  }
  const shed = await ask(gate.port, "/");
  assert.deepEqual([shed.status, shed.headers["retry-after"]], [503, "1"]);
  assert.equal((JSON.parse(shed.body) as { code: string }).code, "overloaded");
  assert.equal((await ask(gate.port, "/healthz")).status, 200);
  assert.equal(gate.metrics.readCounter("shed"), 1);
  held[0]!.destroy();
  let answer = await ask(gate.port, "/");
  for (let round = 0; answer.status === 503 && round < 1_000; round++) {
    // The connection that was just refused must also be closed before a new one is accepted.
    await new Promise((resolve) => setTimeout(resolve, 20));
    answer = await ask(gate.port, "/");
  }
  assert.equal(answer.status, 200);
});

test("malformed requests are refused, counted, and never reach an upstream", async () => {
  let asked = 0;
  const upstream = await startUpstream((_request, response) => {
    asked++;
    response.end("ok");
  });
  stops.push(upstream.stop);
  const gate = await startWith([{ targets: [upstream.url] }]);
  const payloads = [
    "GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "GET / HTTP/1.1\r\n\r\n",
    "GET  / HTTP/1.1\r\nHost: a\r\n\r\n",
    "GET / HTTP/1.1\r\nHost : a\r\n\r\n",
    "garbage\r\n\r\n",
  ];
  for (const payload of payloads) {
    assert.match(await sendRaw(gate.port, payload), /^HTTP\/1\.1 4\d\d /, payload);
  }
  assert.equal(asked, 0);
  assert.equal(gate.metrics.readCounter("badRequests"), payloads.length);
});
