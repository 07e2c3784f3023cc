// The live list of captured requests, on a relay with real clients; pages of the list.
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { after, before, test } from "node:test";
import { createLogger } from "@platform/kernel/log";
import { systemClock } from "@platform/kernel/time";
import { WebSocket } from "ws";
import { CaptureStore } from "../../src/capture/capture-store.ts";
import type { TunnelRow } from "../../src/database/schema.ts";
import { createRequestStreams } from "../../src/http/request-stream.ts";
import type { TunnelStore } from "../../src/name/tunnel-store.ts";
import { Cleanup, send, startLocal, startTestClient, startTestRelay } from "../fixture/stage.ts";

interface Item {
  id: string;
  path: string;
  status: number;
  state: string;
}

interface Batch {
  items: Item[];
  missed: number;
}

const cleanup = new Cleanup();
const TOKENS = "ada:token-of-ada-0123456789,bob:token-of-bob-0123456789";
const ADA = { authorization: "Bearer token-of-ada-0123456789" };
const BOB = { authorization: "Bearer token-of-bob-0123456789" };
let port = 0;
let tunnelId = "";
/** Ends the answer that hangs, once its request has arrived. */
const hanging = Promise.withResolvers<() => void>();

before(async () => {
  const local = await startLocal(cleanup, (request, response) => {
    request.resume();
    if (request.url === "/hang") {
      response.flushHeaders();
      hanging.resolve(() => void response.end());
      return;
    }
    response.statusCode = request.url?.startsWith("/bad") === true ? 503 : 200;
    response.setHeader("content-type", "text/plain");
    response.end(request.url === "/text" ? "a needle in the answer" : "done");
  });
  ({ port } = await startTestRelay(cleanup, { auth_token: TOKENS, max_ring_buffer: 50 }));
  const client = await startTestClient(cleanup, {
    port,
    token: "token-of-ada-0123456789",
    tunnels: [
      { target: String(local), subdomain: "first" },
      { target: String(local), subdomain: "second" },
    ],
  });
  const [grant] = client.welcomes[0]!.tunnels;
  assert.ok(grant !== undefined && "id" in grant);
  tunnelId = grant.id;
});
after(() => cleanup.run());

const visit = (path: string, name = "first") =>
  send({ port, host: `${name}.localhost:${port}`, path });

/** Opens the stream; resolves after its first message, which says that it listens. */
async function open(query = "", headers: Record<string, string> = ADA) {
  const url = `ws://localhost:${port}/api/v1/tunnels/${tunnelId}/requests/ws${query}`;
  const socket = new WebSocket(url, { headers });
  cleanup.add(() => socket.terminate());
  const items: Item[] = [];
  let wake = (): void => undefined;
  const first = Promise.withResolvers<void>();
  socket.on("message", (data: Buffer) => {
    items.push(...(JSON.parse(data.toString()) as Batch).items);
    first.resolve();
    wake();
  });
  socket.on("error", first.reject);
  await first.promise;
  const waitFor = async (fits: (item: Item) => boolean): Promise<Item> => {
    for (;;) {
      const found = items.find(fits);
      if (found !== undefined) return found;
      await new Promise<void>((resolve) => (wake = resolve));
    }
  };
  return { socket, items, waitFor };
}

async function list(query: string) {
  const path = `/api/v1/tunnels/${tunnelId}/requests${query}`;
  const { status, body } = await send({ port, host: `localhost:${port}`, path, headers: ADA });
  assert.equal(status, 200, body.toString());
  return JSON.parse(body.toString()) as { requests: Item[]; next_cursor: string | null };
}

test("a request is shown when it begins and again with its answer", async () => {
  const { items, waitFor } = await open();
  await visit("/other", "second");
  const visiting = visit("/hang");
  const begun = await waitFor(({ path }) => path === "/hang");
  assert.deepEqual([begun.state, begun.status], ["open", 0]);
  // The relay shows a request before the service has it.
  const finish = await hanging.promise;
  finish();
  await visiting;
  const ended = await waitFor(({ id, state }) => id === begun.id && state === "complete");
  assert.equal(ended.status, 200);
  assert.ok(!items.some(({ path }) => path === "/other"), "another tunnel's");
});

