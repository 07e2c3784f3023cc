// Tunnels that come and go under mixed load: afterwards the relay holds no more memory and descriptors than before.
// PLATFORM_TUNNEL_SOAK_SECONDS=600 is the long form, with 200 tunnels.
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { connect, type AddressInfo } from "node:net";
import { after, test } from "node:test";
import { WebSocket, WebSocketServer } from "ws";
import { waitFor } from "@platform/testing/wait";
import { startLine } from "../fixture/line.ts";
import { makeFolder, startRelayProgram, type Program } from "../fixture/programs.ts";
import { Cleanup, send, startTestClient } from "../fixture/stage.ts";

const longSeconds = Number(process.env["PLATFORM_TUNNEL_SOAK_SECONDS"] ?? 0);
const SECONDS = longSeconds || 5;
const TUNNELS = longSeconds > 0 ? 200 : 40;
const WARM_UP_SECONDS = longSeconds > 0 ? 60 : 3;
const SETTLE_MS = longSeconds > 0 ? 15_000 : 1_000;
const OPEN_FILES_SLACK = 8;
const MEMORY_GROWTH_MAX = 1.25;
const MEMORY_SLACK_MIB = 16;
const UPLOAD = Buffer.alloc(400_000, "upload");
const DOWNLOAD = Buffer.alloc(1_500_000, "download");
const MIB = 1_048_576;

const cleanup = new Cleanup();
after(() => cleanup.run());

interface Holdings {
  openFiles: number;
  rssMib: number;
  heapMib: number;
}

type Tally = Record<"tunnels" | "requests" | "aborted" | "lost", number>;

/** Local service: small, large and endless responses, uploads, WebSockets. */
async function startService(): Promise<number> {
  const server = createServer((request, response) => void serve(request, response));
  const webSockets = new WebSocketServer({ server });
  webSockets.on("connection", (socket) => {
    socket.on("message", (data, isBinary) => socket.send(data, { binary: isBinary }));
  });
  await new Promise<void>((resolve) => {
    // All tunnels may open their connections at the same moment.
    server.listen({ port: 0, host: "127.0.0.1", backlog: 4_096 }, resolve);
  });
  cleanup.add(() => {
    webSockets.close();
    server.close();
    server.closeAllConnections();
  });
  return (server.address() as AddressInfo).port;
}

async function serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
  response.on("error", () => {});
  switch (request.url) {
    case "/upload": {
      const hash = createHash("sha1");
      try {
        for await (const piece of request) hash.update(piece as Buffer);
      } catch {
        return; // the public client has disconnected
      }
      response.end(hash.digest("hex"));
      return;
    }
    case "/download":
      response.end(DOWNLOAD);
      return;
    case "/events": {
      response.writeHead(200, { "Content-Type": "text/event-stream" });
      const timer = setInterval(() => response.write("data: tick\n\n"), 20);
      response.on("close", () => clearInterval(timer));
      return;
    }
    default:
      response.end("small");
  }
}

/** One tunnel after another under the same name until the deadline; every third one loses its line in between. */
async function keepTunnels(
  name: string,
  relayPort: number,
  localPort: number,
  deadlineMs: number,
  tally: Tally,
): Promise<void> {
  for (let turn = 0; performance.now() < deadlineMs; turn++) {
    const own = new Cleanup();
    try {
      const line = await startLine(own, relayPort);
      const client = await startTestClient(own, {
        port: line.port,
        key: `soak-client-${name}-0123456789`,
        tunnels: [{ target: `127.0.0.1:${localPort}`, subdomain: name }],
      });
      assert.deepEqual(client.refusals, []);
      tally.tunnels++;
      await useTunnel(name, relayPort, tally);
      if (turn % 3 !== 0) continue;
      const lost = client.next();
      line.drop();
      await lost;
      tally.lost++;
      const host = `${name}.localhost`;
      await waitFor(async () => (await send({ port: relayPort, host })).status === 200);
    } finally {
      await own.run();
    }
  }
}

async function useTunnel(name: string, port: number, tally: Tally): Promise<void> {
  const host = `${name}.localhost`;
  const small = await Promise.all(Array.from({ length: 5 }, () => send({ port, host })));
  for (const { status, body } of small) assert.deepEqual([status, String(body)], [200, "small"]);
  const upload = await send({ port, host, path: "/upload", method: "POST", body: UPLOAD });
  assert.equal(String(upload.body), createHash("sha1").update(UPLOAD).digest("hex"));
  assert.ok((await send({ port, host, path: "/download" })).body.equals(DOWNLOAD));
  await echo(port, host);
  await Promise.all(["/events", "/download", "/upload"].map((path) => abort(port, host, path)));
  tally.requests += small.length + 3;
  tally.aborted += 3;
}

