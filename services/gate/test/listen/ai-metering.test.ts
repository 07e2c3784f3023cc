// AI routes at a real worker, with a provider that replays the wire forms: what clients get, what is metered, what it costs.
import assert from "node:assert/strict";
import { once } from "node:events";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { type IncomingMessage, request } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, afterEach, test } from "node:test";
import { gzipSync } from "node:zlib";
import { waitFor } from "@platform/testing/wait";
import type { AiFigures, FromWorker, GlobalSpec } from "../../src/shared-state/index.ts";
import {
  createModelProvider,
  type MockOptions,
  type ModelProvider,
} from "../fixture/model-provider.ts";
import {
  ask,
  type GateWorker,
  startGate,
  startRawUpstream,
  type TestRoute,
} from "./gate-worker.ts";

const folder = mkdtempSync(join(tmpdir(), "gate-ai-"));
const stops: (() => unknown)[] = [];
afterEach(async () => {
  for (const stop of stops.splice(0).reverse()) await stop();
});
after(() => rmSync(folder, { recursive: true }));

const AI: Partial<TestRoute> = {
  steps: { ai: { streamMsMax: 600_000, recordsPrompts: false, passesUnknown: false } },
  headers: {
    removeRequest: ["Accept-Encoding"],
    addRequest: [["Accept-Encoding", "identity"]],
    removeResponse: [],
    addResponse: [],
  },
};
const PRICES = { "m-*": { input: 10, output: 20, cached_input: 1, cache_write: 12 } };
const MESSAGE = [{ role: "user", content: "Say hello to the world, please." }];

/** JSON of an answer, or of an error. */
interface ErrorJson {
  type?: string;
  model?: string;
  request_id?: string;
  error?: { type: string; code: string; param?: string };
}

interface AiGate {
  provider: ModelProvider;
  received: ModelProvider["received"];
  gate: GateWorker;
  figures: AiFigures[];
  readLog: () => Record<string, unknown>[];
}

async function open(
  options: MockOptions = {},
  route: Partial<TestRoute> = {},
  globals: Partial<GlobalSpec> = {},
): Promise<AiGate> {
  const provider = createModelProvider(options);
  provider.server.listen(0, "127.0.0.1");
  await once(provider.server, "listening");
  const { port } = provider.server.address() as { port: number };
  const path = join(folder, `access-${process.hrtime.bigint()}.jsonl`);
  const gate = await startGate(
    [{ targets: [`http://127.0.0.1:${port}`], accessLog: true, ...AI, ...route }],
    {
      aiPrices: PRICES,
      accessLog: { path, fileBytesMax: 10_000_000, filesMax: 1 },
      ...globals,
    },
  );
  const figures: AiFigures[] = [];
  gate.worker.on("message", (message: FromWorker) => {
    if (message.type === "ai-figures") figures.push(...message.figures);
  });
  stops.push(
    () => provider.server.close(),
    () => provider.server.closeAllConnections(),
    () => gate.stop(),
  );
  const readLog = (): Record<string, unknown>[] =>
    existsSync(path)
      ? readFileSync(path, "utf8")
          .split("\n")
          .filter((line) => line !== "")
          .map((line) => JSON.parse(line) as Record<string, unknown>)
      : [];
  return { provider, received: provider.received, gate, figures, readLog };
}

async function post(
  { gate }: AiGate,
  path: string,
  body: unknown,
  headers: Record<string, string> = {},
): Promise<Awaited<ReturnType<typeof ask>> & { json: ErrorJson }> {
  const text = typeof body === "string" ? body : JSON.stringify(body);
  const answer = await ask(gate.port, path, {
    method: "POST",
    headers: { "content-type": "application/json", ...headers },
    body: text,
  });
  let json: ErrorJson = {};
  try {
    json = JSON.parse(answer.body) as ErrorJson;
  } catch {
    // A stream, or an answer of the upstream.
  }
  return { ...answer, json };
}

