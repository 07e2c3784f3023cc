// Routing of a real worker: forwarded requests, their fields, and responses of the gateway itself.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { waitFor } from "@platform/testing/wait";
import {
  ask,
  type GateWorker,
  sendRaw,
  startGate,
  startRawUpstream,
  startUpstream,
} from "./gate-worker.ts";

interface Echo {
  name: string;
  method: string;
  url: string;
  headers: Record<string, string>;
  body: string;
}
const stops: (() => unknown)[] = [];
let gate: GateWorker;

async function startEcho(name: string): Promise<string> {
  const upstream = await startUpstream((request, response) => {
    let body = "";
    request.on("data", (chunk) => (body += String(chunk)));
    request.on("end", () => {
      const { method, url, headers } = request;
      response.setHeader("content-type", "application/json");
      response.end(JSON.stringify({ name, method, url, headers, body }));
    });
  });
  stops.push(upstream.stop);
  return upstream.url;
}

async function echo(path: string, options: Parameters<typeof ask>[2] = {}): Promise<Echo> {
  const answer = await ask(gate.port, path, options);
  assert.equal(answer.status, 200, answer.body);
  return JSON.parse(answer.body) as Echo;
}

before(async () => {
  const [api, files, raw, hosted] = await Promise.all(
    ["api", "files", "raw", "hosted"].map(startEcho),
  );
  const garbage = await startRawUpstream((socket) => socket.end("NOT HTTP\r\n\r\n"));
  const silent = await startRawUpstream(() => undefined);
  const mute = await startRawUpstream((socket) => socket.once("data", () => socket.destroy()));
  stops.push(garbage.stop, silent.stop, mute.stop);
  const timeouts = { connectMs: 1_000, responseHeadMs: 100, idleMs: 1_000, totalMs: 0 };
  gate = await startGate(
    [
      { prefix: "/api", targets: [api!] },
      { prefix: "/strip/", stripPrefix: true, hostHeader: "target", targets: [`${files!}/base/`] },
      { prefix: "/s3", rawPath: true, targets: [raw!] },
      { prefix: "/small", bodyBytesMax: 10, targets: [api!] },
      { prefix: "/", host: "Hosted.example", targets: [hosted!] },
      { prefix: "/down", targets: ["http://127.0.0.1:1"] },
      { prefix: "/garbage", targets: [garbage.url] },
      { prefix: "/silent", targets: [silent.url], timeouts },
      { prefix: "/mute", targets: [mute.url] },
      { prefix: "/rabbit", rawPath: true, stripPrefix: true, targets: [`${raw!}/base`] },
      { prefix: "/npm/", rawPath: true, stripPrefix: true, targets: [raw!] },
    ],
    { trustedProxies: ["127.0.0.2"] },
  );
  stops.push(() => gate.stop());
});
after(async () => {
  for (const stop of stops) await stop();
});

test("path, query and body arrive as sent", async () => {
  const got = await echo("/api/x?q=%2F..//&b", { method: "POST", body: "hello" });
  assert.deepEqual(
    [got.name, got.method, got.url, got.body],
    ["api", "POST", "/api/x?q=%2F..//&b", "hello"],
  );
});

test("other paths are matched and forwarded in normalized form", async () => {
  assert.equal((await echo("/x/..//%61pi/./y?z")).url, "/api/y?z");
});

test("strip_prefix, the target's path and its Host", async () => {
  const got = await echo("/strip/a/b?c");
  assert.equal(got.url, "/base/a/b?c");
  assert.match(got.headers["host"] ?? "", /^127\.0\.0\.1:\d+$/);
  assert.notEqual(got.headers["host"], `127.0.0.1:${gate.port}`);
  assert.match(got.headers["x-forwarded-host"] ?? "", new RegExp(`:${gate.port}$`));
});

test("a raw route forwards the path as sent, unless it climbs above the prefix", async () => {
  assert.equal((await echo("/s3/a%2Fb//c%20d")).url, "/s3/a%2Fb//c%20d");
  const climbing = await ask(gate.port, "/s3/a%2F..%2F..%2F..%2Fb");
  assert.equal(climbing.status, 400);
});

