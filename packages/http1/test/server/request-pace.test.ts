// The minimum pace of request bodies, with a manual clock.
import assert from "node:assert/strict";
import { type Socket, connect } from "node:net";
import { type TestContext, test } from "node:test";

import { waitFor } from "@platform/testing/wait";
import { type Exchange, type ServerFault, createEngine, createServer } from "../../src/index.ts";

const HEAD = "PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\n";

interface Rig {
  faults: ServerFault[];
  /** The request that came last, with what its handler was given. */
  taken: { exchange: Exchange<undefined> | null; bytes: number };
  /** Opens a connection and sends a head. */
  open(): Promise<{ socket: Socket; read: () => string }>;
  /** Lets so many seconds pass. */
  pass(seconds: number): void;
}

async function startRig(context: TestContext, bytesMin = 1_000): Promise<Rig> {
  let nowMs = 0;
  const engine = createEngine({ now: () => nowMs });
  const faults: ServerFault[] = [];
  const taken: Rig["taken"] = { exchange: null, bytes: 0 };
  const server = createServer({
    engine,
    timeouts: { bodyIdleMs: 0 },
    paces: { requestBody: { bytesMin, windowMs: 10_000 } },
    onFault: (fault) => faults.push(fault),
    handler: (exchange) => {
      taken.exchange = exchange;
      taken.bytes = 0;
      exchange.streamBody({
        onBody(_bytes, start, end, isLast) {
          taken.bytes += end - start;
          if (isLast) exchange.respond({ status: 200, body: "whole" });
        },
        onBodyRefused: ({ status, code }) => exchange.respond({ status, body: code }),
      });
    },
  });
  await server.listen({ host: "127.0.0.1", port: 0 });
  const { port } = server.address() as { port: number };
  context.after(async () => {
    await server.close();
    engine.close();
  });
  return {
    faults,
    taken,
    async open() {
      taken.exchange = null;
      const socket = connect(port, "127.0.0.1");
      let text = "";
      socket.setEncoding("latin1").on("data", (piece: string) => (text += piece));
      context.after(() => socket.destroy());
      socket.write(HEAD);
      await waitFor(() => taken.exchange !== null);
      return { socket, read: () => text };
    },
    pass(seconds) {
      for (let second = 0; second < seconds; second++) {
        nowMs += 1_000;
        engine.tick();
      }
    },
  };
}

test("a body below the minimum pace is refused with 408 and counted", async (context) => {
  const rig = await startRig(context);
  const { socket, read } = await rig.open();
  for (let second = 1; second <= 9; second++) {
    socket.write("x".repeat(100));
    await waitFor(() => rig.taken.bytes === second * 100);
    rig.pass(1);
  }
  assert.equal(read(), "");
  rig.pass(1);
  await waitFor(() => read().endsWith("request_too_slow"));
  assert.match(read(), /^HTTP\/1\.1 408 [^]*Connection: close/);
  assert.deepEqual(
    rig.faults.map(({ kind, code }) => [kind, code]),
    [["slow-body", "request_too_slow"]],
  );
});

test("a body at the minimum pace continues, and each window counts separately", async (context) => {
  const rig = await startRig(context);
  const { socket, read } = await rig.open();
  for (let window = 1; window <= 4; window++) {
    socket.write("x".repeat(1_000));
    await waitFor(() => rig.taken.bytes === window * 1_000);
    rig.pass(10);
  }
  assert.equal(read(), "");
  socket.write("x".repeat(999));
  await waitFor(() => rig.taken.bytes === 4_999);
  rig.pass(10);
  await waitFor(() => read().endsWith("request_too_slow"));
});

test("time in which the handler pauses the body does not count", async (context) => {
  const rig = await startRig(context);
  const { socket, read } = await rig.open();
  rig.taken.exchange!.pauseBody();
  rig.pass(100);
  rig.taken.exchange!.resumeBody();
  rig.pass(9);
  socket.write("x".repeat(100_000));
  await waitFor(() => read().endsWith("whole"));
  assert.deepEqual(rig.faults, []);
});

test("a slow client is detected although the handler pauses for each chunk", async (context) => {
  const rig = await startRig(context);
  const { socket, read } = await rig.open();
  for (let second = 1; second <= 10; second++) {
    socket.write("x");
    await waitFor(() => rig.taken.bytes === second);
    rig.taken.exchange!.pauseBody();
    rig.taken.exchange!.resumeBody();
    rig.pass(1);
  }
  await waitFor(() => read().endsWith("request_too_slow"));
});

test("a pace of 0 disables the limit", async (context) => {
  const rig = await startRig(context, 0);
  const { socket, read } = await rig.open();
  rig.pass(1_000);
  socket.write("x".repeat(100_000));
  await waitFor(() => read().endsWith("whole"));
});

test("the window of a body does not affect the next request on the connection", async (context) => {
  const rig = await startRig(context);
  const { socket, read } = await rig.open();
  rig.pass(9);
  socket.write("x".repeat(100_000));
  await waitFor(() => read().endsWith("whole"));
  rig.taken.exchange = null;
  socket.write(HEAD);
  await waitFor(() => rig.taken.exchange !== null);
  rig.pass(9);
  socket.write("x".repeat(100_000));
  await waitFor(() => read().match(/whole/g)?.length === 2);
});
