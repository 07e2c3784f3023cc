// Models of a route at a real worker: the fallback answers if the primary fails or is not confident, and both are billed.
import assert from "node:assert/strict";
import { once } from "node:events";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createServer, type Server } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, afterEach, test } from "node:test";
import { waitFor } from "@platform/testing/wait";
import OpenAI from "openai";
import type { AiBudget, AiSpec, HeaderRules, RoutingSpec } from "../../src/shared-state/index.ts";
import {
  createModelProvider,
  type MockOptions,
  type ModelProvider,
} from "../fixture/model-provider.ts";
import {
  ask,
  type GateWorker,
  startGate,
  startUpstream,
  type TestAnswer,
  type TestRoute,
} from "./gate-worker.ts";

const folder = mkdtempSync(join(tmpdir(), "gate-routing-"));
const stops: (() => unknown)[] = [];
afterEach(async () => {
  for (const stop of stops.splice(0).reverse()) await stop();
});
after(() => rmSync(folder, { recursive: true }));

const CHAT = "/v1/chat/completions";
const MESSAGES = [{ role: "user", content: "Say hello to the world, please." }];
const BODY = { model: "whatever", messages: MESSAGES, max_tokens: 100 };
/** USD per million tokens. */
const PRICES = { small: { input: 1, output: 1 }, large: { input: 10, output: 10 } };

interface Routed {
  gate: GateWorker;
  primary: ModelProvider;
  fallback: ModelProvider;
  urls: { primary: string; fallback: string };
  ask: (body?: object, path?: string, headers?: Record<string, string>) => Promise<TestAnswer>;
  /** The members `ai` of the access log. */
  readLog: () => Record<string, unknown>[];
}

interface Settings {
  primary?: MockOptions;
  fallback?: MockOptions;
  routing?: Partial<RoutingSpec>;
  route?: Partial<TestRoute>;
  ai?: Partial<AiSpec>;
  budgets?: readonly AiBudget[];
  /** Fields of the primary's responses. */
  fields?: Record<string, string>;
  otlpEndpoint?: string;
}

async function serve(server: Server): Promise<string> {
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  stops.push(
    () => server.close(),
    () => server.closeAllConnections(),
  );
  const { port } = server.address() as { port: number };
  return `http://127.0.0.1:${port}`;
}

function rules(key: string): HeaderRules {
  return {
    removeRequest: ["Authorization", "Accept-Encoding"],
    addRequest: [
      ["Authorization", key],
      ["Accept-Encoding", "identity"],
    ],
    removeResponse: [],
    addResponse: [],
  };
}

async function startProviders({ primary: first, fallback: second, fields = {} }: Settings) {
  const usage = { input: 1_000, output: 100 };
  const primary = createModelProvider({ usage, ...first });
  const fallback = createModelProvider({ usage, texts: ["From ", "fallback"], ...second });
  primary.server.prependListener("request", (_request, response) => {
    for (const [name, value] of Object.entries(fields)) response.setHeader(name, value);
  });
  const urls = { primary: await serve(primary.server), fallback: await serve(fallback.server) };
  return { primary, fallback, urls };
}

function describeRoute(settings: Settings, urls: Routed["urls"]): TestRoute {
  const others = settings.route?.targets ?? [];
  const ai: AiSpec = {
    streamMsMax: 600_000,
    recordsPrompts: false,
    passesUnknown: false,
    routing: {
      primary: { target: others.length, model: "small" },
      fallback: { target: others.length + 1, model: "large" },
      statuses: [429, 500, 502, 503, 504, 529],
      ...settings.routing,
    },
    ...settings.ai,
  };
  const model = (url: string, key: string, weight: number): TestRoute["targets"][number] => ({
    url,
    weight,
    model: { keepsHost: false, headers: rules(key) },
  });
  return {
    accessLog: true,
    ...settings.route,
    targets: [
      ...others,
      model(urls.primary, "key of the primary", others.length === 0 ? 1 : 0),
      model(urls.fallback, "key of the fallback", 0),
    ],
    steps: { ai },
  };
}

function readLines(path: string): Record<string, unknown>[] {
  if (!existsSync(path)) return [];
  return readFileSync(path, "utf8")
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => (JSON.parse(line) as { ai: Record<string, unknown> }).ai);
}

async function open(settings: Settings = {}): Promise<Routed> {
  const providers = await startProviders(settings);
  const path = join(folder, `${process.hrtime.bigint()}.jsonl`);
  const gate = await startGate([describeRoute(settings, providers.urls)], {
    aiPrices: PRICES,
    accessLog: { path, fileBytesMax: 10_000_000, filesMax: 1 },
    ...(settings.otlpEndpoint === undefined ? {} : { otlpEndpoint: settings.otlpEndpoint }),
  });
  stops.push(() => gate.stop());
  if (settings.budgets !== undefined) await gate.apply({ budgets: settings.budgets });
  return {
    gate,
    ...providers,
    ask: (body = {}, to = CHAT, headers = {}) =>
      ask(gate.port, to, {
        method: "POST",
        headers: { "content-type": "application/json", ...headers },
        body: JSON.stringify({ ...BODY, ...body }),
      }),
    readLog: () => readLines(path),
  };
}

