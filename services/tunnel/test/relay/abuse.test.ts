// Clients that violate the protocol: they are disconnected with the reason, and no other tunnel is disturbed.
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { connect } from "node:net";
import { after, before, test } from "node:test";
import { waitFor } from "@platform/testing/wait";
import { dialRelay } from "../../src/client/dial.ts";
import {
  encodeEnd,
  encodeFrame,
  encodeOpen,
  encodeReset,
  encodeWindow,
  FrameType,
  GoAwayCode,
  INITIAL_CREDIT_BYTES,
  ResetCode,
} from "../../src/frame/format.ts";
import { FrameReader } from "../../src/frame/frame-reader.ts";
import { Opcode, WebSocketReader, writeWebSocketHeader } from "../../src/frame/websocket.ts";
import { Cleanup, send, startLocal, startTestClient, startTestRelay } from "../fixture/stage.ts";

const cleanup = new Cleanup();
let port = 0;

before(async () => {
  ({ port } = await startTestRelay(cleanup));
  const local = await startLocal(cleanup, (_request, response) => response.end("calm"));
  await startTestClient(cleanup, {
    port,
    tunnels: [{ target: `127.0.0.1:${local}`, subdomain: "calm" }],
  });
});
after(() => cleanup.run());

async function expectCalm(): Promise<void> {
  assert.equal((await send({ port, host: "calm.localhost" })).body.toString(), "calm");
}

interface Received {
  type: number;
  stream: number;
  payload: Buffer;
}

/** A client that speaks frames, and lies as its test wants. */
class RoguePeer {
  readonly frames: Received[] = [];
  isClosed = false;
  readonly #socket: Awaited<ReturnType<typeof dialRelay>>["socket"];

  constructor({ socket, rest }: Awaited<ReturnType<typeof dialRelay>>) {
    this.#socket = socket;
    const reader = new FrameReader({
      onData: (stream, bytes, start, end) => {
        const payload = Buffer.from(bytes.subarray(start, end));
        this.frames.push({ type: FrameType.Data, stream, payload });
      },
      onFrame: (type, stream, payload) => {
        this.frames.push({ type, stream, payload: Buffer.from(payload) });
      },
    });
    const webSocket = new WebSocketReader(
      {
        onMessageBytes: (bytes, start, end) => reader.push(bytes, start, end),
        onControl: () => {},
        onCloseFrame: () => {},
      },
      false,
    );
    socket.on("data", (bytes: Buffer) => webSocket.push(bytes, 0, bytes.length));
    socket.on("error", () => {});
    socket.on("close", () => {
      this.isClosed = true;
    });
    if (rest.length > 0) webSocket.push(rest, 0, rest.length);
    cleanup.add(() => socket.destroy());
  }

  /** Sends bytes of frames in one masked message. */
  send(...frames: Buffer[]): void {
    this.sendRaw(encodeMessage(Buffer.concat(frames)));
  }

  sendRaw(bytes: Buffer): void {
    this.#socket.write(bytes);
  }

  hello(subdomain: string, target = "127.0.0.1:1"): void {
    const hello = {
      client: "rogue/1",
      key: randomBytes(32).toString("base64url"),
      instance: randomBytes(12).toString("base64url"),
      tunnels: [{ kind: "http", subdomain, target, host_header: "localhost" }],
    };
    this.send(encodeFrame(FrameType.Hello, 0, Buffer.from(JSON.stringify(hello))));
  }

  async waitFor(type: number): Promise<Received> {
    await waitFor(() => this.frames.some((frame) => frame.type === type));
    return this.frames.find((frame) => frame.type === type)!;
  }

  /** The GOAWAY's code and reason. */
  async expectGoAway(): Promise<[code: number, reason: string]> {
    const { payload } = await this.waitFor(FrameType.GoAway);
    await waitFor(() => this.isClosed);
    return [payload.readUInt32BE(0), payload.toString("utf8", 4)];
  }
}

function encodeMessage(payload: Buffer): Buffer {
  const head = Buffer.alloc(14);
  const key = Buffer.alloc(4);
  const start = writeWebSocketHeader(head, 14, Opcode.Binary, payload.length, key);
  return Buffer.concat([head.subarray(start), payload]);
}

