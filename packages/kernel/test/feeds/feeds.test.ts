// The admin feeds over HTTP and WebSocket: figures, conditions, changes, access, bounds.
import assert from "node:assert/strict";
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { test, type TestContext } from "node:test";
import { WebSocket } from "ws";
import { PlatformError } from "@platform/kernel/errors";
import { AdminFeeds, LIVE_PATH } from "@platform/kernel/feeds";
import { HealthRegistry } from "@platform/kernel/health";
import { createApi, listenHttp, type Guard } from "@platform/kernel/http";
import { createIdSource } from "@platform/kernel/ids";
import { createLogger } from "@platform/kernel/log";
import { MetricRegistry } from "@platform/kernel/metrics";
import { systemClock } from "@platform/kernel/time";
import { createTracer } from "@platform/kernel/trace";

const service = "demo";

/** Tokens: the operator, users with the scope, an administrator of the service, a user who has only the role. */
const guard: Guard = ({ headers }) => {
  const user = (scope: string) =>
    ({ kind: "user", claims: { exp: 0, scope: [scope], roles: ["admin"], all: {} } }) as const;
  switch (headers.get("authorization")) {
    case "Bearer operator":
      return { kind: "operator" };
    case "Bearer reader":
      return user("demo:read");
    case "Bearer administrator":
      return user("demo:admin");
    case "Bearer writer":
      return user("demo:write");
    default:
      throw new PlatformError("unauthorized", "A bearer token is required.");
  }
};

async function serve(t: TestContext) {
  const clock = systemClock;
  const logger = createLogger({ service, level: "error", format: "json", write: () => undefined });
  const health = new HealthRegistry({ service, version: "1", reuseMs: 0 });
  health.setState("ready");
  const registry = new MetricRegistry();
  const values = { level: 1, isDown: false, warning: undefined as string | undefined, long: "" };
  health.addCheck("disk", () => (values.isDown ? "no space left" : undefined));
  health.addWarning("log", () => values.warning);
  const feeds = new AdminFeeds({
    service,
    version: "1",
    figures: [{ name: "level", unit: "", title: "Level", kind: "gauge", read: () => values.level }],
    conditions: [
      () =>
        values.long === ""
          ? []
          : [{ id: "long", level: "warning", title: values.long, detail: "", href: "/ui/" }],
    ],
    registry,
    health,
    guard,
    clock,
    logger,
  });
  const api = createApi({
    service,
    version: "1",
    routes: feeds.createRoutes(),
    guard,
    health,
    metrics: registry,
    logger,
    tracer: createTracer({ ids: createIdSource(), clock }),
    clock,
  });
  const listener = await listenHttp({
    address: { host: "127.0.0.1", port: 0 },
    fetch: (request, bindings) => api.fetch(request, bindings),
    onUpgrade: feeds.onUpgrade,
  });
  t.after(async () => {
    await feeds.close();
    await listener.close(0);
  });
  const get = async (path: string, token = "operator") => {
    const headers = { authorization: `Bearer ${token}` };
    const answer = await fetch(`${listener.url}${path}`, { headers });
    return { status: answer.status, body: JSON.parse(await answer.text()) };
  };
  return { feeds, values, get, port: listener.port!, url: listener.url };
}

/** Members of any type, as `JSON.parse` returns them. */
type Message = Record<string, ReturnType<typeof JSON.parse>>;

class LiveClient {
  readonly messages: Message[] = [];
  readonly socket: WebSocket;

  constructor(url: string, token: string, headers: Record<string, string> = {}) {
    this.socket = new WebSocket(`${url.replace("http", "ws")}${LIVE_PATH}`, {
      headers: { authorization: `Bearer ${token}`, ...headers },
    });
    this.socket.on("message", (bytes: Buffer) => this.messages.push(JSON.parse(bytes.toString())));
    this.socket.on("error", () => undefined);
  }

  async wait(type: string): Promise<Message> {
    for (;;) {
      const found = this.messages.findIndex((message) => message["type"] === type);
      if (found !== -1) return this.messages.splice(found, 1)[0]!;
      await once(this.socket, "message", { signal: AbortSignal.timeout(10_000) });
    }
  }

  async waitForRefusal(): Promise<number> {
    const [, response] = await once(this.socket, "unexpected-response");
    return (response as { statusCode: number }).statusCode;
  }
}

test("figures of requests are those of users, not of probes, the console and services that repeat theirs", async (t) => {
  const { feeds, url } = await serve(t);
  const read = async (): Promise<unknown[]> => {
    const headers = { authorization: "Bearer operator" };
    const answer = await fetch(`${url}/api/v1/admin/series`, { headers });
    const { values } = (await answer.json()) as { values: Record<string, number | null> };
    return ["requests", "errors", "latency_p99"].map((name) => values[name]);
  };
  // The API has registered its metrics after the feeds.
  feeds.sample();
  for (const path of ["/healthz", "/readyz", "/metrics", "/ui/overview", "/console/session"]) {
    await (await fetch(`${url}${path}`)).text();
  }
  await (await fetch(`${url}/api/v1/orders`, { headers: { "x-platform-own": "1" } })).text();
  feeds.sample();
  assert.deepEqual(await read(), [0, 0, null]);

  await (await fetch(`${url}/api/v1/orders`)).text();
  feeds.sample();
  const [requests, errors, latency] = await read();
  assert.ok(Number(requests) > 0);
  assert.equal(errors, 0);
  assert.ok(Number(latency) > 0);
});

