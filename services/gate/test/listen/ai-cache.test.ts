// Stored answers of models at a real worker: hits in the asked form, scopes, personal data, invalidation, similar questions.
import assert from "node:assert/strict";
import { once } from "node:events";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, afterEach, test } from "node:test";
import { waitFor } from "@platform/testing/wait";
import Anthropic from "@anthropic-ai/sdk";
import OpenAI from "openai";
import {
  type AiFigures,
  type AiSpec,
  type FromWorker,
  type GlobalSpec,
  SharedCache,
} from "../../src/shared-state/index.ts";
import {
  createModelProvider,
  type MockOptions,
  type ModelProvider,
} from "../fixture/model-provider.ts";
import { ask, type GateWorker, startGate, type TestAnswer } from "./gate-worker.ts";

const folder = mkdtempSync(join(tmpdir(), "gate-answers-"));
const stops: (() => unknown)[] = [];
afterEach(async () => {
  for (const stop of stops.splice(0).reverse()) await stop();
});
after(() => rmSync(folder, { recursive: true }));

const CHAT = "/v1/chat/completions";
const QUESTION = "What is the capital of France?";

interface Cached {
  gate: GateWorker;
  provider: ModelProvider;
  url: string;
  figures: AiFigures[];
  ask: (
    text: string,
    more?: Record<string, unknown>,
    options?: { path?: string; headers?: Record<string, string> },
  ) => Promise<TestAnswer>;
  readLog: () => Record<string, unknown>[];
}

async function open(
  options: MockOptions = {},
  ai: Partial<AiSpec> = {},
  globals: Partial<GlobalSpec> = {},
): Promise<Cached> {
  const provider = createModelProvider({ usage: { input: 1_000, output: 50 }, ...options });
  provider.server.listen(0, "127.0.0.1");
  await once(provider.server, "listening");
  const { port } = provider.server.address() as { port: number };
  const path = join(folder, `${process.hrtime.bigint()}.jsonl`);
  const spec: AiSpec = {
    streamMsMax: 600_000,
    recordsPrompts: false,
    passesUnknown: false,
    cache: { ttlMs: 60_000, threshold: 0.85 },
    ...ai,
  };
  const targets = [`http://127.0.0.1:${port}`];
  const gate = await startGate([{ targets, accessLog: true, steps: { ai: spec } }], {
    aiPrices: { m: { input: 10, output: 20 } },
    accessLog: { path, fileBytesMax: 10_000_000, filesMax: 1 },
    ...globals,
  });
  const figures: AiFigures[] = [];
  gate.worker.on("message", (message: FromWorker) => {
    if (message.type === "ai-figures") figures.push(...message.figures);
  });
  stops.push(
    () => provider.server.close(),
    () => provider.server.closeAllConnections(),
    () => gate.stop(),
  );
  return {
    gate,
    provider,
    url: `http://127.0.0.1:${gate.port}`,
    figures,
    ask: (text, more = {}, { path: to = CHAT, headers = {} } = {}) => {
      const content = to.endsWith("/responses")
        ? { input: text }
        : to.endsWith("/chat/completions") || to.endsWith("/messages")
          ? { messages: [{ role: "user", content: text }] }
          : { prompt: text };
      return ask(gate.port, to, {
        method: "POST",
        headers: { "content-type": "application/json", ...headers },
        body: JSON.stringify({ model: "m", max_tokens: 100, ...content, ...more }),
      });
    },
    readLog: () =>
      existsSync(path)
        ? readFileSync(path, "utf8")
            .split("\n")
            .filter((line) => line !== "")
            .map((line) => (JSON.parse(line) as { ai: Record<string, unknown> }).ai)
        : [],
  };
}

function isHit({ headers }: TestAnswer): boolean {
  return headers["x-cache"] === "HIT";
}

test("a question is answered again without the provider, in either form, and costs nothing", async () => {
  const cached = await open();
  for (const path of [CHAT, "/v1/completions", "/v1/messages", "/v1/responses"]) {
    for (const [first, second] of [
      [false, true],
      [true, false],
    ] as const) {
      const text = `${QUESTION} ${String(first)}`;
      const before = cached.provider.received.length;
      const miss = await cached.ask(text, { stream: first }, { path });
      assert.equal(miss.headers["x-cache"], "MISS");
      assert.notEqual(miss.headers["x-token-cost"], "0");
      for (const stream of [second, first]) {
        const hit = await cached.ask(text, { stream }, { path });
        assert.ok(isHit(hit), `${path} ${String(stream)}`);
        assert.equal(hit.headers["x-cache-similarity"], "1.00");
        assert.equal(hit.headers["x-token-cost"], "0");
        assert.match(hit.headers["content-type"]!, stream ? /event-stream/ : /json/);
        assert.ok(hit.body.includes("Hello, world!"));
      }
      assert.equal(cached.provider.received.length, before + 1);
    }
  }
  await waitFor(() => cached.figures.reduce((sum, one) => sum + one.cacheHits, 0) === 16);
  await waitFor(() => cached.readLog().length === 24);
  const hits = cached.readLog().filter(({ cache }) => cache === "hit");
  assert.equal(hits.length, 16);
  for (const { cost_usd: cost, tokens_in: tokens } of hits)
    assert.deepEqual([cost, tokens], [0, 0]);
});

