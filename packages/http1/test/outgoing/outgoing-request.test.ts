// Requests that a program sends for itself: what servers answer, byte by byte, and what their readers do.
import assert from "node:assert/strict";
import { createHash, randomBytes } from "node:crypto";
import { once } from "node:events";
import { type AddressInfo, createServer, type Socket } from "node:net";
import { type TestContext, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { waitFor } from "@platform/testing/wait";
import {
  createEngine,
  createUpstreamPool,
  OutgoingError,
  type OutgoingCall,
  type OutgoingFailure,
  type OutgoingRequest,
  sendRequest,
} from "@platform/http1";

const OK = "HTTP/1.1 200 OK\r\n";

interface Rig {
  send: (request?: Partial<OutgoingRequest>) => OutgoingCall;
  /** Connections that were accepted so far. */
  sockets: Socket[];
  used: () => number;
}

/** A server that calls `onRequest` for each head it has received. */
async function startRig(
  context: TestContext,
  onRequest: (socket: Socket, head: string) => void,
): Promise<Rig> {
  const sockets: Socket[] = [];
  const server = createServer((socket) => {
    sockets.push(socket);
    socket.on("error", () => undefined);
    let text = "";
    socket.on("data", (bytes) => {
      text += bytes.toString("latin1");
      for (let end = text.indexOf("\r\n\r\n"); end !== -1; end = text.indexOf("\r\n\r\n")) {
        const head = text.slice(0, end);
        text = text.slice(end + 4);
        onRequest(socket, head);
      }
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const engine = createEngine({ intervalMs: 20 });
  const pool = createUpstreamPool({ engine, addresses: [{ host: "127.0.0.1", port }] });
  context.after(() => {
    pool.close();
    engine.close();
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  const send = (request: Partial<OutgoingRequest> = {}): OutgoingCall =>
    sendRequest(engine, pool, {
      method: "GET",
      target: "/",
      headers: { host: "test" },
      stallMs: 5_000,
      ...request,
    });
  return { send, sockets, used: () => pool.counts.open - pool.counts.idle };
}

async function expectFailure(work: Promise<unknown>, kind: OutgoingFailure): Promise<void> {
  await assert.rejects(work, (error) => {
    assert.ok(error instanceof OutgoingError, String(error));
    assert.equal(error.kind, kind);
    return true;
  });
}

test("a response is read in whatever pieces it comes, by its framing", async (context) => {
  const content = "0123456789";
  const chunked = `${OK}Transfer-Encoding: chunked\r\nX-A: 1\r\nx-a: 2\r\n\r\n4\r\n0123\r\n6;x=y\r\n456789\r\n0\r\n\r\n`;
  const early = `HTTP/1.1 103 Early Hints\r\n\r\n${OK}Content-Length: 10\r\n\r\n${content}`;
  const closing = `${OK}Connection: close\r\n\r\n${content}`;
  for (const [text, ends] of [
    [chunked, false],
    [early, false],
    [closing, true],
  ] as const) {
    for (const size of [1, 7, text.length]) {
      const { send } = await startRig(context, (socket) => {
        void (async () => {
          for (let at = 0; at < text.length; at += size) {
            socket.write(text.slice(at, at + size));
            if (size < text.length) await sleep(0);
          }
          if (ends) socket.end();
        })();
      });
      const answer = await send().answer;
      assert.equal(answer.status, 200);
      if (text === chunked) assert.equal(answer.headers["x-a"], "1, 2");
      assert.equal((await answer.readAll(10)).toString(), content);
    }
  }
});

test("a long content fills its reader's memory, or comes in pieces that stay as they are", async (context) => {
  const content = randomBytes(5_000_003);
  const { send, sockets } = await startRig(context, (socket) => {
    socket.write(`${OK}Content-Length: ${content.length}\r\n\r\n`);
    socket.write(content);
  });
  const room = Buffer.alloc(content.length + 10, 7);
  const answer = await send().answer;
  assert.equal(await answer.readInto(room.subarray(5, -5)), content.length);
  assert.ok(room.subarray(5, -5).equals(content));
  assert.deepEqual([...room.subarray(0, 5), ...room.subarray(-5)], Array(10).fill(7));
  const pieces: Buffer[] = [];
  for await (const piece of (await send().answer).chunks()) {
    pieces.push(piece);
    if (pieces.length % 10 === 0) await sleep(1);
  }
  const digest = (bytes: Buffer): string => createHash("sha256").update(bytes).digest("hex");
  assert.equal(digest(Buffer.concat(pieces)), digest(content));
  // After a long response the connection reads into no one's memory.
  const last = await (await send().answer).readAll(content.length);
  assert.ok(last.equals(content));
  assert.equal(sockets.length, 1, "one connection serves all three");
});

test("a content of known length is received into memory of the caller, before it is read", async (context) => {
  const content = randomBytes(100_000);
  const { send } = await startRig(context, (socket, head) => {
    const isShort = head.includes("/truncated");
    const isClosing = head.includes("/closing");
    socket.write(`${OK}${isClosing ? "" : `Content-Length: ${content.length}\r\n`}\r\n`);
    socket.write(isShort ? content.subarray(1) : content);
    if (isShort || isClosing) socket.end();
  });
  const room = Buffer.alloc(content.length + 10, 7);
  const lengths: number[] = [];
  const findMemory = (length: number): Buffer => {
    lengths.push(length);
    return room.subarray(5, 5 + length);
  };
  const check = (got: Buffer): void => assert.ok(got.equals(content));
  const first = await send({ findMemory }).answer;
  await waitFor(() => room.subarray(5, -5).equals(content), "the content without a reader");
  const all = await first.readAll(content.length);
  assert.equal(all.buffer, room.buffer);
  check(all);
  assert.deepEqual([...room.subarray(0, 5), ...room.subarray(-5)], Array(10).fill(7));
  for await (const piece of (await send({ findMemory }).answer).chunks()) check(piece);
  const other = Buffer.alloc(content.length);
  assert.equal(await (await send({ findMemory }).answer).readInto(other), content.length);
  check(other);
  check(await (await send({ findMemory: () => null }).answer).readAll(content.length));
  await expectFailure((await send({ findMemory }).answer).readAll(10), "content-too-large");
  const small = await send({ findMemory: () => room.subarray(0, 10) }).answer;
  await expectFailure(small.readAll(content.length), "content-too-large");
  const target = "/truncated";
  await expectFailure((await send({ findMemory, target }).answer).readAll(100_000), "truncated");
  const asked = lengths.length;
  check(await (await send({ findMemory, target: "/closing" }).answer).readAll(content.length));
  assert.equal(lengths.length, asked, "an unknown length has no memory");
});

test("a reader that stops keeps the server from sending more than it holds", async (context) => {
  let sent = 0;
  const piece = Buffer.alloc(65_536);
  const { send } = await startRig(context, (socket) => {
    socket.write(`${OK}Content-Length: 1000000000000\r\n\r\n`);
    const more = (): void => {
      while (!socket.destroyed && socket.write(piece)) sent += piece.length;
      sent += piece.length;
      socket.once("drain", more);
    };
    more();
  });
  const answer = await send().answer;
  const reading = answer.chunks();
  await reading.next();
  await waitFor(async () => {
    const before = sent;
    await sleep(200);
    return sent === before;
  }, "a server that waits");
  assert.ok(sent < 64 * 1_048_576, `${sent} bytes were taken`);
  await reading.return();
});

test("content beyond what its reader takes is refused", async (context) => {
  const { send } = await startRig(context, (socket, head) => {
    const framing = head.includes("/chunked") ? "Transfer-Encoding: chunked" : "Content-Length: 11";
    const content = head.includes("/chunked") ? "b\r\n0123456789a\r\n0\r\n\r\n" : "0123456789a";
    socket.write(`${OK}${framing}\r\n\r\n${content}`);
  });
  for (const target of ["/length", "/chunked"]) {
    await expectFailure((await send({ target }).answer).readAll(10), "content-too-large");
    const small = (await send({ target }).answer).readInto(Buffer.alloc(10));
    await expectFailure(small, "content-too-large");
  }
});

test("a connection with bytes of no response, or with an unsent body, is not used again", async (context) => {
  const { send, sockets } = await startRig(context, (socket, head) => {
    if (head.startsWith("HEAD")) socket.write(`${OK}Content-Length: 3\r\n\r\nabc`);
    else if (head.startsWith("PUT")) socket.write(`HTTP/1.1 403 No\r\nContent-Length: 0\r\n\r\n`);
    else socket.write(`${OK}Content-Length: 2\r\n\r\nokHTTP/1.1 200 OK\r\n`);
  });
  await send({ method: "HEAD" }).answer;
  assert.equal((await (await send().answer).readAll(2)).toString(), "ok");
  const endless = async function* (): AsyncGenerator<Buffer> {
    yield Buffer.from("begun");
    await new Promise(() => undefined);
  };
  const headers = { host: "test", "content-length": "100" };
  const refused = await send({ method: "PUT", headers, body: endless() }).answer;
  assert.equal(refused.status, 403);
  assert.equal((await (await send().answer).readAll(2)).toString(), "ok");
  assert.equal(sockets.length, 4);
});

test("silence, early ends and nonsense fail by name", async (context) => {
  const { send, used } = await startRig(context, (socket, head) => {
    if (head.includes("/silent")) return;
    if (head.includes("/closed")) socket.destroy();
    else if (head.includes("/nonsense")) socket.write("HTTP/2 200\r\n\r\n");
    else if (head.includes("/switch")) {
      socket.write("HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n");
    } else if (head.includes("/informational")) {
      socket.write("HTTP/1.1 103 Early Hints\r\n\r\n".repeat(20));
    } else {
      socket.write(`${OK}Content-Length: 10\r\n\r\n01234`);
      if (head.includes("/truncated")) socket.end();
    }
  });
  await expectFailure(send({ target: "/silent", stallMs: 50 }).answer, "stalled");
  await expectFailure(send({ target: "/closed" }).answer, "no-response");
  await expectFailure(send({ target: "/nonsense" }).answer, "malformed-response");
  await expectFailure(send({ target: "/switch" }).answer, "malformed-response");
  await expectFailure(send({ target: "/informational" }).answer, "malformed-response");
  await expectFailure((await send({ target: "/truncated" }).answer).readAll(10), "truncated");
  const dribbling = await send({ target: "/dribble", stallMs: 50 }).answer;
  // Nobody waits yet.
  await sleep(200);
  await expectFailure(dribbling.readInto(Buffer.alloc(10)), "stalled");
  const call = send({ target: "/silent" });
  call.destroy();
  await expectFailure(call.answer, "destroyed");
  await waitFor(() => used() === 0, "no connection is in use");
});

test("a connection that the server closed while it was idle is told from one that broke", async (context) => {
  const { send, sockets } = await startRig(context, (socket, head) => {
    if (head.includes("/second")) socket.destroy();
    else socket.write(`${OK}Content-Length: 0\r\n\r\n`);
  });
  const fresh = send({ target: "/second" });
  await expectFailure(fresh.answer, "no-response");
  assert.equal(fresh.isStale, false);
  await send().answer;
  const kept = send({ target: "/second" });
  await expectFailure(kept.answer, "no-response");
  assert.equal(kept.isStale, true);
  assert.equal(sockets.length, 2);
});

test("fields that would be another head are refused before anything is sent", async (context) => {
  const { send, sockets } = await startRig(context, () => undefined);
  for (const request of [
    { headers: { host: "a\r\nx: y" } },
    { headers: { "host\r\nx": "y" } },
    { headers: { host: "ü\u0100" } },
    { target: "/a b" },
    { target: "/a\r\nx: y" },
    { method: "GET /" },
  ]) {
    assert.throws(() => send(request), TypeError);
  }
  assert.equal(sockets.length, 0);
});

test("a body is sent whole, from memory and as it is read", async (context) => {
  const body = randomBytes(3_000_000);
  const hash = createHash("sha256");
  let left = 0;
  const server = createServer((socket) => {
    let head = "";
    socket.on("error", () => undefined);
    socket.on("data", (bytes) => {
      let rest = bytes;
      if (left === 0) {
        head += bytes.toString("latin1");
        const end = head.indexOf("\r\n\r\n");
        if (end === -1) return;
        rest = Buffer.from(head.slice(end + 4), "latin1");
        left = Number(/content-length: (\d+)/.exec(head)![1]);
        head = "";
      }
      hash.update(rest);
      left -= rest.length;
      if (left === 0) socket.write(`${OK}Content-Length: 0\r\n\r\n`);
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const engine = createEngine();
  const pool = createUpstreamPool({ engine, addresses: [{ host: "127.0.0.1", port }] });
  context.after(() => {
    pool.close();
    engine.close();
    server.close();
  });
  const slices = async function* (): AsyncGenerator<Buffer> {
    for (let at = 0; at < body.length; at += 100_000) {
      await sleep(0);
      yield body.subarray(at, at + 100_000);
    }
  };
  for (const sent of [body, slices(), body.subarray(0, 10)]) {
    const length = sent instanceof Buffer ? sent.length : body.length;
    const headers = { host: "test", "content-length": String(length) };
    const request = { method: "PUT", target: "/", headers, body: sent, stallMs: 5_000 };
    assert.equal((await sendRequest(engine, pool, request).answer).status, 200);
  }
  const expected = createHash("sha256").update(body).update(body).update(body.subarray(0, 10));
  assert.equal(hash.digest("hex"), expected.digest("hex"));
});

test("content is received at the pace of its reader, which is no silence of the server", async (context) => {
  const content = randomBytes(4_000_000);
  const rig = await startRig(context, (socket) => {
    socket.write(`${OK}Content-Length: ${content.length}\r\n\r\n`);
    socket.write(content);
  });
  for (const memory of [null, Buffer.alloc(content.length)]) {
    const rest = Promise.withResolvers<void>();
    let received = 0;
    const pace = (bytes: number): Promise<void> | undefined => {
      received += bytes;
      return received > 1_000_000 ? rest.promise : undefined;
    };
    const call = rig.send({ stallMs: 200, pace, findMemory: () => memory });
    const reading = (await call.answer).readAll(content.length);
    await waitFor(() => received > 1_000_000, "the reader rests");
    const before = received;
    assert.ok(before < 2_000_000, `${before} bytes`);
    await sleep(600);
    assert.equal(received, before);
    rest.resolve();
    assert.ok((await reading).equals(content));
    assert.equal(received, content.length);
  }
  assert.equal(rig.sockets.length, 1, "the connection is used again");
});

test("a server that is silent or gone after a rest is noticed", async (context) => {
  const rig = await startRig(context, (socket, head) => {
    socket.write(`${OK}Content-Length: 100\r\n\r\n0123456789`);
    if (head.includes("/gone")) setTimeout(() => socket.destroy(), 50);
  });
  for (const [target, kind] of [
    ["/silent", "stalled"],
    ["/gone", "truncated"],
  ] as const) {
    const call = rig.send({ target, stallMs: 200, pace: () => sleep(300) });
    const started = performance.now();
    await expectFailure((await call.answer).readAll(100), kind);
    const elapsedMs = performance.now() - started;
    assert.ok(elapsedMs > (kind === "stalled" ? 450 : 0), `${elapsedMs} ms`);
  }
  await waitFor(() => rig.used() === 0, "no connection is in use");
});
