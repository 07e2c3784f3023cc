// Vectors that storage computes: lexical ones, those of an endpoint, and an endpoint that fails.
import assert from "node:assert/strict";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { after, before, test } from "node:test";
import { waitFor } from "@platform/testing/wait";
import { serve, type Serving } from "./serving.ts";

const json = (text: string): Record<string, unknown> => JSON.parse(text) as Record<string, unknown>;

/** An endpoint with three dimensions: the number of characters, of words, and 1. */
class Endpoint {
  readonly requests: { input: string[]; model: string; authorization: string | undefined }[] = [];
  /** Status of the next answers. */
  status = 200;
  readonly server: Server = createServer((request, response) => {
    let body = "";
    request.setEncoding("utf8").on("data", (piece: string) => (body += piece));
    request.on("end", () => {
      const { input, model } = JSON.parse(body) as { input: string[]; model: string };
      this.requests.push({ input, model, authorization: request.headers.authorization });
      const isRefused = input.some((text) => text.includes("refused"));
      response.writeHead(isRefused ? 400 : this.status, { "content-type": "application/json" });
      const data = input.map((text, index) => ({
        index,
        embedding: [text.length, text.split(" ").length, 1],
      }));
      response.end(JSON.stringify({ data: data.toReversed() }));
    });
  });
}

const endpoint = new Endpoint();
let lexical: Serving;
let modelled: Serving;

before(async () => {
  await new Promise<void>((resolve) => {
    endpoint.server.listen(0, "127.0.0.1", resolve);
  });
  const { port } = endpoint.server.address() as AddressInfo;
  lexical = await serve();
  modelled = await serve({
    env: {
      PLATFORM_VAULT_EMBEDDING_URL: `http://127.0.0.1:${port}/v1`,
      PLATFORM_VAULT_EMBEDDING_MODEL: "tiny",
      PLATFORM_VAULT_EMBEDDING_KEY: "sk-test-key",
    },
  });
});
after(async () => {
  await lexical[Symbol.asyncDispose]();
  await modelled[Symbol.asyncDispose]();
  endpoint.server.close();
});

async function makeBucket({ s3 }: Serving, bucket: string, document: object): Promise<void> {
  await s3.must("PUT", `/${bucket}`);
  await s3.must("PUT", `/${bucket}?vector-index`, { body: JSON.stringify(document) });
}

async function readStatus({ s3 }: Serving, target: string): Promise<unknown> {
  return (await s3.must("HEAD", target)).headers["x-store-vector-status"];
}

test("lexical vectors find texts by their words", async () => {
  const { s3 } = lexical;
  const embed = { from: "body", types: ["text/*"], max_bytes: 1_000 };
  await makeBucket(lexical, "texts", { dimension: 256, metric: "cosine", embed });
  const text = { "content-type": "text/plain; charset=utf-8" };
  const texts: [key: string, body: string][] = [
    ["tea", "Green tea is made of leaves that are not fermented."],
    ["coffee", "Coffee beans are roasted, and ground before brewing."],
    ["leaf", "The leaves of tea are picked by hand in spring."],
    ["bike", "A bicycle has two wheels and a chain."],
  ];
  for (const [key, body] of texts) await s3.must("PUT", `/texts/${key}`, { body, headers: text });
  await s3.must("PUT", "/texts/image", {
    body: "tea leaves",
    headers: { "content-type": "image/png" },
  });
  await s3.must("PUT", "/texts/empty", { headers: text });
  await waitFor(async () => {
    const states = await Promise.all(texts.map(([key]) => readStatus(lexical, `/texts/${key}`)));
    return states.every((state) => state === "stored");
  });
  await waitFor(async () => (await readStatus(lexical, "/texts/image")) === undefined);
  assert.equal((await s3.send("GET", "/texts/image?vector")).code, "NoSuchVector");
  const similar = await s3.must("GET", "/texts?similar=tea&k=3");
  const results = json(similar.text)["results"] as { key: string }[];
  assert.deepEqual([results.length, results[0]!.key], [3, "leaf"]);
  const refused = await s3.send("PUT", "/texts?vector-index", {
    body: JSON.stringify({ dimension: 384, metric: "cosine", embed: { from: "key" } }),
  });
  assert.match(refused.text, /lexical embedding has 256/);
  const wrong = await s3.send("PUT", "/texts?vector-index", {
    body: JSON.stringify({ dimension: 256, metric: "cosine", embed: { from: "bodies" } }),
  });
  assert.match(String(json(wrong.text)["message"]), /^embed\.from: expected body/);
});

