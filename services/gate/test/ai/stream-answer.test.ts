// Streams of models: in any pieces, what leaves and what is metered are the same; fast ones are read in larger pieces.
import assert from "node:assert/strict";
import { test } from "node:test";
import type { ContentOutput } from "@platform/http1";
import fc from "fast-check";
import { type CallPii, ModelCall } from "../../src/ai/meter/model-call.ts";
import { StreamAnswer } from "../../src/ai/meter/stream-answer.ts";
import { Placeholders } from "../../src/ai/pii/placeholders.ts";
import { type AiKind, findAiKind } from "../../src/ai/shape/ai-shape.ts";
import { JsonScanner } from "../../src/ai/shape/json-scan.ts";
import { readAiRequest } from "../../src/ai/shape/read-request.ts";
import { AnswerCollector } from "../../src/ai/semantic/answer-collector.ts";
import type { PiiKind } from "../../src/shared-state/index.ts";

const CHAT = findAiKind("/v1/chat/completions")!;
const MESSAGES = findAiKind("/v1/messages")!;
const RESPONSES = findAiKind("/v1/responses")!;
const KINDS: ReadonlySet<PiiKind> = new Set(["email", "card", "iban", "phone", "secret"]);
const TEXTS = [
  ...'Write to jo.ann@example.org or to Åsa, card 4111 1111 1111 1111, or "call" us. '.split(
    /(?= )/,
  ),
  " sk-",
  "abcdefghij0123456789klm",
];
const WHOLE = TEXTS.join("");
const MASKED = WHOLE.replace("jo.ann@example.org", "[EMAIL_1]")
  .replace("4111 1111 1111 1111", "[CARD_1]")
  .replace("sk-abcdefghij0123456789klm", "[SECRET_1]");

function streamChat(): string {
  const chunk = (members: object): string =>
    `data: ${JSON.stringify({ id: "c1", model: "m-1", ...members })}\n\n`;
  const choice = (content: string, finish_reason: string | null = null): object => ({
    choices: [{ index: 0, delta: { content }, finish_reason }],
  });
  return [
    chunk({ choices: [{ index: 0, delta: { role: "assistant", content: "" } }] }),
    ...TEXTS.map((text) => chunk(choice(text))),
    chunk(choice("", "stop")),
    chunk({ choices: [], usage: { prompt_tokens: 7, completion_tokens: 9 } }),
    "data: [DONE]\n\n",
  ].join("");
}

function streamMessages(): string {
  const event = (type: string, members: object): string =>
    `event: ${type}\r\ndata: ${JSON.stringify({ type, ...members })}\r\n\r\n`;
  const usage = { input_tokens: 7, output_tokens: 1 };
  return [
    event("message_start", { message: { model: "m-1", content: [], usage } }),
    event("content_block_start", { index: 0, content_block: { type: "text", text: "" } }),
    ...TEXTS.map((text) =>
      event("content_block_delta", { index: 0, delta: { type: "text_delta", text } }),
    ),
    event("content_block_stop", { index: 0 }),
    event("message_delta", { delta: { stop_reason: "end_turn" }, usage: { output_tokens: 9 } }),
    event("message_stop", {}),
  ].join("");
}

function streamResponses(): string {
  let count = 0;
  const event = (type: string, members: object): string =>
    `event: ${type}\ndata: ${JSON.stringify({ type, sequence_number: count++, ...members })}\n\n`;
  const response = { id: "r1", model: "m-1" };
  const usage = { input_tokens: 7, output_tokens: 9 };
  return [
    event("response.created", { response }),
    ...TEXTS.map((delta, index) =>
      event("response.output_text.delta", {
        item_id: "msg_1",
        output_index: 0,
        content_index: 0,
        delta,
        obfuscation: "aB3x".repeat(index % 4),
      }),
    ),
    event("response.completed", { response: { ...response, status: "completed", usage } }),
  ].join("");
}

interface Opened {
  readonly answer: StreamAnswer;
  readonly output: ContentOutput;
  readonly call: ModelCall;
  readonly written: Buffer[];
  readonly collected: string[];
  readonly paused: () => boolean;
}

function openStream(kind: AiKind, pii: CallPii | undefined): Opened {
  const tree = new JsonScanner();
  const messages = [{ role: "user", content: "Hello" }];
  const body = { model: "m-1", stream: true, messages, input: "Hello" };
  tree.scan(Buffer.from(JSON.stringify(body)));
  const request = readAiRequest(kind, tree);
  const call = new ModelCall({
    request,
    hidesUsage: false,
    price: undefined,
    pii,
    tree,
    onSettled: () => {},
  });
  const collected: string[] = [];
  call.collector = new AnswerCollector(request.shape, (text) => collected.push(text));
  const written: Buffer[] = [];
  let isPaused = false;
  const output = {
    write: (bytes: Buffer) => written.push(Buffer.from(bytes)) > 0,
    end: () => {},
    pause: () => (isPaused = true),
    resume: () => (isPaused = false),
    append: () => {},
    fail: (error: unknown) => assert.fail(String(error)),
    retry: () => false,
  } as unknown as ContentOutput;
  const answer = new StreamAnswer({
    call,
    scanner: new JsonScanner(),
    sendsTrailers: false,
    errorForm: kind === MESSAGES ? "anthropic" : "openai",
    traceId: "t",
    durationMsMax: 60_000,
    onFault: (error) => assert.fail(error.message),
    destroy: () => {},
  });
  return { answer, output, call, written, collected, paused: () => isPaused };
}

