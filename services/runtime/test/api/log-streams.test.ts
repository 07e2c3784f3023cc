// The stream of log lines at its bounds.
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { test, type TestContext } from "node:test";
import { createLogger } from "@platform/kernel/log";
import { WebSocket } from "ws";
import { createLogStreams } from "../../src/api/log-streams.ts";

interface Batch {
  items: { msg: string }[];
  missed: number;
}

async function start(t: TestContext) {
  const listeners = new Set<(json: string) => void>();
  const streams = createLogStreams({
    listen: (listener) => {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
    readFilter: () => ({ service: undefined, level: "info", text: undefined }),
    guard: () => ({ kind: "operator" }),
    logger: createLogger({ service: "test", write: () => undefined }),
  });
  const server = createServer();
  server.on("upgrade", (request, socket, head) => streams.handleUpgrade(request, socket, head));
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(async () => {
    await streams.close();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  const connect = (): WebSocket => new WebSocket(`ws://127.0.0.1:${port}/api/v1/logs/ws`);
  const write = (msg: string, level = "info"): void => {
    for (const listener of listeners) listener(JSON.stringify({ level, msg, service: "a" }));
  };
  return { streams, connect, write, listeners };
}

test("lines beyond 1 000 between two batches are counted, not kept", async (t) => {
  const { connect, write } = await start(t);
  const socket = connect();
  const batches: Batch[] = [];
  const received = Promise.withResolvers<void>();
  socket.on("message", (data: Buffer) => {
    const batch = JSON.parse(data.toString()) as Batch;
    batches.push(batch);
    if (batches.length === 1) {
      write("below the level", "debug");
      for (let number = 0; number < 1_500; number += 1) write(`line ${number}`);
    } else received.resolve();
  });
  await received.promise;
  const { items, missed } = batches[1]!;
  assert.equal(items.length, 1_000);
  assert.equal(items[999]!.msg, "line 999");
  assert.equal(missed, 500);
  socket.close();
});

test("the 33rd client is refused, and closing the streams ends them with 1001", async (t) => {
  const { streams, connect, listeners } = await start(t);
  const sockets = Array.from({ length: 32 }, connect);
  await Promise.all(sockets.map((socket) => once(socket, "open")));
  const extra = connect();
  const [, response] = (await once(extra, "unexpected-response")) as [
    unknown,
    { statusCode: number; headers: Record<string, string> },
  ];
  assert.equal(response.statusCode, 503);
  assert.equal(response.headers["retry-after"], "5");
  const codes = Promise.all(sockets.map(async (socket) => (await once(socket, "close"))[0]));
  await streams.close();
  assert.deepEqual(new Set(await codes), new Set([1001]));
  assert.equal(listeners.size, 0);
});
