// Plain questions that a chat endpoint interprets: filters are checked, nothing of the bucket is sent, and the grammar stands by.
import assert from "node:assert/strict";
import { after, before, beforeEach, test } from "node:test";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { serve, type Serving } from "./serving.ts";

interface Call {
  readonly path: string;
  readonly authorization: string | undefined;
  readonly body: { model: string; messages: { role: string; content: string }[] };
}

const calls: Call[] = [];
/** The next answers; the meaning is the text of a completion. */
let reply: { status: number; meaning: unknown; isHanging?: boolean } = { status: 200, meaning: {} };

const endpoint: Server = createServer((request, response) => {
  let text = "";
  request.setEncoding("utf8").on("data", (piece: string) => (text += piece));
  request.on("end", () => {
    calls.push({
      path: request.url!,
      authorization: request.headers.authorization,
      body: JSON.parse(text) as Call["body"],
    });
    if (reply.isHanging === true) return;
    const content =
      typeof reply.meaning === "string" ? reply.meaning : JSON.stringify(reply.meaning);
    response.writeHead(reply.status, { "content-type": "application/json" });
    response.end(
      JSON.stringify({ choices: [{ index: 0, message: { role: "assistant", content } }] }),
    );
  });
});
let serving: Serving;

before(async () => {
  await new Promise<void>((resolve) => {
    endpoint.listen(0, "127.0.0.1", resolve);
  });
  const { port } = endpoint.address() as AddressInfo;
  serving = await serve({
    env: {
      PLATFORM_VAULT_ASK_URL: `http://127.0.0.1:${port}/v1/`,
      PLATFORM_VAULT_ASK_MODEL: "reader",
      PLATFORM_VAULT_ASK_KEY: "secret-of-the-endpoint",
    },
  });
  const { s3 } = serving;
  await s3.must("PUT", "/data");
  for (const [key, size] of [
    ["hidden-name.jpg", 300],
    ["small.jpg", 10],
    ["note.txt", 20],
  ] as const) {
    await s3.must("PUT", `/data/${key}`, {
      body: "x".repeat(size),
      headers: { "x-amz-meta-secret": "value-of-metadata" },
    });
  }
});
beforeEach(() => void calls.splice(0));
after(async () => {
  await serving[Symbol.asyncDispose]();
  endpoint.closeAllConnections();
  endpoint.close();
});

interface Found {
  interpreted: { by: string; filters: object };
  results?: { key: string }[];
  answer?: { count: number; bytes: number };
}

async function find(question: string): Promise<Found> {
  const answer = await serving.s3.send("GET", `/data?ask=${encodeURIComponent(question)}`);
  assert.equal(answer.status, 200, answer.text);
  return JSON.parse(answer.text) as Found;
}

test("the endpoint's filters are the answer's, and it is sent no key and no metadata", async () => {
  reply = { status: 200, meaning: { filters: { kind: "image", size: { $gt: 100 } }, limit: null } };
  const found = await find("große Bilder");
  assert.deepEqual(found.interpreted, {
    by: "model",
    filters: { kind: "image", size: { $gt: 100 } },
  });
  assert.deepEqual(
    found.results?.map(({ key }) => key),
    ["hidden-name.jpg"],
  );
  const [call] = calls;
  assert.equal(call?.path, "/v1/chat/completions");
  assert.equal(call.authorization, "Bearer secret-of-the-endpoint");
  assert.equal(call.body.model, "reader");
  assert.equal(call.body.messages.at(-1)?.content, "große Bilder");
  assert.doesNotMatch(JSON.stringify(call), /hidden-name|value-of-metadata|"data"/);

  reply = { status: 200, meaning: { filters: { kind: "image" }, aggregate: "count" } };
  assert.deepEqual((await find("wie viele Bilder")).answer, { count: 2, bytes: 310 });
});

test("meanings that are no filters leave the question to the grammar", async () => {
  const REFUSED: unknown[] = [
    "select * from objects",
    "{",
    [],
    { sql: "select 1" },
    { filters: { "key) or 1=1 --": "x" } },
    { filters: { size: { $regex: ".*" } } },
    { filters: { __proto__: null, "tags.": { $eq: 1 } } },
    { filters: {}, limit: 1e9 },
    { filters: {}, order: { by: "key; drop table objects", direction: "asc" } },
    { filters: { $or: Array.from({ length: 100 }, () => ({ size: 1 })) } },
  ];
  for (const meaning of REFUSED) {
    reply = { status: 200, meaning };
    const { interpreted, results } = await find("all images");
    assert.equal(interpreted.by, "grammar", JSON.stringify(meaning));
    assert.equal(results?.length, 2);
  }
  assert.equal(calls.length, REFUSED.length, "a refused meaning does not put the endpoint to rest");
});

test("an endpoint that hangs delays one question by 5 s, and then rests", async () => {
  reply = { status: 200, meaning: {}, isHanging: true };
  const begunMs = performance.now();
  assert.equal((await find("all images")).interpreted.by, "grammar");
  assert.ok(performance.now() - begunMs < 20_000);
  reply = { status: 200, meaning: {} };
  assert.equal((await find("all images")).interpreted.by, "grammar");
  assert.equal(calls.length, 1);
});