async function readAi(gate: AiGate, index = 0): Promise<Record<string, unknown>> {
  await waitFor(() => gate.readLog().length > index);
  return gate.readLog()[index]!["ai"] as Record<string, unknown>;
}

/** The data of the events of a stream. */
function listData(body: string): string[] {
  return body
    .split("\n")
    .filter((line) => line.startsWith("data: "))
    .map((line) => line.slice(6));
}

const KINDS: [path: string, body: Record<string, unknown>][] = [
  ["/v1/chat/completions", { model: "m-1", messages: MESSAGE, max_tokens: 100 }],
  ["/v1/completions", { model: "m-1", prompt: "Say hello", max_tokens: 100 }],
  ["/v1/responses", { model: "m-1", input: "Say hello", max_output_tokens: 100 }],
  ["/v1/messages", { model: "m-1", messages: MESSAGE, max_tokens: 100 }],
];

test("plain answers of all kinds are metered and priced", async () => {
  const gate = await open({ usage: { input: 1_000, output: 50 }, model: "m-1-2026" });
  for (const [path, body] of KINDS) {
    const { status, headers, json } = await post(gate, path, body);
    assert.equal(status, 200, path);
    assert.equal(headers["x-token-cost"], "0.011", path);
    assert.equal(json.model, "m-1-2026");
  }
  const embedded = await post(gate, "/v1/embeddings", { model: "m-1", input: "Hello" });
  assert.equal(embedded.headers["x-token-cost"], "0.01");
  const counted = await post(gate, "/v1/messages/count_tokens", {
    model: "m-1",
    messages: MESSAGE,
  });
  assert.equal(counted.headers["x-token-cost"], "0");
  assert.deepEqual(await readAi(gate), {
    shape: "chat",
    model: "m-1",
    served_model: "m-1-2026",
    tokens_in: 1_000,
    tokens_out: 50,
    cached_tokens: 0,
    cost_usd: 0.011,
    priced: true,
    estimated: false,
  });
  await waitFor(() => gate.figures.reduce((sum, { requests }) => sum + requests, 0) === 6);
  assert.equal(
    gate.figures.reduce((sum, { inputTokens }) => sum + inputTokens, 0),
    5_000,
  );
  assert.ok(gate.received.every(({ headers }) => headers["accept-encoding"] === "identity"));
});

test("streams of all kinds pass event by event, end with their cost, and are metered once", async () => {
  const gate = await open({ usage: { input: 1_000, output: 50 } });
  for (const [index, [path, body]] of KINDS.entries()) {
    const answer = await post(gate, path, { ...body, stream: true }, { TE: "trailers" });
    assert.equal(answer.status, 200, path);
    assert.ok(Number(answer.headers["x-token-cost"]) > 0, path);
    assert.match(
      answer.body,
      /\n\n: x-token-cost 0\.011\n\n(?:event|data): [^\n]*(?:\ndata: [^\n]*)?\n\n$/,
      path,
    );
    assert.ok(!answer.body.includes('"choices":[]'), "the client did not ask for the usage");
    const ai = await readAi(gate, index);
    assert.equal(ai["cost_usd"], 0.011, path);
    assert.equal(ai["estimated"], false, path);
  }
});

test("the settled cost of a stream is a trailer for clients that accept trailers", async () => {
  const gate = await open({ usage: { input: 1_000, output: 50 } });
  const sent = request({
    port: gate.gate.port,
    path: "/v1/chat/completions",
    method: "POST",
    headers: { TE: "trailers", "content-type": "application/json" },
  });
  sent.end(JSON.stringify({ ...KINDS[0]![1], stream: true }));
  const [answer] = (await once(sent, "response")) as [IncomingMessage];
  answer.resume();
  await once(answer, "end");
  assert.equal(answer.trailers["x-token-cost"], "0.011");
});

test("a client that asks for the usage of a stream gets it", async () => {
  const gate = await open();
  const body = { ...KINDS[0]![1], stream: true, stream_options: { include_usage: true } };
  const answer = await post(gate, "/v1/chat/completions", body);
  const usage = listData(answer.body).find((data) => data.includes('"choices":[]'));
  assert.ok(usage !== undefined);
  assert.equal(gate.received[0]!.raw, JSON.stringify(body), "the request is not changed");
});

