// The corpus against a forwarding server: the refusal comes back, and nothing malformed reaches the upstream.
import assert from "node:assert/strict";
import {
  type AddressInfo,
  type Server as TcpServer,
  type Socket,
  connect,
  createServer as createTcpServer,
} from "node:net";
import { after, before, test } from "node:test";
import {
  type Engine,
  type Server,
  type UpstreamPool,
  compilePlan,
  createEngine,
  createServer,
  createUpstreamPool,
} from "../../src/index.ts";
import { requestCorpus } from "../corpus/requests.ts";
import { SeenConnection, type SeenRequest } from "../parse/connection.ts";

const MARKER = "GET /marker HTTP/1.1\r\nHost: a.example\r\nConnection: close\r\n\r\n";
const CLOSE_TIMEOUT_MS = 5000;

let engine: Engine;
let upstream: TcpServer;
let pool: UpstreamPool;
let server: Server;
let port: number;
const upstreamSockets = new Set<Socket>();
let reached: SeenRequest[] = [];
let malformed = 0;

before(async () => {
  engine = createEngine();
  upstream = createTcpServer(recordUpstream);
  await new Promise<void>((resolve) => upstream.listen(0, "127.0.0.1", resolve));
  const upstreamPort = (upstream.address() as AddressInfo).port;
  pool = createUpstreamPool({ engine, addresses: [{ host: "127.0.0.1", port: upstreamPort }] });
  const target = { pool, plan: compilePlan() };
  server = createServer({ engine, handler: (exchange) => exchange.forward(target, {}) });
  await server.listen({ host: "127.0.0.1", port: 0 });
  port = (server.address() as { port: number }).port;
});

after(async () => {
  await server.close();
  pool.close();
  for (const socket of upstreamSockets) socket.destroy();
  upstream.close();
});

/** Answers each whole request and closes. A connection may outlive a payload of which nothing was sent. */
function recordUpstream(socket: Socket): void {
  const seen = new SeenConnection();
  upstreamSockets.add(socket);
  let answered = 0;
  socket.on("data", (chunk: Buffer) => {
    seen.push(chunk);
    if (seen.refusal !== null) malformed++;
    for (; answered < seen.requests.length; answered++) {
      reached.push(seen.requests[answered]!);
      socket.end("HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok");
    }
  });
  socket.on("error", () => socket.destroy());
  socket.on("close", () => upstreamSockets.delete(socket));
}

for (const { name, payload, expected } of requestCorpus) {
  const verb = typeof expected === "number" ? "forwards" : "refuses and closes";
  test(`${verb}: ${name}`, async () => {
    reached = [];
    const bytes = Buffer.from(payload + MARKER, "latin1");
    const answers = await exchange(bytes);
    const ours = new SeenConnection();
    ours.push(bytes);
    assert.equal(malformed, 0, "the upstream got malformed bytes");
    assert.deepEqual(
      reached.map(({ method, body }) => [method, body]),
      ours.requests.map(({ method, body }) => [method, body]),
    );
    const statuses = [...answers.matchAll(/HTTP\/1\.1 (\d{3}) /g)].map((match) => Number(match[1]));
    if (typeof expected === "number") {
      assert.deepEqual(
        statuses,
        Array.from({ length: ours.requests.length }, () => 200),
      );
    } else assert.deepEqual(statuses, [expected[0]]);
  });
}

/** Sends everything in one write and gives what came back once the server has closed the connection. */
function exchange(bytes: Buffer): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect({ host: "127.0.0.1", port });
    let text = "";
    socket.setTimeout(CLOSE_TIMEOUT_MS, () => {
      socket.destroy();
      reject(new Error(`the server kept the connection open after: ${text}`));
    });
    socket.on("data", (chunk) => (text += chunk.toString("latin1")));
    socket.on("error", reject);
    // The server may linger for a client that is still sending: this one says that it is done.
    socket.on("end", () => socket.end());
    socket.on("close", () => resolve(text));
    socket.write(bytes);
  });
}