async function readAi({ readLog }: Routed, index = 0): Promise<Record<string, unknown>> {
  await waitFor(() => readLog().length > index);
  return readLog()[index]!;
}

function readContent(body: string): string {
  const answer = JSON.parse(body) as { choices: { message: { content: string } }[] };
  return answer.choices[0]!.message.content;
}

test("the primary gets requests, with its model, key and host", async () => {
  const routed = await open();
  const { headers, status, body } = await routed.ask({}, CHAT, { authorization: "the client's" });
  assert.equal(status, 200);
  assert.equal(readContent(body), "Hello, world!");
  assert.equal(headers["x-llm-model"], "small");
  assert.equal(headers["x-llm-fallback"], undefined);
  assert.equal(headers["x-token-cost"], "0.0011");
  const [received] = routed.primary.received;
  assert.equal(received!.body!["model"], "small");
  assert.equal(received!.headers.authorization, "key of the primary");
  assert.equal(received!.headers.host, routed.urls.primary.replace("http://", ""));
  const { model, cost_usd: cost, fallback } = await readAi(routed);
  assert.deepEqual([model, cost, fallback], ["small", 0.0011, undefined]);
  assert.equal(routed.fallback.received.length, 0);
});

test("the span of a request has its model, usage, cost and fallback, but no text", async () => {
  let spans = "";
  const collector = await startUpstream((request, response) => {
    request.on("data", (chunk) => (spans += String(chunk)));
    request.on("end", () => response.setHeader("content-type", "application/json").end("{}"));
  });
  stops.push(collector.stop);
  const answer = { status: 503, body: '{"error":{"message":"overloaded"}}' };
  const routed = await open({ primary: { answer }, otlpEndpoint: collector.url });
  const traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
  await routed.ask({}, CHAT, { traceparent });
  const drained = routed.gate.hear("drained");
  routed.gate.send({ type: "drain", deadlineMs: 1_000 });
  await drained;
  const read = (name: string): unknown => {
    const at = spans.indexOf(`"key":"${name}"`);
    return at === -1 ? undefined : /"value":\{"\w+":("?)([^"}]*)\1/.exec(spans.slice(at))?.[2];
  };
  assert.equal(read("gen_ai.operation.name"), "chat");
  assert.equal(read("gen_ai.request.model"), "large");
  assert.equal(read("gen_ai.usage.input_tokens"), "1000");
  assert.equal(read("gen_ai.usage.output_tokens"), "100");
  assert.equal(read("platform.ai.cost_usd"), "0.011");
  assert.equal(read("platform.ai.fallback"), "error");
  assert.ok(!spans.includes(MESSAGES[0]!.content));
});

for (const stream of [false, true]) {
  const form = stream ? "streamed" : "plain";

  test(`the fallback answers after the statuses of failures, ${form}`, async () => {
    const routed = await open();
    for (const [index, status] of [429, 500, 502, 503, 504, 529].entries()) {
      const answer = { status, body: '{"error":{"message":"overloaded"}}' };
      routed.primary.options = { ...routed.primary.options, answer };
      const { headers, status: sent, body } = await routed.ask({ stream });
      assert.equal(sent, 200);
      assert.equal(headers["x-llm-model"], "large");
      assert.equal(headers["x-llm-fallback"], "error");
      assert.ok(body.includes("fallback"));
      assert.ok(!body.includes("overloaded"));
      const received = routed.fallback.received[index];
      assert.equal(received!.body!["model"], "large");
      assert.deepEqual(received!.body!["messages"], MESSAGES);
      assert.equal(received!.headers.authorization, "key of the fallback");
      const { model, cost_usd: cost, fallback } = await readAi(routed, index);
      assert.deepEqual([model, cost, fallback], ["large", 0.011, "error"], `after ${status}`);
    }
  });

  test(`the fallback answers if the primary cannot be reached or breaks off, ${form}`, async () => {
    const routed = await open();
    routed.primary.server.close();
    routed.primary.server.closeAllConnections();
    const { headers, body } = await routed.ask({ stream });
    assert.equal(headers["x-llm-fallback"], "error");
    assert.ok(body.includes("fallback"));
    const cut = await open();
    cut.primary.server.prependListener("request", (_request, response) => response.destroy());
    assert.equal((await cut.ask({ stream })).headers["x-llm-fallback"], "error");
  });

  test(`a request is refused with the primary's error if both fail, ${form}`, async () => {
    const answer = { status: 503, body: '{"error":{"message":"from the primary"}}' };
    const routed = await open({ primary: { answer } });
    routed.fallback.server.close();
    routed.fallback.server.closeAllConnections();
    const { status, body } = await routed.ask({ stream });
    assert.equal(status, 502);
    assert.equal(
      (JSON.parse(body) as { error: { code: string } }).error.code,
      "upstream_unreachable",
    );
    assert.equal((await readAi(routed))["fallback"], "failed");
  });
}

