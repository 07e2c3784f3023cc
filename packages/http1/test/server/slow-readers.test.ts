// Clients that read slowly or not at all, with a manual clock.
import assert from "node:assert/strict";
import { type Socket, connect } from "node:net";
import { type TestContext, test } from "node:test";

import { waitFor } from "@platform/testing/wait";
import {
  type Engine,
  type Exchange,
  type Handler,
  type ServerOptions,
  createEngine,
  createServer,
} from "../../src/index.ts";

const MIB = 1_048_576;
/** More than the system takes for a client on this machine. */
const LARGE = 64 * MIB;

interface Rig {
  engine: Engine;
  faults: string[];
  connections(): number;
  /** Opens a connection that sends `requests` and reads nothing yet. */
  open(requests?: string): Promise<Reader>;
  /** Lets so many seconds pass. */
  pass(seconds: number): void;
}

interface Reader {
  socket: Socket;
  /** Bytes that came. */
  count(): number;
  isClosed(): boolean;
  /** Reads at least so many bytes more, then stops again; `Infinity` reads on and on. */
  read(bytes: number): Promise<void>;
}

const GET = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";

async function startRig(
  context: TestContext,
  handler: Handler<undefined>,
  options: Partial<ServerOptions<undefined>> & { unsentBytesMax?: number } = {},
): Promise<Rig> {
  let nowMs = 0;
  const { unsentBytesMax, ...rest } = options;
  const engine = createEngine({
    now: () => nowMs,
    ...(unsentBytesMax === undefined ? {} : { unsentBytesMax }),
  });
  const faults: string[] = [];
  const server = createServer({
    engine,
    handler,
    onFault: ({ kind, code }) => faults.push(`${kind} ${code}`.trim()),
    ...rest,
  });
  await server.listen({ host: "127.0.0.1", port: 0 });
  const { port } = server.address() as { port: number };
  context.after(async () => {
    await server.close();
    engine.close();
  });
  const open = async (requests = GET): Promise<Reader> => {
    const before = server.counts.connections;
    const socket = connect(port, "127.0.0.1");
    context.after(() => socket.destroy());
    let count = 0;
    let wanted = 0;
    let isClosed = false;
    socket.on("data", (bytes: Buffer) => {
      count += bytes.length;
      if (count >= wanted) socket.pause();
    });
    socket.on("error", () => undefined);
    socket.on("close", () => (isClosed = true));
    socket.pause();
    socket.write(requests);
    await waitFor(() => server.counts.connections > before || isClosed);
    return {
      socket,
      count: () => count,
      isClosed: () => isClosed,
      async read(bytes) {
        wanted = count + bytes;
        socket.resume();
        if (bytes < Infinity) await waitFor(() => count >= wanted || isClosed);
      },
    };
  };
  return {
    engine,
    faults,
    connections: () => server.counts.connections,
    open,
    pass(seconds) {
      for (let second = 0; second < seconds; second++) {
        nowMs += 1_000;
        engine.tick();
      }
    },
  };
}

const LARGE_BODY = Buffer.alloc(LARGE, "x");
const answerLarge: Handler<undefined> = (exchange) => {
  exchange.respond({ status: 200, body: LARGE_BODY });
};

test("a client that reads nothing is disconnected after the stall time, and counted", async (context) => {
  const rig = await startRig(context, answerLarge, { timeouts: { writeStallMs: 10_000 } });
  await rig.open();
  await waitFor(() => rig.engine.outgoing.heldBytes > 0);
  rig.pass(10);
  assert.equal(rig.connections(), 1);
  rig.pass(2);
  await waitFor(() => rig.connections() === 0);
  assert.deepEqual(rig.faults, ["slow-reader stalled"]);
  assert.equal(rig.engine.outgoing.heldBytes, 0);
});

test("a client that reads less than the minimum pace is disconnected, one at the pace is not", async (context) => {
  // The system frees its send buffer in lumps of about a megabyte on this machine.
  const paces = { answer: { bytesMin: 4 * MIB, windowMs: 10_000 } };
  const rig = await startRig(context, answerLarge, { paces, timeouts: { writeStallMs: 0 } });
  const [slow, steady] = await Promise.all([rig.open(), rig.open()]);
  await waitFor(() => rig.engine.outgoing.heldBytes > LARGE);
  rig.pass(2);
  for (let second = 0; second < 12; second++) {
    await Promise.all([slow.read(1_000), steady.read(2 * MIB)]);
    rig.pass(1);
  }
  await waitFor(() => rig.connections() === 1);
  assert.deepEqual(rig.faults, ["slow-reader slow"]);
  await steady.read(LARGE - steady.count());
  assert.equal(steady.isClosed(), false);
});

test("progress within one large write counts", async (context) => {
  const rig = await startRig(context, answerLarge, { timeouts: { writeStallMs: 5_000 } });
  const reader = await rig.open();
  await waitFor(() => rig.engine.outgoing.heldBytes > 0);
  for (let second = 0; second < 20; second++) {
    await reader.read(2 * MIB);
    rig.pass(1);
  }
  assert.deepEqual(rig.faults, []);
  await reader.read(LARGE - reader.count());
});

