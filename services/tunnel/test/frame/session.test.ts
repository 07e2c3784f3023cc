// Sessions over a real connection: fairness between streams, credit, lost peers.
import assert from "node:assert/strict";
import { connect, createServer, type AddressInfo, type Socket } from "node:net";
import { after, test } from "node:test";
import { waitFor } from "@platform/testing/wait";
import {
  encodeFrame,
  encodeWindow,
  FrameType,
  INITIAL_CREDIT_BYTES,
} from "../../src/frame/format.ts";
import { FrameReader } from "../../src/frame/frame-reader.ts";
import { ReceiveBudget } from "../../src/frame/receive-budget.ts";
import { Session } from "../../src/frame/session.ts";
import type { SessionEnd } from "../../src/frame/session-contract.ts";
import type { Stream } from "../../src/frame/stream.ts";
import { Opcode, WebSocketReader, writeWebSocketHeader } from "../../src/frame/websocket.ts";
import { Cleanup } from "../fixture/stage.ts";

const cleanup = new Cleanup();
after(() => cleanup.run());

/** Two ends of a TCP connection. */
async function openPair(): Promise<[Socket, Socket]> {
  const server = createServer();
  await new Promise<void>((resolve) => {
    server.listen(0, "127.0.0.1", resolve);
  });
  const accepted = new Promise<Socket>((resolve) => {
    server.once("connection", resolve);
  });
  const near = connect((server.address() as AddressInfo).port, "127.0.0.1");
  const far = await accepted;
  server.close();
  for (const socket of [near, far]) {
    socket.on("error", () => {});
    cleanup.add(() => socket.destroy());
  }
  return [near, far];
}

function createSession(socket: Socket, role: "relay" | "client", budget = new ReceiveBudget()) {
  const opened: Stream[] = [];
  const ends: SessionEnd[] = [];
  const session = new Session({
    socket,
    role,
    budget,
    streamsMax: 100,
    isPrivate: false,
    rest: Buffer.alloc(0),
    listener: {
      onMessage: () => {},
      onOpen: (stream) => void opened.push(stream),
      onGoAway: () => {},
      onClose: (end) => void ends.push(end),
    },
  });
  return { session, opened, ends };
}

async function openSessions() {
  const [near, far] = await openPair();
  const relay = createSession(near, "relay");
  const client = createSession(far, "client");
  return { near, far, relay, client };
}

test("a small answer overtakes the queued bytes of a download", async () => {
  const [near, far] = await openPair();
  const { session } = createSession(near, "relay");
  far.pause();
  const download = session.openStream(0, "")!;
  const small = session.openStream(0, "")!;
  session.flush();
  const grants = [download, small].map(({ id }) =>
    encodeFrame(FrameType.Window, id, encodeWindow(64_000_000)),
  );
  const head = Buffer.alloc(14);
  const payload = Buffer.concat(grants);
  const start = writeWebSocketHeader(head, 14, Opcode.Binary, payload.length, Buffer.alloc(4));
  far.write(Buffer.concat([head.subarray(start), payload]));
  // Written until the system's buffers are full and bytes are queued.
  await waitFor(() => {
    download.write(Buffer.alloc(65_536));
    return download.writableLength > 4_000_000;
  });
  const sentBefore = download.written - download.writableLength;
  small.write(Buffer.from("small answer"));
  let downloaded = 0;
  let position = -1;
  const frames = new FrameReader({
    onData: (id, _bytes, from, to) => {
      if (id === download.id) downloaded += to - from;
      else if (position === -1) position = downloaded;
    },
    onFrame: () => {},
  });
  const webSocket = new WebSocketReader(
    {
      onMessageBytes: (bytes, from, to) => frames.push(bytes, from, to),
      onControl: () => {},
      onCloseFrame: () => {},
    },
    false,
  );
  far.on("data", (bytes: Buffer) => webSocket.push(bytes, 0, bytes.length));
  far.resume();
  await waitFor(() => position !== -1);
  assert.ok(position <= sentBefore + 2 * 65_536, `after ${position - sentBefore} further bytes`);
});

