// Questions with the same answer and those that only read alike; vectors, scopes, bounds; answers in both forms.
import assert from "node:assert/strict";
import { test } from "node:test";
import { AnswerCollector } from "../../src/ai/semantic/answer-collector.ts";
import { readQuestion } from "../../src/ai/semantic/question.ts";
import {
  mayShareAnswer,
  normalizeQuestion,
  readMeaning,
} from "../../src/ai/semantic/question-words.ts";
import {
  composeDocument,
  composeStream,
  type StoredAnswer,
  type StoredShape,
} from "../../src/ai/semantic/stored-answer.ts";
import { findAiKind } from "../../src/ai/shape/ai-shape.ts";
import { EventSplitter } from "../../src/ai/shape/event-splitter.ts";
import { JsonScanner } from "../../src/ai/shape/json-scan.ts";
import { readAiRequest } from "../../src/ai/shape/read-request.ts";
import { SemanticIndex } from "../../src/control/semantic-index.ts";
import { NEAR_MISSES, SAME_FORM, SAME_MEANING, SMALL_WORDS } from "./corpus/near-misses.ts";

test("the corpus has 500 different pairs of four kinds", () => {
  assert.equal(new Set(NEAR_MISSES.map(({ one, other }) => `${one}\n${other}`)).size, 500);
  assert.ok(NEAR_MISSES.every(({ one, other }) => one !== other));
  assert.equal(new Set(NEAR_MISSES.map(({ kind }) => kind)).size, 4);
});

test("built in: no near miss is the same question, and other forms of a question are", () => {
  const hits = NEAR_MISSES.filter(
    ({ one, other }) => normalizeQuestion(one) === normalizeQuestion(other),
  );
  assert.deepEqual(hits, []);
  for (const [one, other] of SAME_FORM)
    assert.equal(normalizeQuestion(one), normalizeQuestion(other));
});

test("with vectors that are all equal: no near miss passes the comparison of words, and other wordings do", () => {
  const passes = (one: string, other: string): boolean =>
    mayShareAnswer(readMeaning(one), readMeaning(other));
  const hits = NEAR_MISSES.filter(({ one, other }) => passes(one, other) || passes(other, one));
  assert.deepEqual(hits, []);
  for (const [one, other] of SMALL_WORDS) assert.ok(!passes(one, other), `${one} / ${other}`);
  for (const [one, other] of [...SAME_FORM, ...SAME_MEANING])
    assert.ok(passes(one, other) && passes(other, one), `${one} / ${other}`);
});

/** Hashed words and groups of letters: close for texts that read alike. */
function hashVector(text: string): Float32Array {
  const vector = new Float32Array(512);
  const add = (part: string, weight: number): void => {
    let hash = 2_166_136_261;
    for (const character of part) hash = Math.imul(hash ^ character.charCodeAt(0), 16_777_619);
    vector[(hash >>> 0) % 512]! += weight;
  };
  const lower = text.toLowerCase();
  for (const word of lower.split(/\W+/)) add(word, 1);
  for (const size of [3, 4])
    for (let at = 0; at + size <= lower.length; at++) add(lower.slice(at, at + size), 0.5);
  const length = Math.hypot(...vector);
  return vector.map((value) => value / length);
}

function makeIndex(embed = (text: string): Float32Array | undefined => hashVector(text)) {
  let nowMs = 0;
  const index = new SemanticIndex({
    embed: (text) => Promise.resolve(embed(text)),
    readNowMs: () => nowMs,
  });
  const wait = (ms: number): void => {
    nowMs += ms;
  };
  return { index, wait };
}

test("with vectors of letters: no near miss is found, though most vectors are alike", async () => {
  let alike = 0;
  for (const [at, { one, other }] of NEAR_MISSES.entries()) {
    const { index } = makeIndex();
    await index.add("scope", one, String(at), 60_000);
    assert.equal(await index.find("scope", other, 0.85), undefined, `${one} / ${other}`);
    const [first, second] = [hashVector(one), hashVector(other)];
    if (first.reduce((sum, value, place) => sum + value * second[place]!, 0) > 0.85) alike++;
  }
  assert.ok(alike > 100, String(alike));
});

