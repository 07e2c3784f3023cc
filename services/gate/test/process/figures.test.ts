// Figures of the gateway are those of its users: not those of its own paths, and without the length of streams and downloads.
import assert from "node:assert/strict";
import { createServer } from "node:http";
import { connect } from "node:net";
import { test } from "node:test";
import { waitFor } from "@platform/testing/wait";
import { runtimesOfRules, startGate } from "../fixture/gate-process.ts";
import { readMetric } from "../fixture/metrics.ts";
import { serve } from "../fixture/serve.ts";

const STREAM_MS = 300;

interface Snapshot {
  metrics: { total_requests: number; total_errors: number; request_rate: number };
}

test("own paths have a series of their own, and streams and upgrades no latency", async (context) => {
  const server = createServer((request, response) => {
    if (request.url === "/download") {
      response.writeHead(200, { "Content-Type": "application/zip" });
      response.write("PK");
      setTimeout(() => response.end("end"), STREAM_MS);
      return;
    }
    if (request.url !== "/events") {
      response.end("ok");
      return;
    }
    response.writeHead(200, { "Content-Type": "Text/Event-Stream; charset=utf-8" });
    response.write("data: 1\n\n");
    setTimeout(() => response.end(), STREAM_MS);
  });
  server.on("upgrade", (_request, socket) => {
    socket.write("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n");
    setTimeout(() => socket.end(), STREAM_MS);
  });
  const target = await serve(context, server);
  const gate = await startGate(context, {
    runtime: runtimesOfRules[0]!,
    config: { workers: 1, routes: [{ prefix: "/", target }] },
  });
  const read = async (): Promise<Snapshot["metrics"]> => {
    const answer = await fetch(`${gate.url}/api/v1/admin/console/sync`);
    return ((await answer.json()) as Snapshot).metrics;
  };
  for (const path of ["/healthz", "/readyz", "/api/v1/routes", "/api/docs", "/metrics"]) {
    await (await fetch(`${gate.url}${path}`)).text();
  }
  const before = await read();
  assert.deepEqual([before.total_requests, before.total_errors], [0, 0]);

  await (await fetch(`${gate.url}/page`)).text();
  await (await fetch(`${gate.url}/events`)).text();
  await (await fetch(`${gate.url}/download`)).text();
  await new Promise<void>((resolve, reject) => {
    const socket = connect(gate.port, "127.0.0.1");
    socket
      .on("close", () => resolve())
      .on("error", reject)
      .resume();
    socket.write("GET /socket HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n");
  });
  await waitFor(async () => (await read()).total_requests === 4, "four requests of users");
  const duration = "platform_http_duration_seconds";
  const sum = await readMetric(gate.url, `${duration}_sum`, { route: "/", status: "200" });
  assert.ok(sum < STREAM_MS / 1_000, `${sum} s for a page and the head of a download`);
  const count = (status: string): Promise<number> =>
    readMetric(gate.url, `${duration}_count`, { route: "/", status });
  assert.deepEqual([await count("200"), await count("101")], [2, 0]);
  const requests = "platform_http_requests_total";
  assert.equal(await readMetric(gate.url, requests, { route: "/", status: "200" }), 3);
  assert.equal(await readMetric(gate.url, requests, { route: "/", status: "101" }), 1);
  assert.ok((await readMetric(gate.url, requests, { route: "internal", status: "200" })) >= 5);
});
