// Personal data on its way through a real worker: what the provider and what the client see, plain and streamed.
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import { afterEach, test } from "node:test";
import { waitFor } from "@platform/testing/wait";
import { PII_KINDS, type PiiSpec } from "../../src/shared-state/index.ts";
import { createModelProvider, type ModelProvider } from "../fixture/model-provider.ts";
import { ask, type GateWorker, startGate, type TestRoute } from "./gate-worker.ts";

const EMAIL = "anna.mueller@example.com";
const CARD = "4111 1111 1111 1111";
const stops: (() => unknown)[] = [];
afterEach(async () => {
  for (const stop of stops.splice(0).reverse()) await stop();
});

async function open(
  pii: Partial<PiiSpec> = {},
  more: Partial<TestRoute["steps"]> & { passesUnknown?: boolean } = {},
): Promise<{ provider: ModelProvider; gate: GateWorker }> {
  const provider = createModelProvider();
  provider.server.listen(0, "127.0.0.1");
  await once(provider.server, "listening");
  const { port } = provider.server.address() as { port: number };
  const { passesUnknown = false, ...steps } = more;
  const gate = await startGate([
    {
      targets: [`http://127.0.0.1:${port}`],
      steps: {
        ...steps,
        ai: {
          streamMsMax: 600_000,
          recordsPrompts: false,
          passesUnknown,
          pii: { isReversible: false, kinds: PII_KINDS, patterns: [], ...pii },
        },
      },
    },
  ]);
  stops.push(
    () => provider.server.close(),
    () => provider.server.closeAllConnections(),
    () => gate.stop(),
  );
  return { provider, gate };
}

async function post(gate: GateWorker, path: string, body: unknown): ReturnType<typeof ask> {
  const text = typeof body === "string" ? body : JSON.stringify(body);
  return ask(gate.port, path, { method: "POST", body: text });
}

const SHAPES: [path: string, body: (text: string) => Record<string, unknown>][] = [
  ["/v1/chat/completions", (text) => ({ model: "m", messages: [{ role: "user", content: text }] })],
  ["/v1/messages", (text) => ({ model: "m", messages: [{ role: "user", content: text }] })],
  ["/v1/responses", (text) => ({ model: "m", input: text })],
];

/** The text of a stream, as a client reads it. */
function readStream(body: string): string {
  let text = "";
  for (const line of body.split("\n")) {
    if (!line.startsWith("data: {")) continue;
    const event = JSON.parse(line.slice(6)) as {
      type?: string;
      delta?: string | { text?: string };
      choices?: { delta?: { content?: string } }[];
    };
    if (typeof event.delta === "string") text += event.delta;
    else text += event.delta?.text ?? "";
    for (const choice of event.choices ?? []) text += choice.delta?.content ?? "";
  }
  return text;
}

test("the provider gets placeholders, wherever the values stand, and all other bytes as sent", async () => {
  const { provider, gate } = await open();
  const sent = `{ "model":"a@b.io", "messages":[{"role":"user","name":"x@y.io","content":[{"type":"text","text":"I am anna\\u0040example.com, ${CARD}"},{"type":"image_url","image_url":{"url":"data:image/png;base64,c29tZUBleGFtcGxlLmNvbQ=="}}]},{"role":"assistant","content":null,"tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{\\"to\\":\\"${EMAIL}\\"}"}}]},{"role":"tool","tool_call_id":"c","content":"sent to ${EMAIL}"}],"user":"${EMAIL}","metadata":{"card":4111111111111111},"seed":1.0}`;
  const expected = sent
    .replace("anna\\u0040example.com", "[EMAIL_1]")
    .replace(CARD, "[CARD_1]")
    .replaceAll(EMAIL, "[EMAIL_2]")
    .replace("4111111111111111", '"[CARD_2]"');
  await post(gate, "/v1/chat/completions", sent);
  assert.equal(provider.received[0]!.raw, expected);
});

