// The live metrics' sockets: who is let in, and what happens to a client that does not read.
import assert from "node:assert/strict";
import { createServer } from "node:http";
import { type AddressInfo, connect } from "node:net";
import { type TestContext, test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { WebSocket } from "ws";
import { MetricsStream } from "../../src/telemetry/metrics-stream.ts";
import { MetricsSockets } from "../../src/http/metrics-socket.ts";

async function startSockets(
  context: TestContext,
  readConnections = (): Record<string, number> => ({}),
) {
  const totals = {
    requests: 0,
    errors: 0,
    cacheHits: 0,
    cacheLookups: 0,
    promptsBlocked: 0,
    buckets: [0],
  };
  const clock = { nowMs: 0 };
  const stream = new MetricsStream({
    readTotals: () => ({ ...totals, buckets: [...totals.buckets] }),
    readConnections,
    readBreakers: () => ({}),
    readModels: () => ({ requests: 0, tokens: 0, cacheHits: 0 }),
    readNow: () => new Date(clock.nowMs),
    readMonotonicMs: () => clock.nowMs,
    onError: (error) => {
      throw error;
    },
  });
  const sockets = new MetricsSockets({
    stream,
    clientsMax: 2,
    waitingBytesMax: 1024,
    missedMax: 2,
  });
  const server = createServer();
  server.on("upgrade", (request, socket, head) => sockets.accept(request, socket, head));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  context.after(() => {
    sockets.close();
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  return { stream, sockets, totals, clock, port };
}

async function openClient(context: TestContext, port: number) {
  const socket = new WebSocket(`ws://127.0.0.1:${port}/`);
  context.after(() => socket.terminate());
  const updates: Record<string, unknown>[] = [];
  const arrived: (() => void)[] = [];
  socket.on("message", (data: Buffer) => {
    updates.push(JSON.parse(data.toString()) as Record<string, unknown>);
    for (const tell of arrived.splice(0)) tell();
  });
  const next = (): Promise<void> => new Promise((resolve) => arrived.push(resolve));
  const first = next();
  await new Promise((resolve, reject) => socket.on("open", resolve).on("error", reject));
  await first;
  return { socket, updates, next };
}

test("rates cover the time between two updates", async (context) => {
  const { stream, totals, clock, port } = await startSockets(context);
  const client = await openClient(context, port);
  totals.requests = 30;
  totals.errors = 3;
  totals.buckets = [30];
  clock.nowMs = 1500;
  const told = client.next();
  stream.measure();
  await told;
  const update = client.updates.at(-1) ?? assert.fail();
  assert.deepEqual(
    [update["total_requests"], update["request_rate"], update["error_rate"], update["p50_ms"]],
    [30, 20, 2, 0.25],
  );
});

test("clients beyond the maximum get 503 until another disconnects", async (context) => {
  const { port, sockets } = await startSockets(context);
  const first = await openClient(context, port);
  await openClient(context, port);
  await assert.rejects(openClient(context, port), /503/);
  first.socket.close();
  for (let tries = 0; sockets.size > 1 && tries < 2_000; tries++) await delay(10);
  await openClient(context, port);
  assert.equal(sockets.size, 2);
});

test("a client that does not read misses updates and is disconnected; others get every one", async (context) => {
  const big = Object.fromEntries(
    Array.from({ length: 20_000 }, (_, index) => [`http://upstream-${index}.example:80`, index]),
  );
  const { stream, sockets, port } = await startSockets(context, () => big);
  const reader = await openClient(context, port);
  const silent = connect(port, "127.0.0.1");
  context.after(() => silent.destroy());
  silent.on("error", () => undefined);
  silent.write(
    "GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: MDEyMzQ1Njc4OWFiY2RlZg==\r\n\r\n",
  );
  silent.pause();
  for (let tries = 0; sockets.size < 2 && tries < 2_000; tries++) await delay(10);
  assert.equal(sockets.size, 2);
  let sent = 0;
  while (sockets.size === 2 && sent < 60) {
    const told = reader.next();
    stream.measure();
    sent++;
    await told;
  }
  for (let tries = 0; sockets.size === 2 && tries < 2_000; tries++) await delay(10);
  assert.equal(sockets.size, 1);
  assert.equal(reader.updates.length, sent + 1);
});

test("stopping closes all clients with 1001", async (context) => {
  const { port, sockets } = await startSockets(context);
  const client = await openClient(context, port);
  const closed = new Promise((resolve) => client.socket.on("close", resolve));
  sockets.close();
  assert.equal(await closed, 1001);
});