async function dial(): Promise<RoguePeer> {
  const relay = `ws://127.0.0.1:${port}/ws/connect`;
  const { signal } = new AbortController();
  return new RoguePeer(
    await dialRelay({ relay, token: undefined, ca: undefined, timeoutMs: 5_000, signal }),
  );
}

/** A rogue that serves a tunnel; a public request to it is under way, and its stream is open. */
async function openStream(
  name: string,
): Promise<{ rogue: RoguePeer; stream: number; answer: Promise<number> }> {
  const rogue = await dial();
  rogue.hello(name);
  await rogue.waitFor(FrameType.Welcome);
  const answer = send({ port, host: `${name}.localhost` }).then(
    ({ status }) => status,
    () => 0,
  );
  const { stream } = await rogue.waitFor(FrameType.Open);
  await rogue.waitFor(FrameType.Data);
  return { rogue, stream, answer };
}

const json = (value: unknown) => Buffer.from(JSON.stringify(value));

const VIOLATIONS: readonly (readonly [string, Buffer, RegExp])[] = [
  ["an unknown frame type", Buffer.from("ff00000000000000", "hex"), /unknown_frame_type/],
  ["a DATA frame that is too long", Buffer.from("0401000100000001", "hex"), /bad_length/],
  [
    "DATA of a stream that was never opened",
    encodeFrame(FrameType.Data, 99, Buffer.from("x")),
    /bad_stream.*99/,
  ],
  [
    "END of a stream that was never opened",
    encodeFrame(FrameType.End, 7, encodeEnd(0)),
    /bad_stream/,
  ],
  [
    "RESET of a stream that was never opened",
    encodeFrame(FrameType.Reset, 7, encodeReset(0, 0)),
    /bad_stream/,
  ],
  [
    "OPEN, which only relays send",
    encodeFrame(FrameType.Open, 1, encodeOpen(0, "")),
    /unexpected_frame/,
  ],
  [
    "WELCOME, which only relays send",
    encodeFrame(FrameType.Welcome, 0, json({})),
    /unexpected_frame/,
  ],
  ["a second HELLO", encodeFrame(FrameType.Hello, 0, json({})), /unexpected_frame.*second HELLO/],
];

for (const [name, frame, reason] of VIOLATIONS) {
  test(`${name} ends the connection with the reason`, async () => {
    const rogue = await dial();
    rogue.hello(`rogue-${randomBytes(4).toString("hex")}`);
    await rogue.waitFor(FrameType.Welcome);
    rogue.send(frame);
    const [code, text] = await rogue.expectGoAway();
    assert.equal(code, GoAwayCode.Protocol);
    assert.match(text, reason);
    await expectCalm();
  });
}

const HELLOS: readonly (readonly [string, Buffer, RegExp])[] = [
  ["not JSON", Buffer.from("{nope"), /HELLO is not JSON/],
  [
    "without tunnels",
    json({ client: "x", key: "k".repeat(43), instance: "i".repeat(16), tunnels: [] }),
    /HELLO\.tunnels/,
  ],
  [
    "with an unknown member",
    json({ client: "x", key: "k".repeat(43), instance: "i".repeat(16), tunnels: [], admin: true }),
    /HELLO/,
  ],
  [
    "with a short key",
    json({ client: "x", key: "k", instance: "i".repeat(16), tunnels: [] }),
    /HELLO\.key/,
  ],
];

for (const [name, payload, reason] of HELLOS) {
  test(`a HELLO ${name} is refused with its place`, async () => {
    const rogue = await dial();
    rogue.send(encodeFrame(FrameType.Hello, 0, payload));
    const [code, text] = await rogue.expectGoAway();
    assert.equal(code, GoAwayCode.Protocol);
    assert.match(text, reason);
  });
}