test("the request is forwarded as it was sent, but for the usage", async () => {
  const gate = await open();
  const sent = `{ "model":"m-1", "messages":[{"role":"user","content":"\\u00fcber 1.0"}],"seed":1.0,"stream":true}`;
  await post(gate, "/v1/chat/completions", sent);
  const spliced = sent.replace("{", '{"stream_options":{"include_usage":true},');
  assert.equal(gate.received[0]!.raw, spliced);
});

test("odd reports: with choices, twice, none, impossible, gzip", async () => {
  const cases: [options: MockOptions, stream: boolean, expected: Record<string, unknown>][] = [
    [{ report: "with-choices" }, true, { tokens_in: 12, tokens_out: 5, estimated: false }],
    [{ report: "twice" }, true, { tokens_in: 12, tokens_out: 5, estimated: false }],
    [{ report: "none" }, true, { estimated: true }],
    [{ report: "none" }, false, { estimated: true }],
    [{ usage: { input: 3, output: 0 } }, true, { tokens_out: 0, estimated: false }],
    [
      { rawUsage: '{"prompt_tokens":-5,"completion_tokens":2}' },
      false,
      { tokens_out: 2, estimated: true },
    ],
    [
      { rawUsage: '{"prompt_tokens":1000000000000000000,"completion_tokens":2}' },
      false,
      { estimated: true },
    ],
    [{ gzip: true }, false, { tokens_in: 12, estimated: false }],
    [{ end: "no-done" }, true, { tokens_in: 12, estimated: false }],
  ];
  const gate = await open();
  for (const [index, [options, isStream, expected]] of cases.entries()) {
    gate.provider.options = options;
    const body = { ...KINDS[0]![1], stream: isStream };
    const answer = await post(gate, "/v1/chat/completions", body, { "accept-encoding": "gzip" });
    const name = JSON.stringify(options);
    assert.equal(answer.status, 200, name);
    assert.ok(answer.body.includes(isStream ? '"Hello"' : "Hello, world!"), name);
    assert.equal(answer.headers["content-encoding"], undefined, name);
    const ai = await readAi(gate, index);
    for (const [member, value] of Object.entries(expected)) assert.equal(ai[member], value, name);
    if (expected["estimated"] === true) assert.ok(Number(ai["tokens_in"]) > 3, name);
  }
});

test("a stream that its provider breaks off, or ends early, ends with an error event and no [DONE]", async () => {
  const gate = await open();
  for (const end of ["cut", "silent"] as const) {
    for (const [path, body] of KINDS) {
      if (path === "/v1/completions") continue;
      gate.provider.options = { end, texts: ["one ", "two ", "three ", "four "] };
      const answer = await post(gate, path, { ...body, stream: true });
      assert.equal(answer.status, 200, `${end} ${path} ${answer.body}`);
      assert.ok(!answer.body.includes("[DONE]"), `${end} ${path}`);
      const events = answer.body.split("\n\n").filter((event) => event.startsWith("event: error"));
      assert.equal(events.length, 1, `${end} ${path}: ${answer.body}`);
      const json = JSON.parse(listData(events[0]!)[0]!) as ErrorJson;
      assert.equal(json.error?.code, "upstream_invalid_response");
      assert.equal(json.type, path === "/v1/messages" ? "error" : undefined);
    }
  }
  await waitFor(() => gate.readLog().length === 6);
  for (const line of gate.readLog()) {
    assert.equal(line["code"], "upstream_invalid_response");
    assert.ok(Number((line["ai"] as Record<string, unknown>)["cost_usd"]) > 0);
  }
});