test("a raw route with strip_prefix forwards the rest of the path as sent", async () => {
  assert.equal(
    (await echo("/rabbit/api/queues/%2F/a%2fb?q=%2F")).url,
    "/base/api/queues/%2F/a%2fb?q=%2F",
  );
  assert.equal((await echo("/rabbit")).url, "/base");
  assert.equal((await echo("/npm/@scope%2fname")).url, "/@scope%2fname");
  assert.equal((await echo("/npm/")).url, "/");
  assert.equal((await echo("/npm/a%20b/./c")).url, "/a%20b/./c");
  for (const [path, detail] of [
    ["/rabbit/..%2f..%2fx", /climbs/],
    ["/rabbit/%2e%2e/s3/x", /raw_path|climbs/],
    ["/%72abbit/api", /begin with the prefix/],
    ["//rabbit/api", /begin with the prefix/],
    ["/api/a%2Fb", /raw_path/],
  ] as const) {
    const { status, body } = await ask(gate.port, path);
    assert.equal(status, 400, path);
    assert.match((JSON.parse(body) as { detail: string }).detail, detail);
  }
});

test("a host limits a route", async () => {
  assert.equal(
    (await echo("/anything", { headers: { host: "hosted.EXAMPLE:80" } })).name,
    "hosted",
  );
  assert.equal((await echo("/api", { headers: { host: "hosted.example" } })).name, "api");
  assert.equal((await ask(gate.port, "/anything")).status, 502);
});

test("a request without a route gets 502 route_not_found as a problem document with the trace ID", async () => {
  const trace = "0af7651916cd43dd8448eb211c80319c";
  const answer = await ask(gate.port, "/nowhere?secret=1", {
    headers: { traceparent: `00-${trace}-b7ad6b7169203331-01` },
  });
  assert.equal(answer.status, 502);
  assert.equal(answer.headers["content-type"], "application/problem+json");
  const problem = JSON.parse(answer.body) as Record<string, unknown>;
  assert.equal(problem["code"], "route_not_found");
  assert.equal(problem["trace_id"], trace);
  assert.equal(problem["instance"], "/nowhere");
});

test("ambiguous paths are 400 and are not forwarded", async () => {
  for (const path of [
    "/api/%2e%2e/%2e%2e/x",
    "/api/a%2fb",
    "/api/a%5cb",
    "/api/%00",
    "/api/..;/x",
  ]) {
    const answer = await ask(gate.port, path);
    assert.equal(answer.status, 400, path);
    assert.equal((JSON.parse(answer.body) as { code: string }).code, "bad_request");
  }
});

test("the client's own forwarding and identity fields are replaced, aliases included", async () => {
  const { headers } = await echo("/api", {
    headers: {
      "X-Forwarded-For": "6.6.6.6",
      X_Forwarded_For: "6.6.6.6",
      "X-Forwarded-Proto": "https",
      Forwarded: "for=6.6.6.6",
      "X-Real-Ip": "6.6.6.6",
      "X-User-Id": "root",
      "X-User-Roles": "admin",
      "X-Tenant-Id": "other",
      X_User_Id: "root",
      "x-platform-gate-secret": "guess",
      "X-Platform-Gate-Caller": "operator",
    },
  });
  assert.equal(headers["x-forwarded-for"], "127.0.0.1");
  assert.equal(headers["x-forwarded-proto"], "http");
  assert.equal(headers["x-forwarded-port"], String(gate.port));
  assert.match(headers["forwarded"] ?? "", /^for=127\.0\.0\.1;host="127\.0\.0\.1:\d+";proto=http$/);
  const names = Object.keys(headers).map((name) => name.replaceAll("_", "-"));
  for (const name of [
    "x-real-ip",
    "x-user-id",
    "x-user-roles",
    "x-tenant-id",
    "x-platform-gate-secret",
    "x-platform-gate-caller",
  ]) {
    assert.equal(names.includes(name), false, name);
  }
  assert.equal(names.filter((name) => name === "x-forwarded-for").length, 1);
});

test("hop-by-hop fields and those named by Connection are not forwarded", async () => {
  const answer = await sendRaw(
    gate.port,
    "GET /api HTTP/1.1\r\nHost: a\r\nConnection: close, X-Secret\r\nX-Secret: 1\r\nTE: gzip\r\nKeep-Alive: 5\r\nX-Kept: 1\r\n\r\n",
  );
  const { headers } = JSON.parse(answer.slice(answer.indexOf("\r\n\r\n") + 4)) as Echo;
  for (const name of ["x-secret", "te", "keep-alive"]) assert.equal(headers[name], undefined, name);
  assert.equal(headers["x-kept"], "1");
  assert.equal(headers["via"], "1.1 platform-gate");
});