test("an endpoint gets texts in batches, with its key, and given vectors stay", async () => {
  const { s3, vault } = modelled;
  await makeBucket(modelled, "keys", {
    dimension: 3,
    metric: "euclidean",
    embed: { from: "metadata.title" },
  });
  await s3.must("PUT", "/keys/given", {
    body: "x",
    headers: { "x-store-vector": "[1,2,3]", "x-amz-meta-title": "never" },
  });
  await Promise.all(
    Array.from({ length: 20 }, (_, n) =>
      s3.must("PUT", `/keys/${n}`, { body: "x", headers: { "x-amz-meta-title": `title ${n}` } }),
    ),
  );
  await waitFor(async () => {
    const states = await Promise.all(
      Array.from({ length: 20 }, (_, n) => readStatus(modelled, `/keys/${n}`)),
    );
    return states.every((state) => state === "stored");
  });
  const vectorOf = async (key: string) =>
    json((await s3.must("GET", `/keys/${key}?vector`)).text)["vector"];
  assert.deepEqual(
    [await vectorOf("7"), await vectorOf("12"), await vectorOf("given")],
    [
      [7, 2, 1],
      [8, 2, 1],
      [1, 2, 3],
    ],
  );
  const asked = endpoint.requests.flatMap(({ input }) => input);
  assert.deepEqual(asked.toSorted(), Array.from({ length: 20 }, (_, n) => `title ${n}`).toSorted());
  assert.ok(endpoint.requests.length < 20, `${endpoint.requests.length} requests`);
  assert.ok(
    endpoint.requests.every(
      ({ model, authorization }) => model === "tiny" && authorization === "Bearer sk-test-key",
    ),
  );
  assert.doesNotMatch(vault.output, /sk-test-key/);
});

test("an endpoint that fails is asked again, also after a kill, and a refused text has failed", async () => {
  const { s3, vault } = modelled;
  await makeBucket(modelled, "retries", { dimension: 3, metric: "dot", embed: { from: "body" } });
  endpoint.status = 503;
  await s3.must("PUT", "/retries/late", { body: "some text" });
  await s3.must("PUT", "/retries/refused", { body: "this is refused" });
  await waitFor(async () => (await readStatus(modelled, "/retries/refused")) === "failed");
  assert.equal(await readStatus(modelled, "/retries/late"), "pending");
  await vault.kill();
  endpoint.status = 200;
  await vault.start();
  await waitFor(async () => (await readStatus(modelled, "/retries/late")) === "stored");
  await s3.must("PUT", "/retries/refused", { body: "now it is another text" });
  await waitFor(async () => (await readStatus(modelled, "/retries/refused")) === "stored");
  await s3.must("DELETE", "/retries/late");
  await s3.must("PUT", "/retries/short-lived", { body: "short" });
  await s3.must("DELETE", "/retries/short-lived");
  await s3.must("PUT", "/retries/last", { body: "last" });
  await waitFor(async () => (await readStatus(modelled, "/retries/last")) === "stored");
});

test("objects that were there before get their vectors in the background, also after a kill", async () => {
  const { s3, vault } = modelled;
  const index = { dimension: 3, metric: "euclidean" };
  await makeBucket(modelled, "older", index);
  // More than are planned at once.
  const count = 1_100;
  let next = 0;
  const lane = async (): Promise<void> => {
    while (next < count) await s3.must("PUT", `/older/${"x".repeat(1 + (next++ % 9))}-${next}`);
  };
  await Promise.all(Array.from({ length: 16 }, lane));
  await s3.must("PUT", "/older/given", { body: "x", headers: { "x-store-vector": "[1,2,3]" } });
  endpoint.status = 503;
  const embed = { from: "key" };
  const configure = (document: object) =>
    s3.must("PUT", "/older?vector-index", { body: JSON.stringify(document) });
  await configure({ ...index, embed });
  await vault.kill();
  await vault.start();
  const countTasks = async (kind: string): Promise<number> => {
    const { text } = await modelled.admin.must("GET", "/admin/tasks");
    const { rules } = JSON.parse(text) as {
      rules: { kind: string; bucket: string; waiting: number }[];
    };
    return rules.find((rule) => rule.kind === kind && rule.bucket === "older")?.waiting ?? 0;
  };
  await waitFor(async () => (await countTasks("embed-existing")) === 0, "all tasks");
  assert.equal(await countTasks("embed"), count);
  endpoint.status = 200;
  await vault.kill();
  await vault.start();
  await waitFor(async () => (await countTasks("embed")) === 0, "all vectors", 120_000);
  const search = { vector: [9, 1, 1], k: 100, filter: { key: { $ne: "given" } } };
  const found = await s3.must("POST", "/older?vector-search", { body: JSON.stringify(search) });
  assert.equal(json(found.text)["searched"], count);
  const given = await s3.must("GET", "/older/given?vector");
  assert.deepEqual(json(given.text)["vector"], [1, 2, 3]);

  // Without a source, and with the same one, nothing is planned.
  await configure({ ...index, embed });
  await configure(index);
  assert.equal(await countTasks("embed-existing"), 0);
});