/** The text that a client reads from the events. */
function readText(stream: string): string {
  let text = "";
  for (const line of stream.split(/\r?\n/)) {
    if (!line.startsWith("data: {")) continue;
    const event = JSON.parse(line.slice(6)) as {
      choices?: { delta?: { content?: string } }[];
      delta?: string | { text?: string };
    };
    if (typeof event.delta === "string") text += event.delta;
    else text += event.choices?.[0]?.delta?.content ?? event.delta?.text ?? "";
  }
  return text;
}

function pass(kind: AiKind, isMasked: boolean, pieces: readonly Buffer[]): Opened {
  const pii = isMasked
    ? { search: { kinds: KINDS, patterns: [] }, placeholders: new Placeholders(false) }
    : undefined;
  const opened = openStream(kind, pii);
  for (const piece of pieces) {
    // The buffer of a read is used again.
    const read = Buffer.from(piece);
    opened.answer.onBytes(read, opened.output);
    read.fill("x");
  }
  opened.answer.onEnd(opened.output);
  return opened;
}

function cutAt(bytes: Buffer, places: readonly number[]): Buffer[] {
  const cuts = [0, ...places, bytes.length];
  return cuts.slice(1).map((end, index) => bytes.subarray(cuts[index], end));
}

function check(kind: AiKind, stream: string, pieces: readonly Buffer[]): void {
  const plain = pass(kind, false, pieces);
  const left = Buffer.concat(plain.written).toString();
  assert.equal(left.replace(/: x-token-cost [\d.]+\n\n/, ""), stream);
  assert.deepEqual(plain.collected, [WHOLE]);
  const { usage, isEstimated } = plain.call.settled!;
  assert.deepEqual([usage.input, usage.output, isEstimated], [7, 9, false]);
  assert.equal(plain.call.servedModel, "m-1");
  const masked = pass(kind, true, pieces);
  assert.equal(readText(Buffer.concat(masked.written).toString()), MASKED);
  assert.equal(masked.call.pii?.placeholders.replaced, 3);
  assert.equal(masked.call.settled?.usage.output, 9);
}

test("a stream cut at each of its bytes is passed, masked and metered as the whole", () => {
  for (const [kind, stream] of [
    [CHAT, streamChat()],
    [MESSAGES, streamMessages()],
    [RESPONSES, streamResponses()],
  ] as const) {
    const bytes = Buffer.from(stream);
    // The others have the same texts in longer events.
    const step = kind === CHAT ? 1 : 3;
    for (let at = 0; at <= bytes.length; at += step) check(kind, stream, cutAt(bytes, [at]));
    const single = Array.from(bytes, (_, index) => bytes.subarray(index, index + 1));
    check(kind, stream, single);
    fc.assert(
      fc.property(fc.array(fc.nat(bytes.length), { maxLength: 8 }), (places) =>
        check(
          kind,
          stream,
          cutAt(
            bytes,
            places.sort((one, other) => one - other),
          ),
        ),
      ),
      { numRuns: 30 },
    );
  }
});

test("merged events of OpenAI's responses have the number of the last of them", () => {
  const events = streamResponses().split(/(?<=\n\n)/);
  const { written } = pass(RESPONSES, true, [Buffer.from(events.join(""))]);
  const left = Buffer.concat(written).toString();
  const numbers = [...left.matchAll(/"sequence_number":(\d+)/g)].map(([, number]) =>
    Number(number),
  );
  assert.ok(numbers.length < events.length - 5);
  assert.deepEqual(
    numbers,
    numbers.toSorted((one, other) => one - other),
  );
  assert.equal(numbers.at(-1), events.length - 1);
});

test("masked texts of one read leave in one event, others as they came", () => {
  const [head = "", ...rest] = streamChat().split(/(?<=\n\n)/);
  const count = (events: readonly Buffer[]): number =>
    Buffer.concat(events).toString().split("\n\n").length;
  const whole = pass(CHAT, true, [Buffer.from(head + rest.join(""))]);
  const single = pass(
    CHAT,
    true,
    [head, ...rest].map((event) => Buffer.from(event)),
  );
  assert.ok(count(whole.written) < count(single.written) - 5);
});

test("events that follow one another fast are read together, those of slow streams at once", ({
  mock,
}) => {
  mock.timers.enable({ apis: ["setTimeout"] });
  let nowMs = 1_000;
  mock.method(performance, "now", () => nowMs);
  const events = streamChat().split(/(?<=\n\n)/);
  const { answer, output, written, paused } = openStream(CHAT, undefined);
  const push = (afterMs: number): boolean => {
    nowMs += afterMs;
    const before = written.length;
    answer.onBytes(Buffer.from(events.shift()!), output);
    assert.equal(written.length, before + 1, "what was read leaves at once");
    return paused();
  };
  const pass = (ms: number): boolean => {
    nowMs += ms;
    mock.timers.tick(ms);
    return paused();
  };
  assert.equal(push(0), false, "the first one");
  assert.equal(push(30), false, "one of a slow stream");
  assert.equal(push(0.3), true, "one of a fast stream");
  assert.equal(pass(1), true);
  assert.equal(pass(1), false);
  assert.equal(push(0.1), true, "more had arrived in the meantime");
  assert.equal(pass(2), true, "longer, because the stream stays fast");
  assert.equal(pass(2), false);
  assert.equal(push(0.1), true);
  assert.equal(pass(8), false);
  assert.equal(push(0.1), true);
  assert.equal(pass(7), true);
  assert.equal(pass(1), false, "8 ms at most");
  assert.equal(push(5), false, "the stream has become slow");
  assert.equal(push(0.5), true);
  assert.equal(pass(2), false, "as in the beginning");
  assert.equal(push(0.5), true);
  answer.onAbort();
  assert.equal(pass(10), true, "nothing is read for a client that has left");
});