test("a client that leaves pays for what the model has written until then", async () => {
  let wait: () => void = () => undefined;
  const isHeld = new Promise<void>((resolve) => (wait = resolve));
  let closed = false;
  const gate = await open({
    texts: ["a long answer ", "of several words ", "that is not read"],
    onEvent: async (index, response) => {
      response.on("close", () => (closed = true));
      if (index === 1) await isHeld;
    },
  });
  const sent = request({ port: gate.gate.port, path: "/v1/chat/completions", method: "POST" });
  sent.end(JSON.stringify({ ...KINDS[0]![1], stream: true }));
  const [answer] = (await once(sent, "response")) as [IncomingMessage];
  await once(answer, "data");
  sent.on("error", () => undefined);
  sent.destroy();
  const ai = await readAi(gate);
  assert.equal(ai["estimated"], true);
  assert.ok(Number(ai["tokens_out"]) > 0);
  await waitFor(() => closed);
  wait();
});

test("errors have the form of the API that the client speaks", async () => {
  const gate = await open({}, { auth: { type: "inherit" }, bodyBytesMax: 20_000 });
  const bad = '{"model":"m-1","model":"m-2"}';
  const chat = await post(gate, "/v1/chat/completions", bad);
  assert.equal(chat.status, 400);
  assert.equal(chat.headers["content-type"], "application/json");
  assert.equal(chat.headers["x-token-cost"], "0");
  assert.deepEqual(Object.keys(chat.json.error ?? {}), ["message", "type", "param", "code"]);
  assert.equal(chat.json.error?.type, "invalid_request_error");
  assert.equal(chat.json.error?.code, "bad_request");
  const wrong = await post(gate, "/v1/chat/completions", '{"model":5}');
  assert.equal(wrong.json.error?.param, "model");
  assert.equal(wrong.json.error?.code, "validation_failed");
  const messages = await post(gate, "/v1/messages", bad);
  assert.equal(messages.json.type, "error");
  assert.equal(messages.json.error?.type, "invalid_request_error");
  assert.match(String(messages.json.request_id), /^[0-9a-f]{32}$/);
  const large = await post(gate, "/v1/messages", `{"model":"${"x".repeat(20_000)}"}`);
  assert.equal(large.status, 413);
  assert.equal(large.json.error?.type, "request_too_large");
  const versioned = await ask(gate.gate.port, "/v1/models", {
    headers: { "anthropic-version": "2023-06-01" },
  });
  assert.equal(versioned.status, 200);
  assert.equal(versioned.headers["x-token-cost"], "0");
  assert.equal(gate.received.length, 1);
});

test("without an upstream, and without a token, errors have that form, too", async () => {
  const gone = await startRawUpstream((socket) => socket.destroy());
  stops.push(gone.stop);
  const gate = await startGate([
    { targets: [gone.url], ...AI },
    {
      prefix: "/closed/",
      targets: [gone.url],
      ...AI,
      steps: { ...AI.steps, requiresApiKey: true },
    },
  ]);
  stops.push(() => gate.stop());
  const body = JSON.stringify(KINDS[0]![1]);
  const failed = await ask(gate.port, "/v1/chat/completions", { method: "POST", body });
  assert.equal(failed.status, 502);
  const error = JSON.parse(failed.body) as { error: Record<string, unknown> };
  assert.equal(error.error["type"], "server_error");
  assert.equal(failed.headers["x-token-cost"], "0");
  const closed = await ask(gate.port, "/closed/v1/messages", { method: "POST", body });
  assert.equal(closed.status, 401);
  assert.equal((JSON.parse(closed.body) as ErrorJson).error?.type, "authentication_error");
});