test("an idle stream, or one whose few bytes are read, is not limited", async (context) => {
  let stream: Exchange<undefined> | null = null;
  const rig = await startRig(context, (exchange) => {
    stream = exchange;
    exchange.startResponse({ status: 200, headers: [["Content-Type", "text/event-stream"]] });
  });
  const reader = await rig.open();
  await waitFor(() => stream !== null);
  rig.pass(1_000);
  void reader.read(Infinity);
  for (let event = 0; event < 50; event++) {
    const before = reader.count();
    stream!.write("data: x\n\n");
    rig.pass(10);
    await waitFor(() => reader.count() > before);
  }
  assert.deepEqual(rig.faults, []);
  assert.equal(reader.isClosed(), false);
});

test("beyond the budget, clients that read nothing are disconnected, and others get everything", async (context) => {
  const body = Buffer.alloc(24 * MIB, "x");
  const rig = await startRig(context, (exchange) => exchange.respond({ status: 200, body }), {
    unsentBytesMax: 64 * MIB,
  });
  const readers = await Promise.all(Array.from({ length: 6 }, () => rig.open()));
  await waitFor(() => rig.engine.outgoing.heldBytes > 6 * 20 * MIB);
  const [first] = readers;
  rig.pass(1);
  await first!.read(8 * MIB);
  rig.pass(2);
  assert.ok(rig.engine.outgoing.heldBytes <= 64 * MIB, `${rig.engine.outgoing.heldBytes} held`);
  await waitFor(() => rig.connections() <= 2);
  assert.deepEqual(new Set(rig.faults), new Set(["slow-reader over-budget"]));
  await first!.read(24 * MIB - first!.count());
  assert.equal(first!.isClosed(), false);
});

test("the window of each reader shrinks as the budget is used, and grows again", async (context) => {
  let one: Exchange<undefined> | null = null;
  const rig = await startRig(
    context,
    (exchange) => {
      one = exchange;
      exchange.startResponse({ status: 200 });
    },
    { unsentBytesMax: 64 * MIB },
  );
  const reader = await rig.open();
  await waitFor(() => one !== null);
  assert.equal(one!.outflow.windowBytes, MIB);
  assert.ok(one!.outflow.claim(63.5 * MIB));
  assert.equal(one!.outflow.windowBytes, MIB / 4);
  assert.equal(one!.outflow.claim(MIB), false);
  let isClaimed: boolean | undefined;
  one!.outflow.claimWhenRoom(MIB, (granted) => (isClaimed = granted));
  assert.equal(one!.outflow.windowBytes, 65_536);
  reader.socket.resetAndDestroy();
  await waitFor(() => rig.connections() === 0);
  assert.equal(rig.engine.outgoing.heldBytes, 0);
  assert.equal(isClaimed, false);
});

test("a producer's remaining claims end with its response", async (context) => {
  const budgetBytes = 64 * MIB;
  const rig = await startRig(
    context,
    (exchange) => {
      exchange.startResponse({ status: 200 });
      assert.ok(exchange.outflow.claim(budgetBytes));
      exchange.end();
    },
    { unsentBytesMax: budgetBytes },
  );
  const reader = await rig.open(GET.repeat(3));
  void reader.read(Infinity);
  await waitFor(() => rig.engine.outgoing.heldBytes === 0 && reader.count() > 3 * 50);
  assert.equal(reader.isClosed(), false);
});

test("pipelined requests of a client that reads no response are not all processed", async (context) => {
  let answered = 0;
  const rig = await startRig(context, (exchange) => {
    answered += 1;
    exchange.respond({ status: 200, body: Buffer.alloc(MIB, "x") });
  });
  const reader = await rig.open(GET.repeat(200));
  await waitFor(() => rig.engine.outgoing.heldBytes > 0);
  await new Promise((resolve) => setTimeout(resolve, 50));
  assert.ok(rig.engine.outgoing.heldBytes <= 2 * MIB, `${rig.engine.outgoing.heldBytes} held`);
  assert.ok(answered < 50, `${answered} answered`);
  await reader.read(200 * MIB);
  assert.equal(answered, 200);
});

test("one address can open half of the connections, and no more; a proxy can open all", async (context) => {
  const limits = { connectionsMax: 10 };
  const rig = await startRig(context, (exchange) => exchange.respond({ status: 200 }), { limits });
  for (let at = 0; at < 5; at++) await rig.open();
  const sixth = await rig.open();
  await waitFor(() => sixth.isClosed() || sixth.socket.destroyed);
  assert.equal(rig.connections(), 5);
  assert.deepEqual(rig.faults, ["too-many-of-address"]);
  const behindProxy = await startRig(context, (exchange) => exchange.respond({ status: 200 }), {
    limits,
    isProxyAddress: (address) => address === "127.0.0.1",
  });
  for (let at = 0; at < 11; at++) await behindProxy.open();
  assert.equal(behindProxy.connections(), 10);
  assert.deepEqual(behindProxy.faults, ["too-many-connections"]);
});
