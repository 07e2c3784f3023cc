// WebSockets and raw TCP through the tunnel.
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { createServer as createHttpServer } from "node:http";
import { connect, createServer, type AddressInfo, type Socket } from "node:net";
import { after, before, test } from "node:test";
import { WebSocket, WebSocketServer } from "ws";
import { waitFor } from "@platform/testing/wait";
import { Cleanup, startTestClient, startTestRelay, type ClientStage } from "../fixture/stage.ts";

const cleanup = new Cleanup();
let port = 0;
let client: ClientStage;
let tcpPort = 0;

before(async () => {
  const server = createHttpServer((_request, response) => response.end("plain"));
  const webSockets = new WebSocketServer({ server, handleProtocols: () => "echo" });
  webSockets.on("connection", (socket) => {
    socket.on("message", (data, isBinary) => socket.send(data, { binary: isBinary }));
  });
  await new Promise<void>((resolve) => {
    server.listen(0, "127.0.0.1", resolve);
  });
  cleanup.add(() => {
    webSockets.close();
    server.close();
    server.closeAllConnections();
  });
  const echo = createServer({ allowHalfOpen: true }, (socket) => socket.pipe(socket));
  await new Promise<void>((resolve) => {
    echo.listen(0, "127.0.0.1", resolve);
  });
  cleanup.add(() => echo.close());
  tcpPort = 21_000 + (process.pid % 9_000);
  ({ port } = await startTestRelay(cleanup, {
    tcp_ports: `${tcpPort}-${tcpPort + 1}`,
    tcp_host: "127.0.0.1",
  }));
  client = await startTestClient(cleanup, {
    port,
    tunnels: [
      { target: `127.0.0.1:${(server.address() as AddressInfo).port}`, subdomain: "demo" },
      { kind: "tcp", target: `127.0.0.1:${(echo.address() as AddressInfo).port}` },
      { kind: "tcp", target: "127.0.0.1:9" },
      { kind: "tcp", target: "127.0.0.1:9" },
    ],
  });
});
after(() => cleanup.run());

test("a WebSocket passes messages of all sizes and closes with the peer's status", async () => {
  const socket = new WebSocket(`ws://127.0.0.1:${port}/live`, "echo", {
    headers: { host: "demo.localhost" },
  });
  const received: Buffer[] = [];
  socket.on("message", (data) => received.push(data as Buffer));
  await new Promise((resolve) => {
    socket.once("open", resolve);
  });
  assert.equal(socket.protocol, "echo");
  const sent = [Buffer.from("hello"), randomBytes(70_000), randomBytes(2_000_000), Buffer.alloc(0)];
  for (const message of sent) socket.send(message);
  await waitFor(() => received.length === sent.length);
  assert.deepEqual(received, sent);
  const closed = new Promise<number>((resolve) => {
    socket.once("close", resolve);
  });
  socket.close(4_001, "enough");
  assert.equal(await closed, 4_001);
});

test("a TCP tunnel passes bytes both ways, and half-closes", async () => {
  const grant = client.welcomes[0]!.tunnels[1]!;
  assert.ok("url" in grant);
  assert.equal(grant.url, `tcp://localhost:${tcpPort}`);
  const bytes = randomBytes(3_000_000);
  const pieces: Buffer[] = [];
  const socket: Socket = connect({ port: tcpPort, host: "127.0.0.1", allowHalfOpen: true });
  socket.on("data", (piece: Buffer) => pieces.push(piece));
  const ended = new Promise((resolve) => {
    socket.once("end", resolve);
  });
  // The echo's last bytes arrive after our end.
  socket.end(bytes);
  await ended;
  assert.ok(Buffer.concat(pieces).equals(bytes));
});

test("a TCP connection whose target refuses is reset", async () => {
  const socket = connect(tcpPort + 1, "127.0.0.1");
  const code = await new Promise<string | undefined>((resolve) => {
    socket.once("error", (error: NodeJS.ErrnoException) => resolve(error.code));
    socket.once("end", () => resolve("end"));
  });
  assert.equal(code, "ECONNRESET");
});

test("more TCP tunnels than ports are refused with the reason", () => {
  const grant = client.welcomes[0]!.tunnels[3]!;
  assert.ok("error" in grant);
  assert.match(grant.error.detail, /All ports for TCP tunnels are in use/);
});
