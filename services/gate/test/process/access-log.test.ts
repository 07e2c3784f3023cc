// The access log of a gateway with two workers: no line is lost or torn while the file is rotated under it.
import assert from "node:assert/strict";
import { once } from "node:events";
import { readdirSync, readFileSync, renameSync, symlinkSync } from "node:fs";
import { createServer, request, type IncomingMessage } from "node:http";
import { join } from "node:path";
import { test, type TestContext } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { SignJWT } from "jose";
import { WebSocket } from "ws";
import { waitFor } from "@platform/testing/wait";
import { makeFolder, runtimes, runtimesOfRules, startGate } from "../fixture/gate-process.ts";
import { serve } from "../fixture/serve.ts";
import { shareGate } from "../fixture/shared-gate.ts";

const FILE_BYTES = 4_096;
/** Far beyond what it takes: a busy machine must not look like a defect. */
const ROTATION_TIMEOUT_MS = 30_000;

async function ask(url: string): Promise<number> {
  const sent = request(url, { agent: false });
  sent.end();
  const [answer] = (await once(sent, "response")) as [IncomingMessage];
  answer.resume();
  await once(answer, "close");
  return answer.statusCode ?? 0;
}

/** Waits until the file has been rotated this often. */
async function waitForRotations(folder: string, count: number): Promise<void> {
  const deadline = performance.now() + ROTATION_TIMEOUT_MS;
  for (;;) {
    const rotated = readdirSync(folder).filter((name) => /^access\.jsonl\.\d+$/.test(name));
    if (rotated.length >= count) return;
    assert.ok(performance.now() < deadline, `${rotated.length} of ${count} rotations`);
    await delay(50);
  }
}

function readPaths(folder: string): string[] {
  const files = readdirSync(folder).filter((name) => name.startsWith("access.jsonl"));
  return files.flatMap((name) => {
    const lines = readFileSync(join(folder, name), "utf8").split("\n").filter(Boolean);
    return lines.map((line) => (JSON.parse(line) as { path: string }).path);
  });
}

interface Page {
  items: { path: string; status: number; route: string; trace_id: string }[];
  next_cursor: string | null;
  enabled: boolean;
}

async function readPage(url: string, query: string): Promise<Page> {
  const answer = await fetch(`${url}/api/v1/admin/access-log?${query}`);
  assert.equal(answer.status, 200);
  return (await answer.json()) as Page;
}

/** Paths of all requests that the API lists. */
async function readAllPages(url: string, limit: number): Promise<string[]> {
  const found: string[] = [];
  for (let cursor = ""; ;) {
    const page = await readPage(url, `limit=${limit}${cursor}`);
    assert.ok(page.items.length <= limit);
    found.push(...page.items.map(({ path }) => path));
    if (page.next_cursor === null) return found;
    cursor = `&cursor=${page.next_cursor}`;
  }
}

for (const runtime of runtimesOfRules) {
  test(`${runtime.name}: every request is in the log once, over rotations and workers`, async (context) => {
    const upstream = createServer((_request, response) => response.end("ok"));
    const target = await serve(context, upstream);
    const folder = makeFolder(context);
    const gate = await startGate(context, {
      runtime,
      folder,
      config: {
        workers: 2,
        access_log_max_size: FILE_BYTES,
        access_log_files: 50,
        routes: [{ prefix: "/", target, access_log: true }],
      },
    });
    const wanted: string[] = [];
    for (let round = 0; round < 3; round++) {
      const paths = Array.from({ length: 20 }, (_, at) => `/${round}/${at}`);
      wanted.push(...paths);
      await Promise.all(paths.map((path) => ask(gate.url + path)));
      await waitForRotations(folder, round + 1);
    }
    assert.deepEqual(readPaths(folder).sort(), wanted.sort());
    assert.deepEqual((await readAllPages(gate.url, 7)).sort(), wanted.sort());
  });
}

const shared = shareGate({ runtime: runtimes[0]!, config: { workers: 1 } });

// First, while the log is empty.
test("without a route that has an access log, the list says so", async () => {
  const gate = await shared.use({ routes: [] });
  assert.deepEqual(await readPage(gate.url, ""), { items: [], next_cursor: null, enabled: false });
});

