// Durable tasks over the admin API: counted, dead, started again, discarded, and in turns between buckets.
import assert from "node:assert/strict";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { after, before, test } from "node:test";
import { waitFor } from "@platform/testing/wait";
import { addReader, callJson, readJson } from "./json-api.ts";
import { S3TestClient } from "./s3-client.ts";
import { serve, type Serving } from "./serving.ts";

interface Tasks {
  kinds: {
    kind: string;
    waiting: number;
    dead: number;
    ended: number;
    abandoned: number;
    oldest_at: string | null;
  }[];
  rules: { kind: string; bucket: string | null; waiting: number; dead: number }[];
}
interface Dead {
  items: { id: number; kind: string; bucket: string; key: string; reason: string }[];
  next_cursor: string | null;
}

/** Texts that the endpoint refuses, and whether it answers at all. */
const endpoint = { refuses: true, holds: false, texts: [] as string[] };
const server: Server = createServer((request, response) => {
  let body = "";
  request.setEncoding("utf8").on("data", (piece: string) => (body += piece));
  request.on("end", () => {
    const { input } = JSON.parse(body) as { input: string[] };
    const answer = (): void => {
      if (endpoint.holds) {
        setTimeout(answer, 20);
        return;
      }
      endpoint.texts.push(...input);
      const isRefused = endpoint.refuses && input.some((text) => text.startsWith("bad"));
      response.writeHead(isRefused ? 400 : 200, { "content-type": "application/json" });
      const data = input.map((_text, index) => ({ index, embedding: [1, 2] }));
      response.end(JSON.stringify({ data }));
    };
    answer();
  });
});
let serving: Serving;

before(async () => {
  await new Promise<void>((resolve) => {
    server.listen(0, "127.0.0.1", resolve);
  });
  const { port } = server.address() as AddressInfo;
  serving = await serve({
    env: { PLATFORM_VAULT_EMBEDDING_URL: `http://127.0.0.1:${port}/v1` },
  });
});
after(async () => {
  await serving[Symbol.asyncDispose]();
  server.close();
});

async function makeBucket(bucket: string): Promise<void> {
  const { s3 } = serving;
  await s3.must("PUT", `/${bucket}`);
  const document = { dimension: 2, metric: "dot", embed: { from: "key" } };
  await s3.must("PUT", `/${bucket}?vector-index`, { body: JSON.stringify(document) });
}

const readTasks = (): Promise<Tasks> => readJson<Tasks>(callJson(serving, "GET", "/admin/tasks"));
const listDead = (query = ""): Promise<Dead> =>
  readJson<Dead>(callJson(serving, "GET", `/admin/tasks/dead${query}`));

test("dead tasks are listed with their reason, started again or discarded", async () => {
  const { s3 } = serving;
  await makeBucket("first");
  await makeBucket("second");
  for (const key of ["bad-1", "bad-2", "good"]) await s3.must("PUT", `/first/${key}`);
  await s3.must("PUT", "/second/bad-3");
  await waitFor(async () => (await listDead()).items.length === 3, "three dead tasks");
  const { kinds, rules } = await readTasks();
  const embed = kinds.find(({ kind }) => kind === "embed")!;
  assert.deepEqual([embed.waiting, embed.dead, embed.abandoned], [0, 3, 3]);
  assert.deepEqual(
    rules.map(({ bucket, dead }) => [bucket, dead]),
    [
      ["first", 2],
      ["second", 1],
    ],
  );
  const page = await listDead("?limit=1&bucket=first");
  assert.deepEqual(
    [page.items.map(({ key, bucket }) => [key, bucket]), page.next_cursor === null],
    [[["bad-1", "first"]], false],
  );
  assert.match(page.items[0]!.reason, /400/);
  const next = await listDead(`?limit=1&bucket=first&cursor=${page.next_cursor}`);
  assert.deepEqual([next.items[0]!.key, next.next_cursor], ["bad-2", null]);

  const act = (action: string, body: object) =>
    readJson(callJson(serving, "POST", `/admin/tasks/dead/${action}`, body));
  assert.deepEqual(await act("discard", { bucket: "second" }), { tasks: 1 });
  endpoint.refuses = false;
  assert.deepEqual(await act("retry", { ids: [page.items[0]!.id] }), { tasks: 1 });
  const status = async (key: string) =>
    (await s3.must("HEAD", `/first/${key}`)).headers["x-store-vector-status"];
  await waitFor(async () => (await status("bad-1")) === "stored", "the vector of bad-1");
  assert.deepEqual(
    (await listDead()).items.map(({ key }) => key),
    ["bad-2"],
  );
  assert.deepEqual(await act("retry", {}), { tasks: 1 });
  await waitFor(async () => (await status("bad-2")) === "stored", "the vector of bad-2");
  assert.deepEqual((await listDead()).items, []);
});

test("bad names are refused, and callers without the right reach nothing", async () => {
  assert.equal((await callJson(serving, "GET", "/admin/tasks/dead?bucket=nowhere")).status, 404);
  assert.equal((await callJson(serving, "GET", "/admin/tasks/dead?kind=other")).status, 400);
  const retry = "/admin/tasks/dead/retry";
  assert.equal((await callJson(serving, "POST", retry, { ids: [] })).status, 400);
  assert.equal((await callJson(serving, "POST", retry, { id: 1 })).status, 400);
  const key = await addReader(serving, "first", ["s3:*"]);
  const reader = new S3TestClient(serving.vault.adminPort, key);
  assert.equal((await reader.send("GET", "/admin/tasks")).status, 403);
  assert.equal((await reader.send("POST", retry, { body: "{}" })).status, 403);
  reader.close();
});

test("a bucket with many tasks does not delay those of another", async () => {
  const { s3 } = serving;
  await makeBucket("crowded");
  await makeBucket("quiet");
  endpoint.holds = true;
  const keys = Array.from({ length: 600 }, (_, n) => `many-${n}`);
  await Promise.all(keys.map((key) => s3.must("PUT", `/crowded/${key}`)));
  await s3.must("PUT", "/quiet/single");
  const { rules, kinds } = await readTasks();
  assert.equal(rules.find(({ bucket }) => bucket === "crowded")?.waiting, 600);
  const oldest = kinds.find(({ kind }) => kind === "embed")?.oldest_at;
  assert.ok(Date.now() - Date.parse(oldest!) < 60_000, String(oldest));
  endpoint.holds = false;
  await waitFor(() => endpoint.texts.includes("single"), "the single task");
  const before = endpoint.texts.indexOf("single");
  assert.ok(before < 200, `${before} tasks of the other bucket came first`);
  await waitFor(async () => {
    const now = await readTasks();
    return now.kinds.every(({ waiting }) => waiting === 0);
  }, "the end of all tasks");
  const { text } = await serving.admin.must("GET", "/metrics");
  assert.match(text, /platform_vault_tasks\{kind="embed",state="dead"\} 0/);
  const ended = /platform_vault_task_attempts_total\{kind="embed",outcome="ended"\} (\d+)/.exec(
    text,
  );
  assert.ok(Number(ended?.[1]) >= 600, text);
});
