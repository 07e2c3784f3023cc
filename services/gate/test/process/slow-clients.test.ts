// The gateway's bounds on clients that send or read slowly, or open many connections, as a process.
import assert from "node:assert/strict";
import { createServer, type RequestListener, type ServerResponse } from "node:http";
import { test, type TestContext } from "node:test";
import { waitFor } from "@platform/testing/wait";
import { runtimes } from "../fixture/gate-process.ts";
import { followMetric, readMetric } from "../fixture/metrics.ts";
import { openClient } from "../fixture/raw-client.ts";
import { serve } from "../fixture/serve.ts";
import { shareGate } from "../fixture/shared-gate.ts";

/** More than the system takes for a client that does not read. */
const LARGE = Buffer.alloc(67_108_864, "x");
const GET = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
const SLOW_BODIES = "platform_gate_slow_bodies_total";
const SLOW_READERS = "platform_gate_slow_readers_total";
const ADDRESS_REFUSED = "platform_gate_address_refused_total";
const BAD_REQUESTS = "platform_gate_bad_requests_total";
const shared = shareGate({ runtime: runtimes[0]!, config: { workers: 1 } });

async function startUpstream(context: TestContext, answer: RequestListener): Promise<string> {
  const server = createServer(answer);
  return await serve(context, server);
}

/** Answers with the length of the body. */
const measureBody: RequestListener = (request, response) => {
  let length = 0;
  request.on("data", (piece: Buffer) => (length += piece.length));
  request.on("end", () => response.end(`${length} bytes`));
  request.on("error", () => undefined);
};

const sendLarge: RequestListener = (_request, response) => {
  response.end(LARGE);
};

function beginPost(path: string, length: number): string {
  return `POST ${path} HTTP/1.1\r\nHost: a\r\nContent-Length: ${length}\r\n\r\n`;
}

test("a client that stops within a body is refused after idle_timeout_ms of its route", async (context) => {
  const target = await startUpstream(context, measureBody);
  const gate = await shared.use({
    idle_timeout_ms: 1_000,
    routes: [
      { prefix: "/", target },
      { prefix: "/patient", target, idle_timeout_ms: 120_000 },
    ],
  });
  const readBadRequests = await followMetric(gate.url, BAD_REQUESTS);
  const patient = await openClient(context, gate.port);
  patient.send(`${beginPost("/patient", 4)}ab`);
  const stopped = await openClient(context, gate.port);
  stopped.send(`${beginPost("/", 4)}ab`);
  assert.match(await stopped.expect(/\}$/), /^HTTP\/1\.1 408 .*"code":"request_timeout"/s);
  await stopped.closed();
  patient.send("cd");
  await patient.expect(/^HTTP\/1\.1 200 .*4 bytes/s);
  assert.equal(await readBadRequests(), 0);
});

test("a client that reads nothing is disconnected after idle_timeout_ms, and counted", async (context) => {
  const target = await startUpstream(context, sendLarge);
  const config = { idle_timeout_ms: 1_000, routes: [{ prefix: "/", target }] };
  const gate = await shared.use(config);
  const readBadRequests = await followMetric(gate.url, BAD_REQUESTS);
  const readSlowReaders = await followMetric(gate.url, SLOW_READERS);
  const client = await openClient(context, gate.port);
  client.socket.pause();
  client.send(GET);
  await waitFor(async () => (await readMetric(gate.url, "platform_gate_unsent_bytes")) > 0);
  await waitFor(async () => (await readSlowReaders()) === 1);
  client.socket.resume();
  await client.closed();
  assert.ok(client.text().length < LARGE.length);
  await waitFor(async () => (await readMetric(gate.url, "platform_gate_unsent_bytes")) === 0);
  assert.equal(await readBadRequests(), 0);
});

test("a body below body_pace_bytes is refused; one at the pace, and one that the upstream delays, pass", async (context) => {
  const held: (() => void)[] = [];
  const target = await startUpstream(context, (request, response) => {
    if (request.url === "/held") held.push(() => measureBody(request, response));
    else measureBody(request, response);
  });
  const gate = await shared.use({
    body_pace_bytes: 1_000,
    body_pace_window_ms: 2_000,
    max_body_size: 100_000_000,
    routes: [{ prefix: "/", target }],
  });
  const readBadRequests = await followMetric(gate.url, BAD_REQUESTS);
  const readSlowBodies = await followMetric(gate.url, SLOW_BODIES);
  const large = 33_554_432;
  const delayed = await openClient(context, gate.port);
  delayed.send(beginPost("/held", large));
  delayed.socket.write(LARGE.subarray(0, large));
  const slow = await openClient(context, gate.port);
  const steady = await openClient(context, gate.port);
  slow.send(beginPost("/", 1_000_000));
  steady.send(beginPost("/", 100_000));
  let sent = 0;
  const timer = setInterval(() => {
    if (!slow.isClosed()) slow.send("x");
    if (sent < 100_000) steady.send("x".repeat(4_000));
    sent += 4_000;
  }, 200);
  context.after(() => clearInterval(timer));
  assert.match(await slow.expect(/\}$/), /^HTTP\/1\.1 408 .*"code":"request_timeout"/s);
  await steady.expect(/^HTTP\/1\.1 200 .*100000 bytes/s);
  for (const release of held) release();
  await delayed.expect(new RegExp(`^HTTP/1\\.1 200 .*${large} bytes`, "s"));
  assert.equal(await readSlowBodies(), 1);
  assert.equal(await readBadRequests(), 0);
});

