// Relays that answer what they should not: the client neither fails nor floods them.
import assert from "node:assert/strict";
import { createServer, type AddressInfo, type Socket } from "node:net";
import { after, test } from "node:test";
import { encodeFrame, encodeGoAway, FrameType, GoAwayCode } from "../../src/frame/format.ts";
import {
  computeAccept,
  Opcode,
  WEBSOCKET_HEADER_BYTES_MAX,
  writeWebSocketHeader,
} from "../../src/frame/websocket.ts";
import { Cleanup, startTestClient } from "../fixture/stage.ts";

const cleanup = new Cleanup();
after(() => cleanup.run());

/** A relay that answers each handshake with bytes; returns its port and counts the handshakes. */
async function startLiar(
  answer: (key: string) => Buffer,
): Promise<{ port: number; dials: number }> {
  const state = { port: 0, dials: 0 };
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on("error", () => {});
    socket.once("data", (bytes) => {
      state.dials++;
      socket.write(answer(/^sec-websocket-key: (.*)$/im.exec(String(bytes))?.[1]?.trim() ?? ""));
    });
  });
  await new Promise<void>((resolve) => {
    server.listen(0, "127.0.0.1", resolve);
  });
  cleanup.add(() => {
    server.close();
    for (const socket of sockets) socket.destroy();
  });
  state.port = (server.address() as AddressInfo).port;
  return state;
}

function acceptWith(key: string, ...frames: Buffer[]): Buffer {
  const payload = Buffer.concat(frames);
  const head = Buffer.alloc(WEBSOCKET_HEADER_BYTES_MAX);
  const start = writeWebSocketHeader(head, head.length, Opcode.Binary, payload.length, null);
  const lines = [
    "HTTP/1.1 101 Switching Protocols",
    "Connection: Upgrade",
    "Upgrade: websocket",
    `Sec-WebSocket-Accept: ${computeAccept(key)}`,
    "Sec-WebSocket-Protocol: platform-tunnel.1",
  ];
  return Buffer.concat([
    Buffer.from(`${lines.join("\r\n")}\r\n\r\n`),
    head.subarray(start),
    payload,
  ]);
}

test("a Retry-After of years is shortened, and not taken for none", async () => {
  const liar = await startLiar(() =>
    Buffer.from(
      "HTTP/1.1 503 Service Unavailable\r\nRetry-After: 99999999999\r\nContent-Length: 0\r\n\r\n",
    ),
  );
  const tunnels = [{ target: "127.0.0.1:9" }];
  const client = await startTestClient(cleanup, { port: liar.port, tunnels });
  assert.match(client.losses.join(), /503/);
  await new Promise((resolve) => setTimeout(resolve, 600));
  assert.equal(liar.dials, 1);
});

test("a relay that ends the session together with the handshake is reported", async () => {
  for (const code of [GoAwayCode.Removed, GoAwayCode.Draining]) {
    const goAway = encodeFrame(FrameType.GoAway, 0, encodeGoAway(code, "no tunnels here"));
    const liar = await startLiar((key) => acceptWith(key, goAway));
    const tunnels = [{ target: "127.0.0.1:9" }];
    const client = await startTestClient(cleanup, { port: liar.port, tunnels });
    const reported = code === GoAwayCode.Removed ? client.refusals : client.losses;
    assert.deepEqual(reported, ["no tunnels here"]);
  }
});

test("a WELCOME that lacks a tunnel ends the connection with the reason", async () => {
  const welcome = (tunnels: unknown[]): Buffer =>
    encodeFrame(
      FrameType.Welcome,
      0,
      Buffer.from(JSON.stringify({ relay: "liar", session: "1", tunnels })),
    );
  const liar = await startLiar((key) => acceptWith(key, welcome([])));
  const tunnels = [{ target: "127.0.0.1:9" }];
  const client = await startTestClient(cleanup, { port: liar.port, tunnels });
  assert.match(client.losses.join(), /not one for each tunnel/);
});