test("SDKs read hits like answers of the provider", async () => {
  const { url, provider } = await open({ texts: ["Grüße, ", "👋 Welt"] });
  const openai = new OpenAI({ apiKey: "k", baseURL: `${url}/v1`, maxRetries: 0 });
  const anthropic = new Anthropic({ apiKey: "k", baseURL: url, maxRetries: 0 });
  const messages = [{ role: "user" as const, content: "hello" }];
  const ids = new Set<string>();
  for (let round = 0; round < 2; round++) {
    const chat = await openai.chat.completions.create({ model: "m", messages });
    assert.equal(chat.choices[0]?.message.content, "Grüße, 👋 Welt");
    assert.equal(chat.usage?.total_tokens, 1_050);
    ids.add(chat.id);
    const stream = openai.chat.completions.stream({
      model: "m",
      messages,
      stream_options: { include_usage: true },
    });
    assert.equal(await stream.finalContent(), "Grüße, 👋 Welt");
    assert.equal((await stream.totalUsage()).prompt_tokens, 1_000);
    const response = await openai.responses.create({ model: "m", input: "hello" });
    assert.equal(response.output_text, "Grüße, 👋 Welt");
    const message = await anthropic.messages.create({ model: "m", max_tokens: 9, messages });
    assert.deepEqual(message.content, [{ type: "text", text: "Grüße, 👋 Welt" }]);
    assert.equal(message.usage.output_tokens, 50);
    const events = anthropic.messages.stream({ model: "m", max_tokens: 9, messages });
    assert.equal(await events.finalText(), "Grüße, 👋 Welt");
  }
  const streamed = openai.responses.stream({ model: "m", input: "hello" });
  assert.equal((await streamed.finalResponse()).output_text, "Grüße, 👋 Welt");
  assert.equal(ids.size, 2);
  assert.equal(provider.received.length, 3);
});

test("other spellings of a question are the same, other questions and callers are not", async () => {
  const cached = await open();
  await cached.ask(QUESTION);
  assert.ok(isHit(await cached.ask("what's the capital of  France")));
  for (const text of ["What is the capital of Spain?", "What is the capital of france?"])
    assert.ok(!isHit(await cached.ask(text)), text);
  for (const more of [{ model: "n" }, { temperature: 0 }, { max_tokens: 99 }])
    assert.ok(!isHit(await cached.ask(QUESTION, more)), JSON.stringify(more));
  for (const headers of [
    { authorization: "Bearer other" },
    { "x-api-key": "other" },
    { "openai-project": "p" },
  ] as Record<string, string>[])
    assert.ok(!isHit(await cached.ask(QUESTION, {}, { headers })), JSON.stringify(headers));
  assert.ok(isHit(await cached.ask(QUESTION)));
});

test("Cache-Control: no-store neither reads nor writes, no-cache writes", async () => {
  const cached = await open();
  const noStore = { headers: { "cache-control": "no-store" } };
  const noCache = { headers: { "cache-control": "no-cache" } };
  await cached.ask(QUESTION, {}, noStore);
  assert.equal((await cached.ask(QUESTION, {}, noStore)).headers["x-cache"], undefined);
  assert.ok(!isHit(await cached.ask(QUESTION, {}, noCache)));
  assert.ok(!isHit(await cached.ask(QUESTION, {}, noCache)));
  assert.ok(isHit(await cached.ask(QUESTION)));
});

test("answers that are no 200, were cut, or have no end are not stored", async () => {
  const cached = await open();
  const cases: [MockOptions, stream: boolean][] = [
    [{ answer: { status: 500, body: "{}" } }, false],
    [{ answer: { body: '{"error":{"message":"no"}}' } }, false],
    [{ answer: { body: "no JSON" } }, false],
    [{ end: "cut" }, true],
    [{ end: "silent" }, true],
  ];
  for (const [options, stream] of cases) {
    cached.provider.options = options;
    await cached.ask(QUESTION, { stream });
    cached.provider.options = {};
    const again = await cached.ask(QUESTION, { temperature: 1 });
    assert.ok(again.body.includes("Hello"));
  }
  assert.ok(!isHit(await cached.ask(QUESTION)));
});