test("the API lists the latest requests first, filtered, without queries", async (context) => {
  const upstream = createServer((got, response) => {
    response.statusCode = got.url === "/shop/broken" ? 500 : 200;
    response.end("ok");
  });
  const target = await serve(context, upstream);
  const gate = await shared.use({
    routes: [
      { prefix: "/shop", target, access_log: true },
      { prefix: "/dead", target: "http://127.0.0.1:1", access_log: true },
      { prefix: "/quiet", target },
    ],
  });
  for (const path of ["/shop/a?token=secret", "/shop/broken", "/dead", "/quiet", "/shop/last"]) {
    await ask(gate.url + path);
  }
  const list = async (query: string): Promise<string[]> =>
    (await readPage(gate.url, query)).items.map(({ path }) => path);
  const deadline = performance.now() + ROTATION_TIMEOUT_MS;
  while ((await list("")).length < 4) {
    assert.ok(performance.now() < deadline, "the requests are not listed");
    await delay(20);
  }
  assert.deepEqual(await list(""), ["/shop/last", "/dead", "/shop/broken", "/shop/a"]);
  assert.deepEqual(await list("limit=2"), ["/shop/last", "/dead"]);
  assert.deepEqual(await list("route=/shop"), ["/shop/last", "/shop/broken", "/shop/a"]);
  assert.deepEqual(await list("status=500"), ["/shop/broken"]);
  assert.deepEqual(await list("status=5xx"), ["/dead", "/shop/broken"]);
  assert.deepEqual(await list("route=/shop&status=5xx"), ["/shop/broken"]);
  assert.deepEqual(await list("q=unreachable"), ["/dead"]);
  const { items } = await readPage(gate.url, "status=500");
  assert.deepEqual(await list(`q=${items[0]!.trace_id}`), ["/shop/broken"]);
  assert.deepEqual(await list("q=secret"), []);
  const bad = [
    "limit=0",
    "limit=201",
    "status=9xx",
    "status=5",
    "cursor=x",
    `q=${"a".repeat(257)}`,
  ];
  for (const query of bad) {
    const { status } = await fetch(`${gate.url}/api/v1/admin/access-log?${query}`);
    assert.equal(status, 400, query);
  }
});

test("the list of requests requires the operator's rights", async () => {
  const gate = await shared.use({ auth_token: "operator-token-of-this-test" });
  const read = async (headers: Record<string, string>): Promise<number> =>
    (await fetch(`${gate.url}/api/v1/admin/access-log`, { headers })).status;
  assert.equal(await read({}), 401);
  assert.equal(await read({ Authorization: "Bearer other" }), 401);
  assert.equal(await read({ Authorization: "Bearer operator-token-of-this-test" }), 200);
});

interface Batch {
  type: string;
  items: { path: string; status: number }[];
  missed: number;
}

/** Opens the stream; resolves after its first message. */
async function openStream(context: TestContext, url: string, query: string, headers = {}) {
  const address = `${url.replace("http", "ws")}/api/v1/admin/access-log/ws${query}`;
  const socket = new WebSocket(address, { headers });
  context.after(() => socket.terminate());
  const batches: Batch[] = [];
  socket.on("message", (data: Buffer) => batches.push(JSON.parse(data.toString()) as Batch));
  await once(socket, "message");
  const listPaths = (): string[] => batches.flatMap(({ items }) => items.map(({ path }) => path));
  return { socket, batches, listPaths };
}

