// Lines of a log for WebSockets: filters, losses, and when the log is read.
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { test, type TestContext } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { WebSocket } from "ws";
import { waitFor } from "@platform/testing/wait";
import { LineStreams } from "../../src/feeds/index.ts";
import { createLogger } from "../../src/log/index.ts";

interface Batch {
  items: { text: string }[];
  missed: number;
}

async function start(t: TestContext) {
  const counts = { listening: 0, starts: 0 };
  const streams: LineStreams<string> = new LineStreams({
    path: "/api/v1/lines",
    guard: () => ({ kind: "operator" }),
    access: () => undefined,
    readFilter: (search) => (line) => line.startsWith(search.get("start") ?? ""),
    describe: (text) => ({ text }),
    listen: () => {
      counts.listening += 1;
      counts.starts += 1;
      return () => void (counts.listening -= 1);
    },
    logger: createLogger({ service: "test", write: () => undefined }),
  });
  const server = createServer();
  server.on("upgrade", (request, socket, head) => {
    if (!streams.handleUpgrade(request, socket, head)) socket.destroy();
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(async () => {
    await streams.close();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  const open = async (query = "") => {
    const socket = new WebSocket(`ws://127.0.0.1:${port}/api/lines${query}`);
    t.after(() => socket.terminate());
    const batches: Batch[] = [];
    socket.on("message", (data: Buffer) => batches.push(JSON.parse(data.toString()) as Batch));
    await once(socket, "message");
    return { socket, batches };
  };
  return { streams, counts, open };
}

test("the log is read only while there is a client, which gets the lines that it asked for", async (t) => {
  const { streams, counts, open } = await start(t);
  assert.deepEqual(counts, { listening: 0, starts: 0 });
  const all = await open();
  const some = await open("?start=b");
  assert.deepEqual(counts, { listening: 1, starts: 1 });
  for (const line of ["a1", "b1", "a2"]) streams.add(line);
  streams.miss(7);
  await waitFor(() => all.batches.length > 1 && some.batches.length > 1);
  assert.deepEqual(all.batches[1], {
    type: "lines",
    items: [{ text: "a1" }, { text: "b1" }, { text: "a2" }],
    missed: 7,
  });
  assert.deepEqual(some.batches[1]?.items, [{ text: "b1" }]);
  all.socket.close();
  some.socket.close();
  await waitFor(() => counts.listening === 0);
  await open();
  assert.deepEqual(counts, { listening: 1, starts: 2 });
});

test("a client that does not read keeps a bounded number of lines, and learns how many it missed", async (t) => {
  const { streams, open } = await start(t);
  const slow = await open();
  slow.socket.pause();
  const text = "x".repeat(4_096);
  // Far more than sockets of the system hold.
  for (let sent = 0; sent < 20_000; sent += 500) {
    for (let at = 0; at < 500; at += 1) streams.add(text);
    await sleep(5);
  }
  slow.socket.resume();
  const count = (): number =>
    slow.batches.reduce((sum, { items, missed }) => sum + items.length + missed, 0);
  await waitFor(() => count() === 20_000);
  assert.ok(slow.batches.every(({ items }) => items.length <= 1_000));
  assert.ok(slow.batches.some(({ missed }) => missed > 0));
});