test("bodies: coded ones are decoded, deep and large ones are refused, others pass unread", async () => {
  const gate = await open();
  const body = JSON.stringify(KINDS[0]![1]);
  const sent = request({
    port: gate.gate.port,
    path: "/v1/chat/completions",
    method: "POST",
    headers: { "content-encoding": "gzip" },
  });
  sent.end(gzipSync(body));
  const [answer] = (await once(sent, "response")) as [IncomingMessage];
  assert.equal(answer.statusCode, 200);
  answer.resume();
  assert.equal(gate.received[0]!.raw, body);
  assert.equal(gate.received[0]!.headers["content-encoding"], undefined);
  const deep = `{"model":"m","messages":${"[".repeat(10_000)}${"]".repeat(10_000)}}`;
  assert.equal((await post(gate, "/v1/chat/completions", deep)).status, 400);
  const unknown = await post(gate, "/v1/chat/completions", body, { "content-encoding": "x-own" });
  assert.equal(unknown.status, 400);
  const other = await post(gate, "/v1/files", "not JSON");
  assert.equal(other.status, 200);
  assert.equal(gate.received.at(-1)!.raw, "not JSON");
  assert.equal((await ask(gate.gate.port, "/v1/models")).status, 200);
  const upgrade = { connection: "Upgrade", upgrade: "websocket" };
  await ask(gate.gate.port, "/v1/realtime", { headers: upgrade });
  assert.equal(gate.gate.metrics.readCounter("modelRequestsUnread"), 2);
});

test("a prompt of 9 MB is read in slices: other requests do not wait for it", async () => {
  const gate = await open();
  const content = "a word and another ".repeat(480_000);
  const large = post(gate, "/v1/chat/completions", {
    model: "m-1",
    messages: [{ role: "user", content }],
  });
  const small = await post(gate, "/v1/chat/completions", KINDS[0]![1]);
  assert.equal(small.status, 200);
  assert.equal((await large).status, 200);
});

test("answers that are no answers: errors cost nothing, garbage is estimated, sizes are bounded", async () => {
  const gate = await open();
  const ask200 = async (
    answer: MockOptions["answer"],
  ): Promise<Awaited<ReturnType<typeof post>>> => {
    gate.provider.options = { answer: answer! };
    return post(gate, "/v1/chat/completions", KINDS[0]![1]);
  };
  const failed = await ask200({ status: 429, body: '{"error":{"message":"slow down"}}' });
  assert.equal(failed.status, 429);
  assert.equal(failed.headers["x-token-cost"], "0");
  const hidden = await ask200({ status: 200, body: '{"error":{"message":"overloaded"}}' });
  assert.equal(hidden.headers["x-token-cost"], "0");
  const garbage = await ask200({ status: 200, type: "text/plain", body: "these are some words" });
  assert.equal(garbage.body, "these are some words");
  assert.notEqual(garbage.headers["x-token-cost"], "0");
  const large = await ask200({ status: 200, body: "x".repeat(34_000_000) });
  assert.equal(large.status, 502);
  assert.equal(large.json.error?.code, "upstream_invalid_response");
  const event = await ask200({
    type: "text/event-stream",
    body: `data: {"choices":[]}\n\ndata: ${"x".repeat(1_100_000)}\n\n`,
  });
  assert.match(event.body, /^data: \{"choices":\[\]\}\n\nevent: error\n/);
  const stream = await ask200({
    type: "text/event-stream",
    body: "data: no json\n\ndata: [DONE]\n\n",
  });
  assert.match(stream.body, /^data: no json\n\n: x-token-cost [\d.]+\n\ndata: \[DONE\]\n\n$/);
});

test("a stream ends with an error event after its longest duration", async () => {
  const gate = await open(
    { onEvent: (index) => (index === 1 ? new Promise(() => undefined) : undefined) },
    { steps: { ai: { streamMsMax: 300, recordsPrompts: false, passesUnknown: false } } },
  );
  const answer = await post(gate, "/v1/chat/completions", { ...KINDS[0]![1], stream: true });
  assert.match(answer.body, /event: error\ndata: .*"code":"upstream_timeout"/);
});

test("a model without a price costs nothing and is counted", async () => {
  const gate = await open();
  const answer = await post(gate, "/v1/chat/completions", { ...KINDS[0]![1], model: "other" });
  assert.equal(answer.headers["x-token-cost"], "0");
  await waitFor(() => gate.figures.some(({ unpriced }) => unpriced === 1));
  assert.equal((await readAi(gate))["priced"], false);
});
