// Responses before the end of the request body: slow clients can still read them, within limits.
import assert from "node:assert/strict";
import { connect, type Socket } from "node:net";
import { test, type TestContext } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { listenHttp } from "@platform/kernel/http";

const MEBIBYTE = Buffer.alloc(1_048_576, "x");

/** A listener that responds with 413 without reading, and its requests. */
async function listen(t: TestContext, closes: boolean, lingerMs?: number) {
  const asked: string[] = [];
  const listener = await listenHttp({
    address: { host: "127.0.0.1", port: 0 },
    ...(lingerMs === undefined ? {} : { lingerMs }),
    fetch: async (request) => {
      asked.push(new URL(request.url).pathname);
      return new Response("too large", {
        status: 413,
        headers: closes ? { Connection: "close" } : {},
      });
    },
  });
  t.after(() => listener.close(0));
  return { port: listener.port!, asked };
}

function open(port: number) {
  // Continues to send after the end of the response, like clients that read and write independently.
  const socket = connect({ port, host: "127.0.0.1", allowHalfOpen: true });
  const seen = { text: "", error: undefined as NodeJS.ErrnoException | undefined };
  socket.setEncoding("utf8").on("data", (chunk: string) => (seen.text += chunk));
  socket.on("error", (error) => (seen.error = error));
  const closed = new Promise<void>((resolve) => socket.once("close", () => resolve()));
  return { socket, seen, closed };
}

async function untilAnswered(socket: Socket): Promise<void> {
  await new Promise((resolve) => socket.once("data", resolve));
}

for (const closes of [true, false]) {
  const form = closes ? "an answer that closes" : "an answer that leaves the body unread";
  test(`${form} is read by a client that sends slowly, without a reset`, async (t) => {
    const { port } = await listen(t, closes);
    const { socket, seen, closed } = open(port);
    socket.write(`POST / HTTP/1.1\r\nHost: a\r\nContent-Length: ${12 * MEBIBYTE.length}\r\n\r\n`);
    await untilAnswered(socket);
    for (let sent = 0; sent < 12; sent++) {
      socket.write(MEBIBYTE);
      await sleep(100);
    }
    socket.end();
    await closed;
    assert.match(seen.text, /^HTTP\/1\.1 413 [^]*too large$/);
    assert.equal(seen.error, undefined);
  });
}

test("a client that keeps the connection open is disconnected after the linger time", async (t) => {
  const { port } = await listen(t, true, 300);
  const { socket, seen, closed } = open(port);
  socket.write("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1000\r\n\r\n");
  const started = performance.now();
  const dripping = setInterval(() => socket.write("x"), 20);
  await closed;
  clearInterval(dripping);
  const tookMs = performance.now() - started;
  assert.match(seen.text, /^HTTP\/1\.1 413 /);
  assert.ok(tookMs > 250 && tookMs < 15_000, String(tookMs));
});

test("a client that keeps sending is disconnected after 16 MiB", async (t) => {
  const { port } = await listen(t, true, 60_000);
  const { socket, closed } = open(port);
  socket.write(`POST / HTTP/1.1\r\nHost: a\r\nContent-Length: ${1_000 * MEBIBYTE.length}\r\n\r\n`);
  let sent = 0;
  for (; !socket.destroyed && sent < 1_000; sent++) {
    if (!socket.write(MEBIBYTE))
      await Promise.race([new Promise((resolve) => socket.once("drain", resolve)), closed]);
  }
  // Plus the bytes received between polls and in the buffers of both sockets.
  assert.ok(sent >= 16 && sent < 1_000, String(sent));
});

test("a request after a response that closes the connection is not handled", async (t) => {
  const { port, asked } = await listen(t, true);
  const { socket, seen, closed } = open(port);
  socket.write("POST /first HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\n");
  await untilAnswered(socket);
  socket.write("0123456789POST /second HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n");
  socket.end();
  await closed;
  assert.deepEqual(asked, ["/first"]);
  assert.equal(seen.text.match(/HTTP\/1\.1/g)?.length, 1);
});