test("a client below answer_pace_bytes is disconnected; an event stream with nothing to send is not", async (context) => {
  let events: ServerResponse | undefined;
  const target = await startUpstream(context, (request, response) => {
    if (request.url !== "/events") {
      sendLarge(request, response);
      return;
    }
    events = response;
    response.writeHead(200, { "Content-Type": "text/event-stream" });
    response.write("data: first\n\n");
  });
  const gate = await shared.use({
    answer_pace_bytes: 1_000_000_000,
    answer_pace_window_ms: 1_000,
    routes: [{ prefix: "/", target }],
  });
  const readBadRequests = await followMetric(gate.url, BAD_REQUESTS);
  const readSlowReaders = await followMetric(gate.url, SLOW_READERS);
  const stream = await openClient(context, gate.port);
  stream.send("GET /events HTTP/1.1\r\nHost: a\r\n\r\n");
  await stream.expect(/data: first/);
  const slow = await openClient(context, gate.port);
  slow.socket.pause();
  slow.send(GET);
  const timer = setInterval(() => void slow.socket.read(65_536), 100);
  context.after(() => clearInterval(timer));
  await waitFor(async () => (await readSlowReaders()) === 1);
  events!.write("data: second\n\n");
  await stream.expect(/data: second/);
  assert.equal(await readBadRequests(), 0);
});

test("connections of one address are bounded, other addresses and trusted proxies are not held up", async (context) => {
  const target = await startUpstream(context, measureBody);
  const config = {
    max_connections_per_address: 3,
    trusted_proxies: ["127.0.0.2/32"],
    routes: [{ prefix: "/", target }],
  };
  const gate = await shared.use(config);
  const readBadRequests = await followMetric(gate.url, BAD_REQUESTS);
  const readRefused = await followMetric(gate.url, ADDRESS_REFUSED);
  const open = async (address: string): Promise<Awaited<ReturnType<typeof openClient>>> => {
    const client = await openClient(context, gate.port, address);
    client.send(GET);
    await waitFor(() => client.isClosed() || client.text().includes("0 bytes"));
    return client;
  };
  const first = [await open("127.0.0.3"), await open("127.0.0.3"), await open("127.0.0.3")];
  for (const client of first) assert.ok(!client.isClosed());
  const fourth = await open("127.0.0.3");
  assert.ok(fourth.isClosed());
  assert.equal(fourth.text(), "");
  for (let count = 0; count < 5; count++) assert.ok(!(await open("127.0.0.2")).isClosed());
  assert.ok(!(await open("127.0.0.4")).isClosed());
  assert.equal(await readRefused(), 1);
  assert.equal(await readBadRequests(), 0);
  first[0]!.socket.destroy();
  await waitFor(async () => !(await open("127.0.0.3")).isClosed());
});

test("a reload changes the bounds, for connections that are open as well", async (context) => {
  const target = await startUpstream(context, measureBody);
  const routes = [{ prefix: "/", target }];
  const gate = await shared.use({ max_connections_per_address: 1_000, routes });
  const readSlowBodies = await followMetric(gate.url, SLOW_BODIES);
  const readRefused = await followMetric(gate.url, ADDRESS_REFUSED);
  const open = await openClient(context, gate.port, "127.0.0.3");
  open.send(`${beginPost("/", 1_000_000)}x`);
  await shared.use({
    max_connections_per_address: 2,
    body_pace_bytes: 1_000,
    body_pace_window_ms: 1_000,
    routes,
  });
  await openClient(context, gate.port, "127.0.0.3");
  const third = await openClient(context, gate.port, "127.0.0.3");
  await third.closed();
  assert.match(await open.expect(/\}$/), /^HTTP\/1\.1 408 /);
  assert.equal(await readSlowBodies(), 1);
  assert.equal(await readRefused(), 1);
});