test("a question that is alike is found in its scope only, until it expires", async () => {
  const { index, wait } = makeIndex(() => Float32Array.of(1, 0));
  const [[one, other]] = SAME_MEANING as [[string, string]];
  await index.add("scope", one, "digest", 60_000);
  assert.deepEqual(await index.find("scope", other, 0.85), { digest: "digest", similarity: 1 });
  assert.equal(await index.find("other scope", other, 0.85), undefined);
  wait(60_001);
  assert.equal(await index.find("scope", other, 0.85), undefined);
});

test("the threshold counts, and vectors of another dimension replace the others", async () => {
  const vectors: Record<string, Float32Array> = {
    "Explain photosynthesis.": Float32Array.of(1, 0),
    "Can you describe how photosynthesis works?": Float32Array.of(0.8, 0.6),
    "Could you describe how photosynthesis works?": Float32Array.of(0.8, 0.6, 0),
  };
  const { index } = makeIndex((text) => vectors[text]);
  await index.add("s", "Explain photosynthesis.", "one", 60_000);
  const asked = "Can you describe how photosynthesis works?";
  assert.equal(await index.find("s", asked, 0.85), undefined);
  assert.ok(Math.abs((await index.find("s", asked, 0.7))!.similarity - 0.8) < 1e-6);
  const third = "Could you describe how photosynthesis works?";
  assert.equal(await index.find("s", third, 0.1), undefined);
  await index.add("s", third, "three", 60_000);
  assert.equal(await index.find("s", asked, 0.1), undefined);
  assert.equal((await index.find("s", third, 0.1))?.digest, "three");
  // Without a vector nothing is found or added.
  assert.equal(await index.find("s", "unknown", 0.1), undefined);
  await index.add("s", "unknown", "none", 60_000);
});

test("a scope has 1 000 questions, and all have 64 MiB", async () => {
  const { index } = makeIndex(() => new Float32Array(8_192).fill(0.01));
  for (let at = 0; at < 1_100; at++) await index.add("scope", `question ${at}`, String(at), 60_000);
  assert.ok(index.bytes < 1_001 * 33_500);
  for (let at = 0; at < 2_000; at++) await index.add(`scope ${at}`, "question", "d", 60_000);
  assert.ok(index.bytes <= 67_108_864);
  assert.ok(index.bytes > 60_000_000);
});

function ask(body: object, context: string[] = ["tenant a"], path = "/v1/chat/completions") {
  const tree = new JsonScanner();
  assert.ok(tree.scan(Buffer.from(JSON.stringify(body))));
  return readQuestion(readAiRequest(findAiKind(path)!, tree), tree, context);
}

const CHAT = {
  model: "m",
  messages: [
    { role: "system", content: "You are kind." },
    { role: "user", content: "hello" },
  ],
  temperature: 0,
};

test("the scope has everything but the last text of the user and the form of the answer", () => {
  const one = ask(CHAT)!;
  assert.equal(one.text, "hello");
  const same = [
    { ...CHAT, stream: true, stream_options: { include_usage: true } },
    { ...CHAT, messages: [CHAT.messages[0], { role: "user", content: "another text" }] },
  ];
  for (const body of same) assert.equal(ask(body)!.scope, one.scope);
  const others = [
    { ...CHAT, model: "n" },
    { ...CHAT, temperature: 1 },
    { ...CHAT, max_tokens: 10 },
    { ...CHAT, messages: [{ role: "system", content: "You are rude." }, CHAT.messages[1]] },
    { ...CHAT, messages: [CHAT.messages[1]] },
    { ...CHAT, messages: [...CHAT.messages, { role: "assistant", content: "Hi" }] },
    { ...CHAT, response_format: { type: "json_object" } },
  ];
  for (const body of others) assert.notEqual(ask(body)!.scope, one.scope);
  // Results of a search are not the question, also if they come after it.
  const hit = { type: "search_result", content: [{ type: "text", text: "found" }] };
  const found = { role: "user", content: [{ type: "text", text: "hello" }, hit] };
  assert.equal(ask({ ...CHAT, messages: [found] }, [], "/v1/messages")!.text, "hello");
  assert.notEqual(ask(CHAT, ["tenant b"])!.scope, one.scope);
  assert.notEqual(ask(CHAT, ["tenant a", ""])!.scope, one.scope);
});