test("the stream has the filter of the list: status, path, text of bodies", async () => {
  const [bad, text] = await Promise.all([open("?status=5xx"), open("?q=needle")]);
  for (const path of ["/good", "/bad", "/text"]) await visit(path);
  await bad.waitFor(({ path }) => path === "/bad");
  await text.waitFor(({ path }) => path === "/text");
  assert.deepEqual([...new Set(bad.items.map(({ path }) => path))], ["/bad"]);
  assert.deepEqual([...new Set(text.items.map(({ path }) => path))], ["/text"]);
});

test("nobody else sees the requests, nor a page of another site", async () => {
  const refuse = async (query: string, headers: Record<string, string>): Promise<string> => {
    const url = `ws://localhost:${port}/api/v1/tunnels/${tunnelId}/requests/ws${query}`;
    const socket = new WebSocket(url, { headers });
    const [error] = (await once(socket, "error")) as [Error];
    return error.message;
  };
  assert.match(await refuse("", {}), /401/);
  assert.match(await refuse("", BOB), /404/);
  assert.match(await refuse("", { ...ADA, origin: "https://evil.example" }), /403/);
  assert.match(await refuse("?status=9xx", ADA), /4(?:00|22)/);
  const plain = `/api/v1/tunnels/${tunnelId}/requests/ws`;
  const answer = await send({ port, host: `localhost:${port}`, path: plain, headers: ADA });
  assert.equal(answer.status, 426);
});

test("pages continue with older requests while new ones arrive", async () => {
  for (let number = 0; number < 7; number += 1) await visit(`/page/${number}`);
  const first = await list("?q=path:/page/&limit=3");
  assert.deepEqual(
    first.requests.map(({ path }) => path),
    ["/page/6", "/page/5", "/page/4"],
  );
  await visit("/page/new");
  const second = await list(`?q=path:/page/&limit=3&cursor=${first.next_cursor}`);
  assert.deepEqual(
    second.requests.map(({ path }) => path),
    ["/page/3", "/page/2", "/page/1"],
  );
  const last = await list(`?q=path:/page/&limit=3&cursor=${second.next_cursor}`);
  assert.deepEqual([last.requests.map(({ path }) => path), last.next_cursor], [["/page/0"], null]);
  await visit("/bad/page");
  const failed = await list("?status=503&limit=1");
  assert.deepEqual(
    failed.requests.map(({ path }) => path),
    ["/bad/page"],
  );
  const other = await list("?cursor=of-another-process");
  assert.deepEqual([other.requests, other.next_cursor], [[], null]);
});

test("beyond 500 changes in a second clients are told how many they missed", async (t) => {
  const tunnel = { id: "t", subject: "" } as TunnelRow;
  const capture = new CaptureStore({ requestsMax: 10_000, bytesMax: 100_000_000 });
  const streams = createRequestStreams({
    store: { find: () => tunnel } as unknown as TunnelStore,
    capture,
    clock: { now: () => systemClock.now(), monotonicMs: () => 5_000 },
    guard: () => ({ kind: "operator" }),
    logger: createLogger({ service: "test", write: () => undefined }),
  });
  const server = createServer();
  server.on("upgrade", (request, socket, head) => streams.handleUpgrade(request, socket, head));
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(async () => {
    await streams.close();
    server.close();
  });
  const place = (server.address() as AddressInfo).port;
  const socket = new WebSocket(`ws://127.0.0.1:${place}/api/v1/tunnels/t/requests/ws`);
  await once(socket, "message");
  const begin = () =>
    capture.begin({ tunnel, method: "GET", path: "/", client: "::1", startedAt: 0 });
  for (let number = 0; number < 700; number += 1) begin();
  const [data] = (await once(socket, "message")) as [Buffer];
  const batch = JSON.parse(data.toString()) as Batch;
  assert.deepEqual([batch.items.length, batch.missed], [500, 200]);
});
