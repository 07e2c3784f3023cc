// Changes under open streams: what did not change is not touched, what is removed drains.
import assert from "node:assert/strict";
import { once } from "node:events";
import { request, type IncomingMessage, type ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { afterEach, test } from "node:test";
import { WebSocket, WebSocketServer } from "ws";
import { waitFor } from "@platform/testing/wait";
import { LIMITS_DEFAULT, makeRouteKey } from "../../src/shared-state/index.ts";
import { ask, type GateWorker, GLOBALS, startGate, startUpstream } from "./gate-worker.ts";

const stops: (() => unknown)[] = [];
afterEach(async () => {
  for (const stop of stops.splice(0).reverse()) await stop();
});

/** Streams server-sent events on `/sse`, echoes WebSockets, and answers the rest. */
async function startStreams(): Promise<{
  url: string;
  tick: (text: string) => void;
  countConnections: () => number;
}> {
  const open = new Set<ServerResponse>();
  const upstream = await startUpstream((message, response) => {
    if (message.url !== "/sse") {
      response.end("plain");
      return;
    }
    response.writeHead(200, { "content-type": "text/event-stream" });
    response.write("data: hello\n\n");
    open.add(response);
    response.on("close", () => open.delete(response));
  });
  const sockets = new WebSocketServer({ server: upstream.server });
  sockets.on("connection", (socket) => {
    socket.on("message", (data, isBinary) => socket.send(data, { binary: isBinary }));
  });
  stops.push(upstream.stop, () => {
    for (const client of sockets.clients) client.terminate();
  });
  const tick = (text: string): void => {
    for (const response of open) response.write(`data: ${text}\n\n`);
  };
  const connections = new Set<Socket>();
  upstream.server.on("connection", (socket: Socket) => {
    connections.add(socket);
    socket.on("close", () => connections.delete(socket));
  });
  return { url: upstream.url, tick, countConnections: () => connections.size };
}

async function startWith(...parameters: Parameters<typeof startGate>): Promise<GateWorker> {
  const gate = await startGate(...parameters);
  stops.push(() => gate.stop());
  return gate;
}

async function openSocket(port: number): Promise<WebSocket> {
  const socket = new WebSocket(`ws://127.0.0.1:${port}/ws`);
  socket.on("error", () => undefined);
  stops.push(() => socket.terminate());
  await once(socket, "open");
  return socket;
}

async function echoOn(socket: WebSocket, text: string): Promise<string> {
  socket.send(text);
  const [data] = (await once(socket, "message")) as [Buffer];
  return data.toString();
}

async function openEvents(
  port: number,
): Promise<{ text: () => string; isOpen: () => boolean; isComplete: () => boolean }> {
  const sent = request({ host: "127.0.0.1", port, path: "/sse", agent: false });
  sent.on("error", () => undefined);
  sent.end();
  const [answer] = (await once(sent, "response")) as [IncomingMessage];
  let text = "";
  let isOpen = true;
  answer.on("data", (chunk) => (text += String(chunk)));
  answer.on("close", () => (isOpen = false));
  answer.on("error", () => undefined);
  stops.push(() => sent.destroy());
  return { text: () => text, isOpen: () => isOpen, isComplete: () => answer.complete };
}

test("events are not buffered, WebSockets echo, and both are counted at their upstream", async () => {
  const streams = await startStreams();
  const gate = await startWith([{ targets: [streams.url] }]);
  const events = await openEvents(gate.port);
  await waitFor(() => events.text().includes("hello"));
  streams.tick("one");
  await waitFor(() => events.text().includes("one"), undefined, 500);
  const socket = await openSocket(gate.port);
  assert.equal(await echoOn(socket, "ping"), "ping");
  const slot = gate.planner.slotOf(streams.url);
  assert.equal(gate.active.sum(slot), 2);
  assert.equal(gate.metrics.readCounter("webSocketsActive"), 1);
  socket.close();
  await waitFor(() => gate.active.sum(slot) === 1);
  assert.equal(gate.metrics.readCounter("webSocketsActive"), 0);
});

test("open streams of an unchanged route survive changes of everything else", async () => {
  const streams = await startStreams();
  const gate = await startWith([
    { prefix: "/", targets: [streams.url] },
    { prefix: "/other", targets: [streams.url] },
  ]);
  const events = await openEvents(gate.port);
  const socket = await openSocket(gate.port);
  for (let round = 0; round < 5; round++) {
    const answer = await gate.apply({
      globals: { ...GLOBALS, trustedProxies: round % 2 === 0 ? ["10.0.0.0/8"] : [] },
      routes: [{ prefix: `/new${round}`, targets: [streams.url] }],
      remove: [makeRouteKey(undefined, round === 0 ? "/other" : `/new${round - 1}`)],
    });
    assert.equal(answer.type, "applied");
    assert.equal(await echoOn(socket, `round ${round}`), `round ${round}`);
    streams.tick(`round ${round}`);
    await waitFor(() => events.text().includes(`round ${round}`), undefined, 1_000);
  }
  assert.equal(events.isOpen(), true);
  assert.equal(gate.cuts.length, 0);
});

test("a removed route immediately gets no new requests, its streams end at the deadline", async () => {
  const streams = await startStreams();
  const globals = { ...GLOBALS, limits: { ...LIMITS_DEFAULT, routeDrainMs: 700 } };
  const gate = await startWith([{ targets: [streams.url] }], globals);
  const events = await openEvents(gate.port);
  const socket = await openSocket(gate.port);
  await gate.apply({ remove: [makeRouteKey(undefined, "/")] });
  assert.equal((await ask(gate.port, "/")).status, 502);
  assert.equal(await echoOn(socket, "still here"), "still here");
  assert.equal(gate.cuts.length, 0);
  await waitFor(() => !events.isOpen() && socket.readyState === WebSocket.CLOSED);
  await waitFor(() => gate.cuts.length === 1);
  assert.equal(gate.cuts[0]!.cut, 2);
  await waitFor(() => gate.active.sum(gate.planner.slotOf(streams.url)) === 0);
});

test("a replaced route drains its old form while the new one serves", async () => {
  const [old, fresh] = [
    await startStreams(),
    await startUpstream((_, response) => response.end("new")),
  ];
  stops.push(fresh.stop);
  const gate = await startWith([{ targets: [old.url] }]);
  const socket = await openSocket(gate.port);
  await gate.apply({ routes: [{ targets: [fresh.url] }] });
  assert.equal((await ask(gate.port, "/")).body, "new");
  assert.equal(await echoOn(socket, "old"), "old");
  socket.close();
  await waitFor(() => old.countConnections() === 0);
  assert.equal(gate.cuts.length, 0);
});

test("a change that cannot be applied changes nothing", async () => {
  const streams = await startStreams();
  const gate = await startWith([{ targets: [streams.url] }]);
  const attempts: Parameters<GateWorker["apply"]>[0][] = [
    {
      routes: [
        { prefix: "/a", targets: [streams.url] },
        {
          prefix: "/b",
          targets: ["https://x"],
          upstreamTls: { certPem: "no pem", keyPem: "no pem" },
        },
      ],
    },
    {
      globals: { ...GLOBALS, trustedProxies: ["nonsense"] },
      remove: [makeRouteKey(undefined, "/")],
    },
    {
      globals: {
        ...GLOBALS,
        accessLog: { path: "/nonexistent/a/b", fileBytesMax: 1, filesMax: 1 },
      },
    },
  ];
  for (const attempt of attempts) {
    const answer = await gate.apply(attempt);
    assert.equal(answer.type, "apply-failed");
    assert.equal((await ask(gate.port, "/a")).body, "plain");
  }
});

test("a drain closes event streams and WebSockets gracefully, long before its deadline", async () => {
  const streams = await startStreams();
  const gate = await startWith([{ targets: [streams.url] }], {
    limits: { ...LIMITS_DEFAULT, streamDrainMs: 100 },
  });
  const events = await openEvents(gate.port);
  const socket = await openSocket(gate.port);
  assert.equal(await echoOn(socket, "ping"), "ping");
  const closed = once(socket, "close") as Promise<[code: number]>;
  const drained = gate.hear("drained");
  gate.send({ type: "drain", deadlineMs: 60_000 });
  assert.equal((await closed)[0], 1001);
  await waitFor(() => !events.isOpen(), undefined, 30_000);
  assert.ok(events.isComplete(), "the content has its end");
  assert.equal((await drained).cut, 0);
});

test("streams of a removed route are closed gracefully as well", async () => {
  const streams = await startStreams();
  const gate = await startWith([{ targets: [streams.url] }], {
    limits: { ...LIMITS_DEFAULT, routeDrainMs: 50 },
  });
  const events = await openEvents(gate.port);
  const socket = await openSocket(gate.port);
  assert.equal(await echoOn(socket, "ping"), "ping");
  const closed = once(socket, "close") as Promise<[code: number]>;
  await gate.apply({ remove: [makeRouteKey(undefined, "/")] });
  assert.equal((await closed)[0], 1001);
  await waitFor(() => !events.isOpen(), undefined, 30_000);
  assert.ok(events.isComplete(), "the content has its end");
});

test("a drain finishes active requests, changes readiness, and reports cut ones", async () => {
  const arrived = Promise.withResolvers<ServerResponse>();
  const slow = await startUpstream((_, response) => {
    response.write("first ");
    arrived.resolve(response);
  });
  stops.push(slow.stop);
  const streams = await startStreams();
  const gate = await startWith([
    { prefix: "/", targets: [slow.url] },
    { prefix: "/ws", targets: [streams.url] },
  ]);
  await openSocket(gate.port);
  const answer = ask(gate.port, "/");
  const response = await arrived.promise;
  const drained = gate.hear("drained");
  gate.send({ type: "drain", deadlineMs: 2_000 });
  response.end("last");
  assert.equal((await answer).body, "first last");
  assert.equal((await drained).cut, 1);
  await assert.rejects(ask(gate.port, "/"), { code: "ECONNREFUSED" });
});
