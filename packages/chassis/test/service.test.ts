// A service put together by the chassis: its listener, its operator's side, and the order in which it stops.
import assert from "node:assert/strict";
import { once } from "node:events";
import { test, type TestContext } from "node:test";
import { createEmbeddedLifecycle } from "@platform/kernel/lifecycle";
import { createLogger } from "@platform/kernel/log";
import { WebSocket } from "ws";
import { openService } from "../src/index.ts";

const TOKEN = "operator-token-of-the-test";

function open(t: TestContext, config = {}) {
  const lines: string[] = [];
  const log = createLogger({ service: "test", format: "json", write: (line) => lines.push(line) });
  const lifecycle = createEmbeddedLifecycle(log);
  // A test may have closed it.
  t.after(() => lifecycle.close().catch(() => undefined));
  const base = { name: "pulse", version: "1.2.3", log, lifecycle, operatorToken: TOKEN };
  return { service: openService({ ...base, config }), lifecycle, lines };
}

async function serve({ service }: ReturnType<typeof open>) {
  const operation = service.openOperation({
    console: { features: ["topics"], credentials: "token" },
    figures: [{ name: "answers", unit: "", title: "Answers", kind: "gauge", read: () => 42 }],
    backup: { dataFormat: 1, takeSnapshot: () => Promise.reject(new Error("not asked for")) },
  });
  const api = service.createApi({ title: "Test", operation, routes: [] });
  const address = { host: "127.0.0.1", port: 0 };
  const { onUpgrade } = operation.feeds;
  return service.serve({ ...api, address, setting: "--addr", onUpgrade });
}

test("probes, feeds, console and backups are there, and callers are identified", async (t) => {
  const opened = open(t);
  const { url } = await serve(opened);
  assert.deepEqual(
    opened.lifecycle.listeners.map(({ name, host }) => [name, host]),
    [["http", "127.0.0.1"]],
  );
  const ask = async (path: string, token?: string): Promise<number> => {
    const headers: Record<string, string> =
      token === undefined ? {} : { authorization: `Bearer ${token}` };
    return (await fetch(url + path, { headers })).status;
  };
  assert.equal(await ask("/readyz"), 503);
  opened.service.setReady();
  assert.equal(await ask("/readyz"), 200);
  assert.equal(await ask("/console/config"), 200);
  assert.equal(await ask("/api/v1/admin/series"), 401);
  assert.equal(await ask("/api/v1/admin/series", TOKEN), 200);
  assert.equal(await ask("/api/v1/admin/backup", TOKEN), 403, "no backup_token is configured");
});

test("a drain ends feeds, listeners, parts, telemetry and database in this order", async (t) => {
  const opened = open(t);
  const { lifecycle, service } = opened;
  const { url } = await serve(opened);
  service.setReady();
  const order: string[] = [];
  const note = (name: string) => () => void order.push(name);
  // Registered in another order than that of the drain.
  lifecycle.onDrain("streams", note("streams"), "streams");
  lifecycle.onDrain("database", note("database"), "database");
  lifecycle.onDrain("first part", note("first part"));
  lifecycle.onDrain("telemetry", note("telemetry"), "telemetry");
  lifecycle.onDrain("second part", note("second part"));
  lifecycle.onDrain(
    "listeners",
    async () => {
      const readiness = await (await fetch(`${url}/readyz`)).json();
      order.push(`listeners while ${JSON.stringify(readiness).includes("draining")}`);
    },
    "listeners",
  );
  const feed = new WebSocket(`${url.replace("http", "ws")}/api/v1/admin/live`, {
    headers: { authorization: `Bearer ${TOKEN}` },
  });
  await once(feed, "message");
  const ended = once(feed, "close");
  await lifecycle.close();
  await ended;
  assert.deepEqual(order, [
    "streams",
    "listeners while true",
    "second part",
    "first part",
    "telemetry",
    "database",
  ]);
  await assert.rejects(fetch(`${url}/healthz`));
});

test("an address in use is named with the setting that changes it", async (t) => {
  const first = open(t);
  const { port } = await serve(first);
  const { service } = open(t);
  const operation = service.openOperation({ figures: [] });
  const api = service.createApi({ operation, routes: [] });
  const address = { host: "127.0.0.1", port: port! };
  await assert.rejects(service.serve({ ...api, address, setting: "--test-addr" }), (error) => {
    assert.match(
      String(error),
      new RegExp(`port ${port} is in use.*choose another with --test-addr`),
    );
    return true;
  });
});

test("a part that does not stop is named, and does not hold the others", async (t) => {
  const { lifecycle, lines } = open(t);
  const order: string[] = [];
  lifecycle.onDrain("good part", () => void order.push("good part"));
  lifecycle.onDrain("bad part", () => Promise.reject(new Error("stuck")));
  await assert.rejects(lifecycle.close());
  assert.deepEqual(order, ["good part"]);
  assert.ok(lines.some((line) => line.includes("stopping failed") && line.includes("bad part")));
});