test("values in answers are masked, plain and streamed, in all three shapes", async () => {
  const { provider, gate } = await open();
  const answer = `Write to ${EMAIL} or pay with ${CARD}, today.`;
  const masked = "Write to [EMAIL_1] or pay with [CARD_1], today.";
  for (const [path, body] of SHAPES) {
    provider.options = { texts: [answer] };
    const plain = await post(gate, path, body("hello"));
    assert.ok(plain.body.includes(masked) && !plain.body.includes(EMAIL), plain.body);
    assert.equal(plain.status, 200);
    assert.equal(Number(plain.headers["content-length"]), Buffer.byteLength(plain.body));
    for (let cut = 1; cut < answer.length; cut++) {
      provider.options = { texts: [answer.slice(0, cut), answer.slice(cut)] };
      const streamed = await post(gate, path, { ...body("hello"), stream: true });
      assert.equal(readStream(streamed.body), masked, `${path} ${cut} ${streamed.body}`);
      assert.ok(!streamed.body.includes("anna") && !streamed.body.includes("4111"), streamed.body);
    }
  }
});

test("with reversible placeholders clients get their own values back, also split over events", async () => {
  const { provider, gate } = await open({ isReversible: true });
  const answer = "Mail to [EMAIL_1], card [CARD_1]; not [EMAIL_7], and new x@y.io!";
  const restored = `Mail to ${EMAIL}, card ${CARD}; not [EMAIL_7], and new [EMAIL_2]!`;
  for (const [path, body] of SHAPES) {
    const request = body(`I am ${EMAIL}, my card is ${CARD}`);
    provider.options = { texts: [answer] };
    const plain = await post(gate, path, request);
    assert.ok(plain.body.includes(restored), plain.body);
    assert.ok(provider.received.at(-1)!.raw.includes("I am [EMAIL_1], my card is [CARD_1]"));
    for (let cut = 1; cut < answer.length; cut += 3) {
      const texts = [answer.slice(0, cut), answer.slice(cut, cut + 1), answer.slice(cut + 1)];
      provider.options = { texts };
      const streamed = await post(gate, path, { ...request, stream: true });
      assert.equal(readStream(streamed.body), restored, `${path} ${cut}`);
    }
    // Another request does not have them.
    provider.options = { texts: [answer] };
    const other = await post(gate, path, body("hello"));
    assert.ok(other.body.includes("Mail to [EMAIL_1]"), other.body);
  }
});

