// The gateway as a process that is told to stop while streams are open through it.
import assert from "node:assert/strict";
import { once } from "node:events";
import { type IncomingMessage, createServer, get } from "node:http";
import type { AddressInfo } from "node:net";
import { test } from "node:test";
import { WebSocket, WebSocketServer } from "ws";
import { runtimesOfRules, startGate } from "../fixture/gate-process.ts";

for (const runtime of runtimesOfRules) {
  test(`${runtime.name}: SIGTERM closes open streams gracefully, and the process exits with 0 long before its drain timeout`, async (context) => {
    const upstream = createServer((_request, response) => {
      response.writeHead(200, { "content-type": "text/event-stream" });
      response.write("data: hello\n\n");
    });
    const sockets = new WebSocketServer({ server: upstream });
    const closedUpstream = new Promise<number>((resolve) => {
      sockets.on("connection", (socket) => socket.on("close", resolve));
    });
    upstream.listen(0, "127.0.0.1");
    await once(upstream, "listening");
    context.after(() => {
      upstream.closeAllConnections();
      upstream.close();
    });
    const target = `http://127.0.0.1:${(upstream.address() as AddressInfo).port}`;
    const gate = await startGate(context, {
      runtime,
      config: {
        stream_drain_ms: 50,
        drain_timeout_ms: 600_000,
        workers: 2,
        routes: [{ prefix: "/", target }],
      },
    });
    const [events] = (await once(get(`${gate.url}/events`), "response")) as [IncomingMessage];
    events.resume();
    const eventsEnded = once(events, "end");
    const socket = new WebSocket(`${gate.url.replace("http", "ws")}/ws`);
    await once(socket, "open");
    const closed = once(socket, "close") as Promise<[code: number]>;
    gate.signal("SIGTERM");
    await eventsEnded;
    assert.ok(events.complete);
    assert.equal((await closed)[0], 1001);
    assert.equal((await gate.ended).code, 0);
    assert.equal(await closedUpstream, 1001);
  });
}