test("the stream shows each client the requests that it asked for, over rotations", async (context) => {
  const upstream = createServer((got, response) => {
    response.statusCode = got.url?.startsWith("/shop/bad") === true ? 500 : 200;
    response.end("ok");
  });
  const target = await serve(context, upstream);
  const folder = makeFolder(context);
  const gate = await startGate(context, {
    runtime: runtimes[0]!,
    folder,
    config: {
      workers: 2,
      access_log_max_size: FILE_BYTES,
      access_log_files: 50,
      routes: [
        { prefix: "/shop", target, access_log: true },
        { prefix: "/other", target, access_log: true },
      ],
    },
  });
  await ask(`${gate.url}/other/before`);
  await waitFor(
    async () => (await readAllPages(gate.url, 50)).length === 1,
    "the request is logged",
  );
  const all = await openStream(context, gate.url, "");
  const shop = await openStream(context, gate.url, "?route=/shop&status=5xx");
  const tenth = await openStream(context, gate.url, "?q=/shop/ok&sample=10");
  assert.deepEqual(all.batches[0], { type: "lines", items: [], missed: 0 });
  const wanted: string[] = [];
  for (let round = 0; round < 3; round++) {
    const paths = Array.from({ length: 20 }, (_, at) => `/shop/ok/${round}/${at}`);
    paths.push(`/shop/bad/${round}`, `/other/${round}`);
    wanted.push(...paths);
    await Promise.all(paths.map((path) => ask(gate.url + path)));
    await waitForRotations(folder, round + 1);
  }
  await waitFor(() => all.listPaths().length >= wanted.length, "all requests arrive");
  await waitFor(() => tenth.listPaths().length >= 6, "samples arrive");
  assert.deepEqual(all.listPaths().sort(), wanted.sort());
  assert.deepEqual(shop.listPaths().sort(), ["/shop/bad/0", "/shop/bad/1", "/shop/bad/2"]);
  assert.equal(tenth.listPaths().length, 6);
  // Links that refer to each other can be read by nobody, not even by root.
  const path = join(folder, "access.jsonl");
  renameSync(path, `${path}.kept`);
  symlinkSync(path, path);
  const error = {
    type: "error",
    detail: "The access log cannot be read (ELOOP).",
    items: [],
    missed: 0,
  };
  await waitFor(
    () => [all, shop, tenth].every(({ batches }) => batches.some(({ type }) => type === "error")),
    "all clients learn of it",
  );
  assert.deepEqual(all.batches.at(-1), error);
  const late = await openStream(context, gate.url, "");
  await waitFor(() => late.batches.length === 2, "a later client, too");
  assert.deepEqual(late.batches[1], error);
  const page = await fetch(`${gate.url}/api/v1/admin/access-log`);
  assert.equal(page.status, 503);
  assert.match(await page.text(), /"detail":"The access log cannot be read \(ELOOP\)\."/);
  renameSync(`${path}.kept`, path);
  await waitFor(
    () => [all, late].every(({ batches }) => batches.some(({ type }) => type === "recovered")),
    "the recovery",
  );
  await ask(`${gate.url}/other/after`);
  await waitFor(() => late.listPaths().includes("/other/after"), "the next request");
  assert.deepEqual(late.listPaths(), ["/other/after"]);
  assert.equal(all.batches.filter(({ type }) => type === "error").length, 1);
  const failures = gate.lines().filter(({ msg }) => msg === "cannot follow the access log");
  assert.equal(failures.length, 1);
  const closed = once(all.socket, "close");
  gate.signal("SIGTERM");
  assert.equal((await closed)[0], 1001);
});

test("the stream requires the rights of an operator or gate:read, and refuses pages of other sites", async (context) => {
  const secret = "a-secret-of-at-least-32-bytes-for-hs256";
  const gate = await shared.use({
    auth_token: "operator-token-of-this-test",
    jwt_secret: secret,
  });
  const sign = (scope: string): Promise<string> =>
    new SignJWT({ scope, sub: "rita" })
      .setProtectedHeader({ alg: "HS256" })
      .setExpirationTime("1h")
      .sign(new TextEncoder().encode(secret));
  const refuse = async (query: string, headers: Record<string, string>): Promise<number> => {
    const address = `${gate.url.replace("http", "ws")}/api/v1/admin/access-log/ws${query}`;
    const socket = new WebSocket(address, { headers });
    socket.on("error", () => undefined);
    const [, response] = (await once(socket, "unexpected-response")) as [unknown, IncomingMessage];
    response.resume();
    return response.statusCode ?? 0;
  };
  const operator = { Authorization: "Bearer operator-token-of-this-test" };
  const reader = { Authorization: `Bearer ${await sign("gate:read")}` };
  assert.equal(await refuse("", {}), 401);
  assert.equal(await refuse("", { Authorization: `Bearer ${await sign("pulse:read")}` }), 403);
  assert.equal(await refuse("", { ...operator, Origin: "https://evil.example" }), 403);
  assert.equal(await refuse("?sample=0", operator), 400);
  assert.equal(await refuse("?status=9", reader), 400);
  await openStream(context, gate.url, "", operator);
  await openStream(context, gate.url, "?sample=100", reader);
  // The legacy form of the path.
  const plain = await fetch(`${gate.url}/api/admin/access-log/ws`, { headers: operator });
  assert.equal(plain.status, 426);
});