test("other statuses are those of the primary, and `on_status` chooses", async () => {
  const answer = { status: 400, body: '{"error":{"message":"bad"}}' };
  const routed = await open({ primary: { answer } });
  assert.equal((await routed.ask()).status, 400);
  const chosen = await open({ primary: { answer }, routing: { statuses: [400] } });
  assert.equal((await chosen.ask()).headers["x-llm-fallback"], "error");
});

test("a low confidence is answered by the fallback, and both are billed", async () => {
  const confidence = { field: "X-Confidence", min: 0.7 };
  const routed = await open({ routing: { confidence }, fields: { "x-confidence": "0.69" } });
  const { headers, body } = await routed.ask();
  assert.equal(readContent(body), "From fallback");
  assert.equal(headers["x-llm-fallback"], "confidence");
  assert.equal(headers["x-llm-model"], "large");
  assert.equal(headers["x-token-cost"], "0.0121");
  const line = await readAi(routed);
  assert.deepEqual(
    [line["fallback"], line["cost_usd"], line["tokens_in"], line["tokens_out"]],
    ["confidence", 0.0121, 2_000, 200],
  );
  // A stream is not waited for.
  const streamed = await routed.ask({ stream: true });
  assert.equal(streamed.headers["x-llm-fallback"], "confidence");
  assert.ok(streamed.body.includes("fallback"));
  assert.ok(!streamed.body.includes("world"));
  assert.ok(((await readAi(routed, 1))["cost_usd"] as number) > 0.011);
});

test("a confidence that is high enough, missing or unreadable is not low", async () => {
  const confidence = { field: "X-Confidence", min: 0.7 };
  const fields: Record<string, string> = {};
  const routed = await open({ routing: { confidence }, fields });
  for (const value of ["0.7", "", "NaN", "high", "0,1"]) {
    fields["x-confidence"] = value;
    const { headers, body } = await routed.ask();
    assert.equal(readContent(body), "Hello, world!", value);
    assert.equal(headers["x-llm-fallback"], undefined);
  }
});

test("the primary's answer is kept if the fallback fails after a low confidence", async () => {
  const confidence = { field: "X-Confidence", min: 0.7 };
  const fields = { "x-confidence": "0.1", "x-own": "kept" };
  const answer = { status: 529, body: "{}" };
  const failing = await open({ routing: { confidence }, fields, fallback: { answer } });
  const gone = await open({ routing: { confidence }, fields });
  gone.fallback.server.close();
  gone.fallback.server.closeAllConnections();
  for (const routed of [failing, gone]) {
    const { status, headers, body } = await routed.ask();
    assert.equal(status, 200);
    assert.equal(readContent(body), "Hello, world!");
    assert.equal(headers["x-own"], "kept");
    assert.equal(headers["x-llm-model"], "small");
    assert.equal(headers["x-llm-fallback"], "failed");
    assert.equal(headers["x-token-cost"], "0.0011");
    assert.equal(headers["content-type"], "application/json");
    assert.equal((await readAi(routed))["fallback"], "failed");
  }
});

const CHAT_PREAMBLE = `data: ${JSON.stringify({ choices: [{ index: 0, delta: { role: "assistant", content: "" }, finish_reason: null }] })}\n\n`;
const CHAT_TEXT = CHAT_PREAMBLE.replace('"content":""', '"content":"Hel"');
const CHAT_ERROR = `data: ${JSON.stringify({ error: { message: "overloaded", type: "server_error" } })}\n\n`;
const START = `event: message_start\ndata: {"type":"message_start","message":{"id":"m","content":[],"usage":{"input_tokens":1000,"output_tokens":1}}}\n\n`;
const MESSAGE_ERROR = `event: error\ndata: {"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}\n\n`;
const SILENT: readonly [what: string, path: string, body: string][] = [
  ["an error after the preamble", CHAT, CHAT_PREAMBLE + CHAT_ERROR],
  ["an error after message_start", "/v1/messages", START + MESSAGE_ERROR],
  ["an early end", CHAT, CHAT_PREAMBLE],
  ["nothing but a comment", CHAT, ": keep-alive\n\n"],
  ["an event that is too long", CHAT, `data: "${"x".repeat(1_100_000)}"\n\n`],
];
test("a stream that fails before its first content is replaced by that of the fallback", async () => {
  const routed = await open();
  for (const [index, [what, path, body]] of SILENT.entries()) {
    routed.primary.options = { answer: { type: "text/event-stream", body } };
    const answer = await routed.ask({ stream: true }, path);
    assert.equal(answer.status, 200, what);
    assert.equal(answer.headers["x-llm-fallback"], "error", what);
    assert.ok(answer.body.includes("fallback"), what);
    assert.ok(!answer.body.toLowerCase().includes("overloaded"), what);
    assert.ok(!answer.body.includes("xxx"), what);
    assert.ok(((await readAi(routed, index))["cost_usd"] as number) >= 0.011, what);
  }
});