test("stored answers have placeholders, which each hit fills with its own values", async () => {
  const pii = { isReversible: true, kinds: ["email"] as const, patterns: [] };
  for (const stream of [false, true]) {
    const cached = await open({ texts: ["Mail [EMA", "IL_1] and new@example.org"] }, { pii });
    const text = (email: string): string => `Write to ${email} now`;
    const first = await cached.ask(text("anna@example.com"), { stream });
    assert.ok(first.body.replaceAll(/"\}.*?"content":"/gs, "").includes("anna@example.com"));
    const second = await cached.ask(text("bob@example.com"));
    assert.ok(isHit(second));
    const { choices } = JSON.parse(second.body) as {
      choices: { message: { content: string } }[];
    };
    assert.equal(choices[0]!.message.content, "Mail bob@example.com and [EMAIL_2]");
    const third = await cached.ask(text("carl@example.com"), { stream: true });
    assert.ok(isHit(third) && third.body.includes("carl@example.com"));
    assert.ok(!third.body.includes("anna") && !third.body.includes("bob"));
  }
});

test("an answer expires", async () => {
  const cached = await open({}, { cache: { ttlMs: 300, threshold: 0.85 } });
  await cached.ask(QUESTION);
  assert.ok(isHit(await cached.ask(QUESTION)));
  await waitFor(async () => !isHit(await cached.ask(QUESTION)));
});

test("a hit is not limited by tokens", async () => {
  const cached = await open({ usage: { input: 50, output: 50 } }, { tokensPerMinute: 300 });
  assert.equal((await cached.ask(QUESTION)).status, 200);
  assert.ok(isHit(await cached.ask(QUESTION)));
  assert.equal((await cached.ask("Another question?")).status, 200);
  assert.equal((await cached.ask("Another question that is new?")).status, 429);
  assert.ok(isHit(await cached.ask(QUESTION)));
});

test("answers of the fallback, and those of low confidence, are not stored", async () => {
  const cached = await open(
    { answer: { status: 500, body: "{}" } },
    {
      routing: {
        primary: { target: 0, model: "m" },
        fallback: { target: 0, model: "n" },
        statuses: [500],
      },
    },
  );
  let count = 0;
  cached.provider.server.prependListener("request", () => {
    cached.provider.options = ++count % 2 === 1 ? { answer: { status: 500, body: "{}" } } : {};
  });
  for (let round = 0; round < 2; round++) {
    const answer = await cached.ask(QUESTION);
    assert.equal(answer.headers["x-llm-fallback"], "error");
    assert.ok(!isHit(answer));
  }
});

test("with vectors the control plane is asked, and a stored answer of its digest is served", async () => {
  const embedding = { url: "http://127.0.0.1:1/", model: "e" };
  const cached = await open({}, {}, { embedding });
  const added: Extract<FromWorker, { type: "add-similar" }>[] = [];
  let found: { digest: string; similarity: number } | undefined;
  cached.gate.worker.on("message", (message: FromWorker) => {
    if (message.type === "add-similar") added.push(message);
    if (message.type !== "find-similar") return;
    assert.equal(message.threshold, 0.85);
    cached.gate.send({ type: "similar-found", id: message.id, found });
  });
  await cached.ask(QUESTION);
  await waitFor(() => added.length === 1);
  found = { digest: added[0]!.digest, similarity: 0.91 };
  const hit = await cached.ask("Tell me the capital that France has.");
  assert.ok(isHit(hit));
  assert.equal(hit.headers["x-cache-similarity"], "0.91");
  // A digest of another scope is none of this one.
  const other = await cached.ask("Tell me the capital of France.", {}, { path: "/v1/messages" });
  assert.ok(!isHit(other));
  found = { digest: "unknown", similarity: 1 };
  assert.ok(!isHit(await cached.ask("Which town is the capital of France?")));
});

test("a purge of the path removes stored answers", async () => {
  const cached = await open();
  await cached.ask(QUESTION);
  const store = new SharedCache(cached.gate.shared.cache, 2);
  const { removed } = store.purge((key) => key.includes("/v1/chat"));
  assert.equal(removed, 1);
  assert.ok(!isHit(await cached.ask(QUESTION)));
});