test("masked with a random key, all bytes arrive in both directions", async () => {
  const { relay, client } = await openSessions();
  const stream = relay.session.openStream(0, "")!;
  await waitFor(() => client.opened.length === 1);
  const [peer] = client.opened;
  let received = 0;
  let areIntact = true;
  stream.listener = {
    onBytes: (bytes) => {
      received += bytes.length;
      areIntact &&= bytes.equals(Buffer.alloc(bytes.length, 7));
    },
    onEnd: () => {},
    onDrain: () => {},
    onReset: () => {},
  };
  const piece = Buffer.alloc(50_000, 7);
  const total = 200;
  let sent = 0;
  const fill = (): void => {
    while (sent < total && !peer!.writableNeedDrain) {
      sent++;
      peer!.write(Buffer.from(piece));
    }
  };
  peer!.listener = { onBytes: () => {}, onEnd: () => {}, onDrain: fill, onReset: () => {} };
  fill();
  await waitFor(() => received === total * piece.length);
  assert.ok(areIntact, "bytes were changed on the way");
});

test("a paused stream is sent its credit and no more, and continues after resume", async () => {
  const { relay, client } = await openSessions();
  const stream = relay.session.openStream(0, "")!;
  await waitFor(() => client.opened.length === 1);
  const [peer] = client.opened;
  let received = 0;
  stream.listener = {
    onBytes: (bytes) => void (received += bytes.length),
    onEnd: () => {},
    onDrain: () => {},
    onReset: () => {},
  };
  stream.pause();
  peer!.write(Buffer.alloc(1_000_000));
  await waitFor(() => relay.session.budget.heldBytes === INITIAL_CREDIT_BYTES);
  assert.equal(peer!.writableLength, 1_000_000 - INITIAL_CREDIT_BYTES);
  // Another stream is not affected.
  const other = relay.session.openStream(0, "")!;
  let answer = "";
  other.listener = { ...stream.listener, onBytes: (bytes) => void (answer += bytes.toString()) };
  await waitFor(() => client.opened.length === 2);
  client.opened[1]!.write(Buffer.from("not blocked"));
  await waitFor(() => answer === "not blocked");
  assert.equal(received, 0);
  stream.resume();
  await waitFor(() => received === 1_000_000);
  assert.equal(relay.session.budget.heldBytes, 0);
});

test("beyond the memory budget, the stream that has held bytes longest is dropped", async () => {
  const [near, far] = await openPair();
  const relay = createSession(near, "relay", new ReceiveBudget(100_000));
  const client = createSession(far, "client");
  const codes: number[] = [];
  const streams = [0, 1].map(() => {
    const stream = relay.session.openStream(0, "")!;
    stream.pause();
    stream.listener = {
      onBytes: () => {},
      onEnd: () => {},
      onDrain: () => {},
      onReset: (code) => void codes.push(stream.id, code),
    };
    return stream;
  });
  await waitFor(() => client.opened.length === 2);
  client.opened[0]!.write(Buffer.alloc(60_000));
  await waitFor(() => relay.session.budget.heldBytes === 60_000);
  client.opened[1]!.write(Buffer.alloc(60_000));
  await waitFor(() => codes.length > 0);
  assert.deepEqual(codes, [streams[0]!.id, 7]);
  assert.equal(streams[1]!.isClosed, false);
  assert.ok(relay.session.budget.heldBytes <= 100_000);
});

test("half-closes arrive after the bytes, and a stream is over when both ends have closed", async () => {
  const { relay, client } = await openSessions();
  const stream = relay.session.openStream(0, "")!;
  await waitFor(() => client.opened.length === 1);
  const [peer] = client.opened;
  const events: string[] = [];
  const listen = (target: Stream, name: string): void => {
    target.listener = {
      onBytes: (bytes) => void events.push(`${name} ${bytes.toString()}`),
      onEnd: () => void events.push(`${name} end`),
      onDrain: () => {},
      onReset: () => void events.push(`${name} reset`),
    };
  };
  listen(stream, "relay");
  listen(peer!, "client");
  stream.write(Buffer.from("question"));
  stream.end();
  await waitFor(() => events.includes("client end"));
  assert.equal(stream.isClosed, false);
  peer!.write(Buffer.from("answer"));
  peer!.end();
  await waitFor(() => stream.isClosed && peer!.isClosed);
  assert.deepEqual(events, ["client question", "client end", "relay answer", "relay end"]);
  assert.equal(relay.session.streams + client.session.streams, 0);
});

test("streams of a lost connection are reset, and its owner is told once", async () => {
  const { far, relay } = await openSessions();
  let resets = 0;
  const stream = relay.session.openStream(0, "")!;
  stream.listener = {
    onBytes: () => {},
    onEnd: () => {},
    onDrain: () => {},
    onReset: (_code, delivered) => {
      resets++;
      assert.equal(delivered, null);
    },
  };
  far.resetAndDestroy();
  await waitFor(() => relay.ends.length > 0);
  assert.equal(resets, 1);
  assert.equal(relay.ends.length, 1);
  assert.equal(relay.session.openStream(0, ""), null);
});