test("bytes over the credit reset their stream; the connection goes on", async () => {
  const rogue = await dial();
  rogue.hello("greedy");
  await rogue.waitFor(FrameType.Welcome);
  // Reads nothing, so that no credit is granted beyond the first window.
  const reader = connect(port, "127.0.0.1", () => {
    reader.pause();
    reader.write("GET / HTTP/1.1\r\nHost: greedy.localhost\r\n\r\n");
  });
  reader.on("error", () => {});
  cleanup.add(() => reader.destroy());
  const { stream } = await rogue.waitFor(FrameType.Open);
  const head = Buffer.from("HTTP/1.1 200 OK\r\nContent-Length: 99999999\r\n\r\n");
  rogue.send(encodeFrame(FrameType.Data, stream, head));
  const piece = Buffer.alloc(65_536);
  for (let sent = 0; sent < 40_000_000; sent += piece.length) {
    rogue.send(encodeFrame(FrameType.Data, stream, piece));
  }
  const reset = await rogue.waitFor(FrameType.Reset);
  assert.deepEqual([reset.stream, reset.payload.readUInt32BE(0)], [stream, ResetCode.OverCredit]);
  await expectCalm();
});

test("late bytes for a stream that is over are allowed within its credit, and no more", async () => {
  const { rogue, stream, answer } = await openStream("tardy");
  rogue.send(encodeFrame(FrameType.Data, stream, Buffer.from("garbage\r\n\r\n")));
  assert.equal(await answer, 502);
  await rogue.waitFor(FrameType.Reset);
  rogue.send(encodeFrame(FrameType.Data, stream, Buffer.alloc(1_000)));
  await expectCalm();
  assert.equal(rogue.isClosed, false);
  for (let sent = 0; sent <= INITIAL_CREDIT_BYTES; sent += 16_384) {
    rogue.send(encodeFrame(FrameType.Data, stream, Buffer.alloc(16_384)));
  }
  const [, reason] = await rogue.expectGoAway();
  assert.match(reason, /late_bytes/);
});

test("a window of zero and one beyond 2^31 - 1 end the connection", async () => {
  const zero = await openStream("zero");
  zero.rogue.send(encodeFrame(FrameType.Window, zero.stream, encodeWindow(0)));
  assert.match((await zero.rogue.expectGoAway())[1], /WINDOW grants no bytes/);
  assert.equal(await zero.answer, 502, "requests of the lost client are answered at once");
  const huge = await openStream("huge");
  huge.rogue.send(encodeFrame(FrameType.Window, huge.stream, encodeWindow(0xffff_ffff)));
  assert.match((await huge.rogue.expectGoAway())[1], /exceeds 2\^31 - 1/);
});

test("a flood of pings ends the connection", async () => {
  const rogue = await dial();
  rogue.hello("flooding");
  await rogue.waitFor(FrameType.Welcome);
  const pings = Buffer.concat(
    Array.from({ length: 5_000 }, () => encodeFrame(FrameType.Ping, 0, Buffer.alloc(8))),
  );
  for (let count = 0; count < 10; count++) rogue.send(pings);
  assert.match((await rogue.expectGoAway())[1], /too_many_frames/);
  await expectCalm();
});

test("WebSocket violations end the connection", async () => {
  for (const hex of ["8101", "c280", "820161"]) {
    const rogue = await dial();
    rogue.sendRaw(Buffer.from(hex, "hex"));
    assert.match((await rogue.expectGoAway())[1], /websocket/);
  }
  await expectCalm();
});

test("a handshake of another version or without WebSocket is refused with the reason", async () => {
  const base = `GET /ws/connect HTTP/1.1\r\nHost: localhost\r\n`;
  const webSocket = `Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n`;
  const cases: [string, string, RegExp][] = [
    ["", "426", /WebSocket/],
    [webSocket, "400", /platform-tunnel\.1/],
    [`${webSocket}Sec-WebSocket-Protocol: platform-tunnel.9\r\n`, "400", /platform-tunnel\.1/],
    [
      `${webSocket}Sec-WebSocket-Protocol: platform-tunnel.1\r\nOrigin: https://evil.example\r\n`,
      "403",
      /Web pages/,
    ],
  ];
  for (const [fields, status, detail] of cases) {
    const text = await new Promise<string>((resolve) => {
      const socket = connect(port, "127.0.0.1", () => socket.write(`${base}${fields}\r\n`));
      socket.once("data", (bytes: Buffer) => {
        socket.destroy();
        resolve(bytes.toString());
      });
    });
    assert.match(text, new RegExp(`^HTTP/1.1 ${status} `));
    assert.match(text, detail);
  }
});