test("a body that is too large is 413, by its length and while streaming", async () => {
  assert.equal((await echo("/small", { method: "POST", body: "0123456789" })).body, "0123456789");
  const announced = await ask(gate.port, "/small", { method: "POST", body: "0123456789x" });
  assert.equal(announced.status, 413);
  assert.equal((JSON.parse(announced.body) as { code: string }).code, "payload_too_large");
  const streamed = await sendRaw(
    gate.port,
    "POST /small HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n6\r\n012345\r\n6\r\n012345\r\n0\r\n\r\n",
    "payload_too_large",
  );
  assert.match(streamed, /^HTTP\/1\.1 413 /);
});

test("refused, malformed, timed out and closed upstream responses have different codes", async () => {
  const table: [string, number, string][] = [
    ["/down", 502, "upstream_unreachable"],
    ["/garbage", 502, "upstream_invalid_response"],
    ["/mute", 502, "upstream_unreachable"],
    ["/silent", 504, "upstream_timeout"],
  ];
  await Promise.all(
    table.map(async ([path, status, code]) => {
      const answer = await ask(gate.port, path, { method: "POST" });
      assert.equal(answer.status, status, path);
      assert.equal((JSON.parse(answer.body) as { code: string }).code, code, path);
    }),
  );
});

test("workers answer GET and HEAD of probes, and readiness follows the control plane", async () => {
  assert.deepEqual(JSON.parse((await ask(gate.port, "/healthz")).body), {
    status: "UP",
    service: "gate",
    version: "1.0.0",
  });
  assert.equal((await ask(gate.port, "/healthz", { method: "HEAD" })).status, 200);
  const wrong = await ask(gate.port, "/healthz", { method: "POST" });
  assert.deepEqual([wrong.status, wrong.headers["allow"]], [405, "GET, HEAD"]);
  assert.equal((await ask(gate.port, "/readyz")).status, 503);
  gate.send({ type: "readiness", up: true, checks: {} });
  assert.equal((await ask(gate.port, "/readyz")).status, 200);
  gate.send({ type: "readiness", up: false, checks: { store: "unreachable" } });
  const down = await ask(gate.port, "/readyz");
  assert.equal(down.status, 503);
  assert.deepEqual(JSON.parse(down.body).checks, {
    store: { status: "DOWN", detail: "unreachable" },
  });
});

test("many requests on one connection, pipelined, are answered in order", async () => {
  const requests = Array.from(
    { length: 20 },
    (_, at) => `GET /api/${at} HTTP/1.1\r\nHost: a\r\n\r\n`,
  );
  const text = await sendRaw(gate.port, requests.join(""), "/api/19");
  const urls = [...text.matchAll(/"url":"([^"]+)"/g)].map((match) => match[1]);
  assert.deepEqual(
    urls,
    Array.from({ length: 20 }, (_, at) => `/api/${at}`),
  );
});

test("requests are counted by route, method and status, and no request stays active", async () => {
  const countSeries = () => [...gate.metrics.readSeries()].reduce((sum, one) => sum + one.count, 0);
  // The worker counts an answer on its own thread, a moment after the client has it.
  await waitFor(() => gate.metrics.readCounter("requests") === countSeries());
  const series = [...gate.metrics.readSeries()];
  const api = series.find(
    (one) => one.metricsId === 1 && one.method === "GET" && one.status === 200,
  );
  assert.ok((api?.count ?? 0) >= 20);
  assert.ok(series.some((one) => one.metricsId === 0 && one.status === 502));
  assert.ok(series.some((one) => one.metricsId === 8 && one.status === 504));
  assert.ok(series.some((one) => one.metricsId === 4 && one.status === 413));
  for (let slot = 0; slot < 20; slot++) assert.equal(gate.active.sum(slot), 0);
  const others = gate.logs.filter(({ msg }) => msg !== "request refused");
  assert.deepEqual(others, []);
});

test("Max-Forwards of OPTIONS and TRACE is decremented, and at 0 the gateway responds", async () => {
  const forward = async (method: string, sent: string): Promise<string | undefined> =>
    (await echo("/api", { method, headers: { "Max-Forwards": sent } })).headers["max-forwards"];
  assert.equal(await forward("OPTIONS", "7"), "6");
  assert.equal(await forward("TRACE", "1"), "0");
  assert.equal(await forward("GET", "7"), "7");
  assert.equal(await forward("OPTIONS", "many"), "many");
  const last = { "Max-Forwards": "0" };
  assert.equal((await ask(gate.port, "/api", { method: "OPTIONS", headers: last })).status, 204);
  assert.equal((await ask(gate.port, "/api", { method: "TRACE", headers: last })).status, 501);
});

test("a host with a trailing dot is the same host", async () => {
  const hosted = await echo("/x", { headers: { Host: "hosted.example.:80" } });
  assert.equal(hosted.name, "hosted");
});
