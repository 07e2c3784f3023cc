// Request bodies that a handler reads in chunks.
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { connect } from "node:net";
import { test } from "node:test";

import {
  type BodyReceiver,
  type Exchange,
  type ServerLimits,
  createEngine,
  createServer,
} from "../../src/index.ts";

type Take = (exchange: Exchange<undefined>) => BodyReceiver;

async function exchangeBytes(
  request: (Buffer | string)[],
  take: Take,
  limits: ServerLimits = {},
  connections = 1,
) {
  return exchange(request, (one) => one.streamBody(take(one)), limits, connections);
}

async function exchange(
  request: (Buffer | string)[],
  handler: (exchange: Exchange<undefined>) => void,
  limits: ServerLimits = {},
  connections = 1,
) {
  const engine = createEngine({ intervalMs: 20 });
  const server = createServer({
    engine,
    limits,
    handler,
  });
  await server.listen({ host: "127.0.0.1", port: 0 });
  const address = server.address() as { port: number };
  let answer = "";
  const talks = Array.from({ length: connections }, () => {
    const socket = connect(address.port, "127.0.0.1");
    socket.setEncoding("latin1").on("data", (text: string) => (answer += text));
    for (const piece of request) socket.write(piece);
    return new Promise((resolve) => socket.on("close", resolve).on("error", resolve));
  });
  await Promise.all(talks);
  await server.close();
  engine.close();
  return answer;
}

const gather: Take = (exchange) => {
  let size = 0;
  return {
    onBody(_bytes, start, end, isLast) {
      size += end - start;
      if (isLast) exchange.respond({ status: 200, body: `took ${size}` });
    },
    onBodyRefused: ({ status, code }) => exchange.respond({ status, body: code }),
  };
};

test("a body arrives in chunks, whatever its framing", async () => {
  const body = "x".repeat(300_000);
  const length = await exchangeBytes(
    [`PUT / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: 300000\r\n\r\n`, body],
    gather,
  );
  assert.match(length, /took 300000$/);
  const chunked = await exchangeBytes(
    [
      "PUT / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n",
      `${body.length.toString(16)}\r\n${body}\r\n0\r\n\r\n`,
    ],
    gather,
  );
  assert.match(chunked, /took 300000$/);
  const none = await exchangeBytes(
    ["GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"],
    gather,
  );
  assert.match(none, /took 0$/);
});

test("receivers that retain no chunks get them in reused memory, also across pauses and requests", async () => {
  const body = randomBytes(1_000_000);
  const memories = new Set<ArrayBufferLike>();
  const taken: Buffer[][] = [];
  let pieces = 0;
  const take: Take = (exchange) => {
    const own: Buffer[] = [];
    taken.push(own);
    return {
      keepsPieces: false,
      onBody(bytes, start, end, isLast) {
        pieces += 1;
        memories.add(bytes.buffer);
        own.push(Buffer.from(bytes.subarray(start, end)));
        if (isLast) {
          exchange.respond({ status: 200, body: "whole" });
        } else if (pieces % 3 === 0) {
          exchange.pauseBody();
          // By then another connection has read.
          setTimeout(() => exchange.resumeBody(), 1);
        }
      },
      onBodyRefused: ({ status, code }) => exchange.respond({ status, body: code }),
    };
  };
  const chunk = (bytes: Buffer) =>
    Buffer.concat([Buffer.from(`${bytes.length.toString(16)}\r\n`), bytes, Buffer.from("\r\n")]);
  const chunks = Array.from({ length: 100 }, (_, at) =>
    chunk(body.subarray(at * 10_000, (at + 1) * 10_000)),
  );
  const head = "PUT / HTTP/1.1\r\nHost: a\r\n";
  const answers = await exchangeBytes(
    [
      Buffer.concat([
        Buffer.from(`${head}Content-Length: 1000000\r\n\r\n`),
        body,
        Buffer.from(`${head}Transfer-Encoding: chunked\r\n\r\n`),
        ...chunks,
        Buffer.from(`0\r\n\r\n${head}Connection: close\r\nContent-Length: 1000000\r\n\r\n`),
        body,
      ]),
    ],
    take,
    {},
    3,
  );
  assert.equal(answers.match(/whole/g)?.length, 9);
  for (const own of taken) assert.ok(Buffer.concat(own).equals(body));
  assert.ok(memories.size < pieces / 2, `${memories.size} buffers for ${pieces} pieces`);
});

test("100 (Continue) is sent when the handler reads the body, not earlier", async () => {
  const head = "PUT / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nExpect: 100-continue\r\n";
  const taken = await exchangeBytes([`${head}Content-Length: 2\r\n\r\nab`], gather);
  assert.match(taken, /^HTTP\/1\.1 100 Continue\r\n\r\nHTTP\/1\.1 200 OK[^]*took 2$/);
});

test("100 (Continue) is sent for an empty body as well, or the connection closes", async () => {
  const head = "PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n";
  const last = `${head}Connection: close\r\n\r\n`;
  const taken = await exchangeBytes([`${head}Expect: 100-continue\r\n\r\n`, last], gather);
  assert.match(
    taken,
    /^HTTP\/1\.1 100 Continue\r\n\r\nHTTP\/1\.1 200 OK[^]*took 0HTTP\/1\.1 200 OK/,
  );
  const refused = await exchange([`${head}Expect: 100-continue\r\n\r\n`], (unread) =>
    unread.respond({ status: 403, body: "no" }),
  );
  assert.match(refused, /^HTTP\/1\.1 403 [^]*Connection: close\r\n[^]*no$/);
});

test("a paused body is complete after it is resumed", async () => {
  let pauses = 0;
  const answer = await exchangeBytes(
    [
      `PUT / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: 3000000\r\n\r\n`,
      Buffer.alloc(3_000_000, "y"),
    ],
    (exchange) => {
      const receiver = gather(exchange);
      return {
        ...receiver,
        onBody(bytes, start, end, isLast) {
          receiver.onBody(bytes, start, end, isLast);
          if (isLast) return;
          pauses += 1;
          exchange.pauseBody();
          setTimeout(() => exchange.resumeBody(), 1);
        },
      };
    },
  );
  assert.match(answer, /took 3000000$/);
  assert.ok(pauses > 1);
});

test("the receiver responds to a body that is too large or too slow", async () => {
  const large = await exchangeBytes(
    ["PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 11\r\n\r\n"],
    gather,
    { bodyBytesMax: 10 },
  );
  assert.match(large, /^HTTP\/1\.1 413 [^]*payload_too_large$/);
});