test("requests with tools, images, several answers, state or long questions are not stored", () => {
  const image = { type: "image_url", image_url: { url: "https://x" } };
  const text = (content: unknown) => ({ ...CHAT, messages: [{ role: "user", content }] });
  const refused = [
    { ...CHAT, tools: [{ type: "function", function: { name: "f" } }] },
    { ...CHAT, n: 2 },
    { ...CHAT, logprobs: true },
    text([{ type: "text", text: "what is it?" }, image]),
    text("x".repeat(4_097)),
    text(""),
    { ...CHAT, messages: [CHAT.messages[0]] },
  ];
  for (const body of refused) assert.equal(ask(body), undefined, JSON.stringify(body).slice(0, 99));
  assert.ok(ask({ ...CHAT, tools: [], n: 1, logprobs: false }));
  const response = { model: "m", input: "hello" };
  assert.ok(ask(response, [], "/v1/responses"));
  const linked = { ...response, previous_response_id: "r" };
  assert.equal(ask(linked, [], "/v1/responses"), undefined);
  assert.equal(ask(response, [], "/v1/embeddings"), undefined);
});

const USAGE = { input: 90, cachedInput: 10, cacheWrite: 0, output: 7 };
const TEXT = `Grüße 👋 ${"and so on ".repeat(60)}`;

/** The text that a collector finds in an answer. */
function collect(shape: StoredShape, body: string, isStream: boolean): string | undefined {
  let found: string | undefined;
  const collector = new AnswerCollector(shape, (text) => {
    found = text;
  });
  const scanner = new JsonScanner();
  if (isStream) {
    new EventSplitter().push(Buffer.from(body), ({ data }) => {
      if (scanner.scan(data)) collector.readEvent(scanner, true);
      return true;
    });
    collector.complete();
  } else if (scanner.scan(Buffer.from(body))) collector.readDocument(scanner);
  return found;
}

test("answers in both forms, of all shapes, can be read back", () => {
  for (const shape of ["chat", "completions", "messages", "responses"] as const) {
    const answer: StoredAnswer = { shape, model: "m-1", text: TEXT, usage: USAGE, pico: "1" };
    const document = composeDocument(answer, 1_000);
    assert.equal(collect(shape, document, false), TEXT, shape);
    assert.equal(collect(shape, composeStream(answer, 1_000, true), true), TEXT, shape);
    assert.notEqual(composeDocument(answer, 1_000), document);
  }
});

test("answers that are more than one text, or did not end by themselves, are not stored", () => {
  const choice = (message: object, reason = "stop") => ({
    choices: [{ index: 0, message: { role: "assistant", ...message }, finish_reason: reason }],
  });
  const block = { type: "text", text: "x" };
  const item = { type: "message", content: [{ type: "output_text", text: "x" }] };
  const cases: [shape: StoredShape, body: object][] = [
    ["chat", choice({ content: "x" }, "length")],
    ["chat", choice({ content: "x", tool_calls: [{ id: "1" }] })],
    ["chat", choice({ content: null, refusal: "no" })],
    ["chat", choice({ content: "" })],
    [
      "chat",
      { choices: [...choice({ content: "x" }).choices, ...choice({ content: "y" }).choices] },
    ],
    ["chat", { error: { message: "x" } }],
    ["messages", { content: [block], stop_reason: "max_tokens" }],
    ["messages", { content: [block, block], stop_reason: "end_turn" }],
    ["messages", { content: [block, { type: "tool_use", input: {} }], stop_reason: "end_turn" }],
    ["responses", { status: "incomplete", output: [item] }],
    [
      "responses",
      { status: "completed", output: [item, { type: "function_call", arguments: "" }] },
    ],
  ];
  for (const [shape, body] of cases)
    assert.equal(collect(shape, JSON.stringify(body), false), undefined, JSON.stringify(body));
  const event = (body: object): string => `data: ${JSON.stringify(body)}\n\n`;
  const delta = (content: object, reason: string | null = null): string =>
    event({ choices: [{ index: 0, delta: content, finish_reason: reason }] });
  assert.equal(collect("chat", delta({ content: "x" }) + delta({}, "length"), true), undefined);
  assert.equal(collect("chat", delta({ content: "x" }), true), undefined);
  const call = delta({ tool_calls: [{ index: 0, function: { arguments: "" } }] });
  assert.equal(
    collect("chat", delta({ content: "x" }) + call + delta({}, "stop"), true),
    undefined,
  );
  assert.equal(collect("chat", delta({ content: "x" }) + delta({}, "stop"), true), "x");
});