test("arguments of tools are masked over events, and restored as JSON", async () => {
  const { provider, gate } = await open({
    isReversible: true,
    patterns: [["QUOTED", 'name "[a-z]+"']],
    kinds: ["email"],
  });
  const event = (text: string): string =>
    `data: ${JSON.stringify({ choices: [{ index: 0, delta: { tool_calls: [{ index: 0, function: { arguments: text } }] } }] })}\n\n`;
  const pieces = ['{"to":"[EMA', 'IL_1]","as":"[QUOTED', '_1]"}'];
  const finish = 'data: {"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}\n\n';
  provider.options = {
    answer: {
      type: "text/event-stream",
      body: `${pieces.map(event).join("")}${finish}data: [DONE]\n\n`,
    },
  };
  const answer = await post(gate, "/v1/chat/completions", {
    model: "m",
    stream: true,
    messages: [{ role: "user", content: `name "bob" at ${EMAIL}` }],
  });
  let text = "";
  for (const line of answer.body.split("\n")) {
    const [, json] = /^data: (\{.*)$/.exec(line) ?? [];
    if (json === undefined) continue;
    const { choices } = JSON.parse(json) as {
      choices: { delta: { tool_calls?: { function: { arguments: string } }[] } }[];
    };
    text += choices[0]?.delta.tool_calls?.[0]?.function.arguments ?? "";
  }
  assert.deepEqual(JSON.parse(text), { to: EMAIL, as: 'name "bob"' });
});

test("bodies that cannot be read are refused, unless the route lets them pass", async () => {
  const { provider, gate } = await open();
  const refused = await post(gate, "/v1/files", `mail ${EMAIL}`);
  assert.equal(refused.status, 400);
  const { error } = JSON.parse(refused.body) as { error: { code: string } };
  assert.equal(error.code, "unsupported_ai_request");
  assert.equal((await ask(gate.port, "/v1/models")).status, 200);
  assert.equal(provider.received.length, 1);
  const open2 = await open({}, { passesUnknown: true });
  assert.equal((await post(open2.gate, "/v1/files", "anything")).status, 200);
});

test("nothing unfiltered leaves: garbage ends a stream, bytes that are no text a plain answer", async () => {
  const { provider, gate } = await open();
  const stream = { ...SHAPES[0]![1]("x"), stream: true };
  const event = `data: {"choices":[{"index":0,"delta":{"content":"to anna.mueller@exam"}}]}\n\n`;
  provider.options = {
    answer: {
      type: "text/event-stream",
      body: `${event}: ${EMAIL}\n\ndata: ${EMAIL} is no JSON\n\ndata: [DONE]\n\n`,
    },
  };
  const garbage = await post(gate, "/v1/chat/completions", stream);
  assert.match(garbage.body, /event: error/);
  assert.ok(!garbage.body.includes(EMAIL) && !garbage.body.includes("[DONE]"), garbage.body);
  provider.options = { end: "silent", texts: ["mail ", "anna.mueller@exa"] };
  const cut = await post(gate, "/v1/chat/completions", stream);
  assert.ok(readStream(cut.body).startsWith("mail "), cut.body);
  provider.options = { answer: { type: "text/plain", body: `text with ${EMAIL}` } };
  const text = await post(gate, "/v1/chat/completions", SHAPES[0]![1]("x"));
  assert.equal(text.body, "text with [EMAIL_1]");
  provider.options = { answer: { status: 400, body: `{"error":{"message":"bad ${EMAIL}"}}` } };
  const error = await post(gate, "/v1/chat/completions", SHAPES[0]![1]("x"));
  assert.equal(error.body, '{"error":{"message":"bad [EMAIL_1]"}}');
});

test("mirrors get the cleaned request, never the original", async () => {
  const bodies: string[] = [];
  const mirror = createServer((request, response) => {
    let body = "";
    request.setEncoding("utf8").on("data", (piece: string) => (body += piece));
    request.on("end", () => {
      bodies.push(body);
      response.end();
    });
  });
  mirror.listen(0, "127.0.0.1");
  await once(mirror, "listening");
  stops.push(
    () => mirror.close(),
    () => mirror.closeAllConnections(),
  );
  const { port } = mirror.address() as { port: number };
  const origin = `http://127.0.0.1:${port}`;
  const { gate } = await open({}, { mirror: { origin, percent: 100, bodyBytesMax: 100_000 } });
  await post(gate, "/v1/chat/completions", SHAPES[0]![1](`I am ${EMAIL}`));
  await waitFor(() => bodies.length === 1);
  assert.ok(bodies[0]!.includes("I am [EMAIL_1]"), bodies.join());
});

test("a long text is masked in pieces without keeping others waiting", async () => {
  const { provider, gate } = await open();
  const words = "some words and the mail x@y.io in between ".repeat(40_000);
  const long = post(gate, "/v1/chat/completions", SHAPES[0]![1](words));
  assert.equal((await post(gate, "/v1/chat/completions", SHAPES[0]![1]("short"))).status, 200);
  assert.equal((await long).status, 200);
  const raw = provider.received.find((request) => request.raw.length > 100_000)!.raw;
  assert.ok(!raw.includes("x@y.io"));
  assert.equal(raw.split("[EMAIL_1]").length, 40_001);
});