test("series have the requested figures, and the list names all of them", async (t) => {
  const { feeds, values, get } = await serve(t);
  feeds.sample();
  values.level = 4;
  await get("/api/v1/orders");
  feeds.sample();
  const list = await get("/api/v1/admin/series");
  const names = list.body.figures.map(({ name }: { name: string }) => name);
  for (const name of ["cpu", "memory", "requests", "errors", "latency_p99", "level"]) {
    assert.ok(names.includes(name), name);
  }
  assert.equal(list.body.values.level, 4);
  assert.ok(list.body.values.memory > 1_000_000);
  assert.ok(list.body.values.requests > 0);
  const series = await get("/api/v1/admin/series?names=level,cpu&step=10");
  assert.equal(series.body.step, 10);
  assert.deepEqual(
    series.body.series.map(({ name }: { name: string }) => name),
    ["level", "cpu"],
  );
  for (const query of ["names=nope", "names=level&step=7", "names=level&from=x", "names="]) {
    const refused = await get(`/api/v1/admin/series?${query}`);
    assert.equal(refused.status, 400, query);
    assert.equal(refused.body.code, "validation_failed", query);
  }
  const many = Array.from({ length: 51 }, (_, index) => `f${index}`).join(",");
  assert.match((await get(`/api/v1/admin/series?names=${many}`)).body.detail, /at most 50/);
});

test("failing checks, warnings and own conditions need attention, the critical ones first", async (t) => {
  const { values, get } = await serve(t);
  assert.deepEqual((await get("/api/v1/admin/attention")).body, []);
  values.warning = "2 damaged ranges";
  values.long = "The certificate expires in 3 days";
  const first = (await get("/api/v1/admin/attention")).body;
  values.isDown = true;
  const { body } = await get("/api/v1/admin/attention");
  assert.deepEqual(
    body.map(({ id, level, detail }: Record<string, string>) => [id, level, detail]),
    [
      ["check:disk", "critical", "no space left"],
      ["long", "warning", ""],
    ],
  );
  assert.equal(first.length, 2);
  assert.equal(body[1].since, first.find(({ id }: { id: string }) => id === "long").since);
  values.isDown = false;
  values.warning = undefined;
  values.long = "";
  assert.deepEqual((await get("/api/v1/admin/attention")).body, []);
});

test("a live client is greeted, and receives figures, conditions and changes", async (t) => {
  const { feeds, values, url } = await serve(t);
  feeds.noteChange({ title: "route /api added", actor: "ada" });
  const client = new LiveClient(url, "reader");
  const hello = await client.wait("hello");
  assert.equal(hello["service"], service);
  assert.equal(hello["changes"][0].title, "route /api added");
  feeds.sample();
  assert.equal((await client.wait("figures"))["values"]["level"], 1);
  values.isDown = true;
  await feeds.refresh();
  assert.equal((await client.wait("attention"))["items"][0]!["id"], "check:disk");
  await feeds.refresh();
  feeds.noteChange({ title: "x".repeat(1_000) });
  const change = await client.wait("change");
  assert.equal(change["title"].length, 256);
  assert.deepEqual(client.messages, [], "unchanged conditions are not sent again");
  const closed = once(client.socket, "close");
  await feeds.close();
  assert.equal((await closed)[0], 1001);
});

test("callers without the scope are refused, over HTTP and WebSocket, and so are other sites", async (t) => {
  const { get, url } = await serve(t);
  for (const path of ["series", "attention", "live"]) {
    assert.equal((await get(`/api/v1/admin/${path}`, "writer")).status, 403, path);
    assert.equal((await get(`/api/v1/admin/${path}`, "nobody")).status, 401, path);
  }
  assert.equal((await get("/api/v1/admin/live")).status, 426);
  assert.equal(await new LiveClient(url, "writer").waitForRefusal(), 403);
  assert.equal(await new LiveClient(url, "nobody").waitForRefusal(), 401);
  const foreign = { origin: "https://evil.example" };
  assert.equal(await new LiveClient(url, "reader", foreign).waitForRefusal(), 403);
  const other = new WebSocket(`${url.replace("http", "ws")}/elsewhere`);
  other.on("error", () => undefined);
  const [, response] = await once(other, "unexpected-response");
  assert.equal((response as { statusCode: number }).statusCode, 404);
});

test("at most 32 clients are connected, and one that does not read is disconnected", async (t) => {
  const { feeds, values, url, port } = await serve(t);
  const stuck = await openRaw(t, port);
  stuck.pause();
  values.long = "y".repeat(200_000);
  for (let round = 0; round < 200 && !stuck.destroyed; round += 1) {
    values.long = `${round}${values.long}`;
    await feeds.refresh();
    await new Promise(setImmediate);
  }
  stuck.resume();
  await once(stuck, "close", { signal: AbortSignal.timeout(10_000) });
  const clients = Array.from({ length: 32 }, () => new LiveClient(url, "reader"));
  for (const client of clients) await client.wait("hello");
  assert.equal(await new LiveClient(url, "reader").waitForRefusal(), 503);
  const left = once(clients[0]!.socket, "close");
  clients[0]!.socket.close();
  await left;
  await new LiveClient(url, "reader").wait("hello");
});

async function openRaw(t: TestContext, port: number): Promise<Socket> {
  const socket = connect(port, "127.0.0.1");
  t.after(() => socket.destroy());
  socket.on("error", () => undefined);
  socket.write(
    `GET ${LIVE_PATH} HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n` +
      "Authorization: Bearer reader\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
  );
  await once(socket, "data");
  return socket;
}