async function echo(port: number, host: string): Promise<void> {
  const socket = new WebSocket(`ws://127.0.0.1:${port}/live`, { headers: { host } });
  const message = await new Promise((resolve, reject) => {
    socket.on("open", () => socket.send("hello"));
    socket.on("message", (data: Buffer) => resolve(data.toString()));
    socket.on("error", reject);
  });
  assert.equal(message, "hello");
  socket.terminate();
}

/** Disconnects after the first bytes of the response, or in the middle of the upload. */
async function abort(port: number, host: string, path: string): Promise<void> {
  const socket = connect(port, "127.0.0.1");
  socket.on("error", () => {});
  const head = `POST ${path} HTTP/1.1\r\nHost: ${host}\r\nContent-Length: 100000\r\n\r\nhalf`;
  socket.write(path === "/upload" ? head : `GET ${path} HTTP/1.1\r\nHost: ${host}\r\n\r\n`);
  await new Promise((resolve) => {
    socket.once(path === "/upload" ? "ready" : "data", resolve);
    socket.once("close", resolve);
  });
  socket.resetAndDestroy();
}

async function runLoad(relayPort: number, localPort: number, seconds: number): Promise<Tally> {
  const tally: Tally = { tunnels: 0, requests: 0, aborted: 0, lost: 0 };
  const deadlineMs = performance.now() + seconds * 1_000;
  await Promise.all(
    Array.from({ length: TUNNELS }, (_, index) =>
      keepTunnels(`soak-${index}`, relayPort, localPort, deadlineMs, tally),
    ),
  );
  return tally;
}

/** Resources once the relay has no clients and no public connections. */
async function readHoldings(relay: Program & { port: number }): Promise<Holdings> {
  const readMetrics = async (): Promise<string> =>
    String((await send({ port: relay.port, host: "localhost", path: "/metrics" })).body);
  await waitFor(async () => /^platform_tunnel_active_connections 0$/m.test(await readMetrics()));
  await new Promise((resolve) => setTimeout(resolve, SETTLE_MS));
  const metrics = await readMetrics();
  const heap = /^nodejs_heap_size_used_bytes(?:\{.*?\})? (\S+)$/m.exec(metrics)?.[1];
  const status = readFileSync(`/proc/${relay.child.pid}/status`, "utf8");
  const rssKib = Number(/^VmRSS:\s+(\d+)/m.exec(status)?.[1] ?? Number.NaN);
  assert.match(metrics, /^platform_tunnel_active_streams 0$/m);
  assert.match(metrics, /^platform_tunnel_held_bytes 0$/m);
  return {
    openFiles: readdirSync(`/proc/${relay.child.pid}/fd`).length,
    rssMib: Math.round(rssKib / 1_024),
    heapMib: Math.round(Number(heap) / MIB),
  };
}

test(
  `${TUNNELS} tunnels come and go for ${SECONDS} s, and the relay returns to where it began`,
  { timeout: (SECONDS + WARM_UP_SECONDS) * 1_000 + 240_000 },
  async (t) => {
    const relay = await startRelayProgram(cleanup, makeFolder(cleanup));
    const localPort = await startService();
    await runLoad(relay.port, localPort, WARM_UP_SECONDS);
    const before = await readHoldings(relay);
    const tally = await runLoad(relay.port, localPort, SECONDS);
    const afterwards = await readHoldings(relay);
    t.diagnostic(JSON.stringify({ tally, before, after: afterwards }));
    assert.ok(tally.tunnels >= TUNNELS && tally.lost > 0, JSON.stringify(tally));
    assert.ok(
      afterwards.openFiles <= before.openFiles + OPEN_FILES_SLACK,
      `${before.openFiles} descriptors before, ${afterwards.openFiles} after`,
    );
    if (longSeconds === 0) return;
    for (const kind of ["rssMib", "heapMib"] as const) {
      const most = before[kind] * MEMORY_GROWTH_MAX + MEMORY_SLACK_MIB;
      assert.ok(
        afterwards[kind] <= most,
        `${kind} grew from ${before[kind]} to ${afterwards[kind]}`,
      );
    }
  },
);