test("a stream that fails after its first content is not replaced", async () => {
  const body = CHAT_PREAMBLE + CHAT_TEXT + CHAT_ERROR;
  const routed = await open({ primary: { answer: { type: "text/event-stream", body } } });
  const answer = await routed.ask({ stream: true });
  assert.ok(answer.body.includes("Hel") && answer.body.includes("overloaded"));
  assert.equal(answer.headers["x-llm-fallback"], undefined);
  assert.equal(routed.fallback.received.length, 0);
});

test("without a fallback that may go up, the primary's error is passed on", async () => {
  const answer = { status: 529, body: '{"error":{"message":"from the primary"}}' };
  const stream = { type: "text/event-stream", body: CHAT_PREAMBLE + CHAT_ERROR };
  // Enough for the primary only.
  const budgets = [{ tenant: "anonymous", maxPicoPerDay: 500_000_000n }];
  const routed = await open({ primary: { answer }, budgets });
  const plain = await routed.ask();
  assert.equal(plain.status, 529);
  assert.match(plain.body, /from the primary/);
  assert.equal(plain.headers["x-llm-fallback"], "failed");
  routed.primary.options = { answer: stream };
  const streamed = await routed.ask({ stream: true });
  assert.equal(streamed.status, 200);
  assert.match(streamed.body, /overloaded/);
  assert.equal(routed.fallback.received.length, 0);
});

test("requests that are none to a model go to the target, or to the primary without one", async () => {
  const other = createServer((_request, response) => response.end("the target"));
  const target = await serve(other);
  const both = await open({ route: { targets: [target] } });
  assert.equal((await ask(both.gate.port, "/v1/models")).body, "the target");
  assert.equal(readContent((await both.ask()).body), "Hello, world!");
  const routed = await open();
  assert.match((await ask(routed.gate.port, "/v1/models")).body, /"object":"list"/);
});

test("requests begin with the fallback while the circuit of the primary is open", async () => {
  const breaker = {
    requestsMin: 2,
    errorRate: 0.5,
    windowSeconds: 10,
    openMs: 60_000,
    openMsMax: 60_000,
    probes: 1,
  };
  const routed = await open({
    primary: { answer: { status: 503, body: "{}" } },
    route: { targets: [], resilience: { outlierStatuses: [], breaker } },
  });
  for (let count = 0; count < 4; count++)
    assert.equal((await routed.ask()).headers["x-llm-fallback"], "error");
  const before = routed.primary.received.length;
  assert.ok(before < 4);
  const { headers, body } = await routed.ask();
  assert.equal(headers["x-llm-fallback"], "error");
  assert.equal(headers["x-token-cost"], "0.011");
  assert.equal(readContent(body), "From fallback");
  assert.equal(routed.primary.received.length, before);
});

test("personal data has the same placeholders at both models", async () => {
  const answer = { status: 500, body: "{}" };
  const routed = await open({
    primary: { answer },
    fallback: { texts: ["Mail [EMA", "IL_1]"] },
    ai: { pii: { isReversible: true, kinds: ["email"], patterns: [] } },
  });
  const messages = [{ role: "user", content: "Write to anna@example.com" }];
  const plain = await routed.ask({ messages });
  assert.equal(readContent(plain.body), "Mail anna@example.com");
  const [received] = routed.fallback.received;
  assert.ok(!received!.raw.includes("anna@"));
});

test("openai: streamed and not, through the fallback", async () => {
  const routed = await open({ primary: { answer: { status: 429, body: "{}" } } });
  const openai = new OpenAI({
    apiKey: "none",
    baseURL: `http://127.0.0.1:${routed.gate.port}/v1`,
    maxRetries: 0,
  });
  const messages = [{ role: "user" as const, content: "hello" }];
  const plain = await openai.chat.completions.create({ model: "m", messages });
  assert.equal(plain.choices[0]?.message.content, "From fallback");
  const helper = openai.chat.completions.stream({ model: "m", messages });
  assert.equal(await helper.finalContent(), "From fallback");
});
