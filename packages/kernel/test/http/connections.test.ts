// Clients that do not read, do not send, or open too many connections: resources are bounded, and others are served.
import assert from "node:assert/strict";
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { test, type TestContext } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { listenHttp, type HttpListener, type ListenOptions } from "@platform/kernel/http";
import { MetricRegistry } from "@platform/kernel/metrics";
import { OutgoingBudget } from "@platform/kernel/sockets";
import { waitFor } from "@platform/testing/wait";

const MIB = 1_048_576;
const BIG = Buffer.alloc(8 * MIB, "a");
const TIMEOUT = { timeout: 60_000 };

test(
  "unread responses are bounded in total, and their clients are disconnected",
  TIMEOUT,
  async (t) => {
    const metrics = new MetricRegistry();
    const outgoing = new OutgoingBudget(32 * MIB);
    const listener = await listen(t, { outgoing, metrics });
    const sockets = Array.from({ length: 100 }, () => open(t, listener, "GET /big HTTP/1.1"));
    let peak = 0;
    await waitFor(() => {
      peak = Math.max(peak, outgoing.heldBytes);
      return sockets.some((socket) => isOver(socket)) && !outgoing.isFull;
    });
    // The last started response may exceed the budget.
    assert.ok(peak > 32 * MIB && peak <= 42 * MIB, `${peak} bytes were held`);
    const answer = await fetch(`${listener.url}/small`);
    assert.equal(await answer.text(), "small");
    assert.match(await read(metrics), /clients_dropped_total\{reason="over_budget"\} [1-9]/);
  },
);

test("probes and metrics respond while the budget is exhausted", TIMEOUT, async (t) => {
  const outgoing = new OutgoingBudget();
  const listener = await listen(t, { outgoing });
  open(t, listener, "GET /big HTTP/1.1");
  await waitFor(() => outgoing.heldBytes > 0);
  await sleep(200);
  outgoing.bytesMax = outgoing.heldBytes;
  const ask = async (path: string): Promise<number> => {
    const answer = await fetch(listener.url + path);
    await answer.text();
    return answer.status;
  };
  for (const path of ["/healthz", "/readyz", "/metrics", "/metrics?name=a"]) {
    assert.equal(await ask(path), 200, path);
  }
  for (const path of ["/small", "/healthz/a", "/a?/healthz"])
    assert.equal(await ask(path), 503, path);
  assert.ok(outgoing.isFull);
});

test("pipelined requests are not handled while responses are unread", TIMEOUT, async (t) => {
  let begun = 0;
  const outgoing = new OutgoingBudget();
  const listener = await listen(t, { outgoing, onBegun: () => begun++ });
  const socket = open(t, listener, "GET /big HTTP/1.1", 50);
  await waitFor(() => begun > 0 && outgoing.heldBytes > 0);
  await sleep(300);
  assert.equal(begun, 1);
  assert.ok(outgoing.heldBytes <= BIG.length + 1_000);
  // Once the client reads, all are handled in order.
  let bytes = 0;
  socket.on("data", (chunk: Buffer) => (bytes += chunk.length));
  socket.resume();
  await waitFor(() => bytes > 50 * BIG.length);
  assert.equal(begun, 50);
});

test("a connection with too many pipelined requests is closed", TIMEOUT, async (t) => {
  const metrics = new MetricRegistry();
  const listener = await listen(t, { metrics });
  const socket = open(t, listener, "GET /big HTTP/1.1", 500);
  await waitFor(() => isOver(socket));
  assert.match(await read(metrics), /clients_dropped_total\{reason="pipelined"\} 1/);
});

test("a client that does not read is disconnected, an idle stream is not", TIMEOUT, async (t) => {
  const listener = await listen(t, { writeStallMs: 1_500 });
  const reader = open(t, listener, "GET /stream HTTP/1.1");
  reader.resume();
  const stalled = open(t, listener, "GET /big HTTP/1.1");
  await waitFor(() => isOver(stalled));
  await sleep(2_500);
  assert.ok(!isOver(reader));
});

test("a body that arrives too slowly is rejected", TIMEOUT, async (t) => {
  const metrics = new MetricRegistry();
  const requestBodyPace = { bytesMin: 1_000, windowMs: 2_000 };
  const listener = await listen(t, { requestBodyPace, metrics });
  const socket = open(t, listener, "POST /body HTTP/1.1\r\nContent-Length: 100000");
  let text = "";
  socket.setEncoding("latin1").on("data", (chunk: string) => (text += chunk));
  // Bytes are always under way, also at the moment of the answer.
  const trickle = setInterval(() => socket.write("a"), 5);
  t.after(() => clearInterval(trickle));
  await once(socket, "close");
  assert.match(text, /^HTTP\/1\.1 408 /);
  assert.match(await read(metrics), /clients_dropped_total\{reason="slow_body"\} 1/);
});

test("connections are limited per address and in total", TIMEOUT, async (t) => {
  const metrics = new MetricRegistry();
  const listener = await listen(t, {
    connectionsMax: 3,
    connectionsPerAddressMax: 2,
    metrics,
  });
  const own = [1, 2, 3].map(() => open(t, listener, "GET /stream HTTP/1.1"));
  await waitFor(() => isOver(own[2]!));
  assert.ok(!isOver(own[0]!) && !isOver(own[1]!));
  const other = open(t, listener, "GET /stream HTTP/1.1", 1, "127.0.0.2");
  other.resume();
  await once(other, "data");
  const surplus = open(t, listener, "GET /stream HTTP/1.1", 1, "127.0.0.3");
  await waitFor(() => isOver(surplus));
  const text = await read(metrics);
  assert.match(text, /connections_refused_total\{bound="address"\} 1/);
  assert.match(text, /connections_refused_total\{bound="all"\} 1/);
  assert.match(text, /platform_http_connections 3/);
  own[0]!.destroy();
  while (!(await read(metrics)).includes("platform_http_connections 2")) await sleep(20);
  const next = open(t, listener, "GET /stream HTTP/1.1", 1, "127.0.0.3");
  next.resume();
  await once(next, "data");
});

async function listen(
  t: TestContext,
  { onBegun, ...options }: Partial<ListenOptions> & { onBegun?: () => void },
): Promise<HttpListener> {
  const listener = await listenHttp({
    address: { host: "127.0.0.1", port: 0 },
    fetch: async (request) => new Response(await request.text()),
    intercept: ({ url }, response) => {
      if (url === "/body") return false;
      onBegun?.();
      if (url === "/big") response.end(BIG);
      else if (url === "/stream") response.write("begun");
      else response.end("small");
      return true;
    },
    ...options,
  });
  t.after(() => listener.close(0));
  return listener;
}

/** Sends a request repeatedly without reading. */
function open(
  t: TestContext,
  { port }: HttpListener,
  head: string,
  count = 1,
  localAddress = "127.0.0.1",
): Socket {
  const socket = connect({ port: port!, host: "127.0.0.1", localAddress });
  socket.on("error", () => undefined);
  socket.write(`${head}\r\nHost: a\r\n\r\n`.repeat(count));
  t.after(() => socket.destroy());
  return socket;
}

// A socket that is not read detects its end only on a write.
function isOver(socket: Socket): boolean {
  if (!socket.destroyed && !socket.connecting) socket.write("\r\n");
  return socket.destroyed;
}

async function read(metrics: MetricRegistry): Promise<string> {
  return await metrics.render();
}
