// Usage reports of providers, and what requests cost.
import assert from "node:assert/strict";
import { test } from "node:test";
import type { AiShape } from "../../src/ai/shape/ai-shape.ts";
import { formatUsd, PriceTable, readUsd, toUsd } from "../../src/ai/price/price-table.ts";
import { JsonScanner } from "../../src/ai/shape/json-scan.ts";
import { TextSample } from "../../src/ai/usage/text-sample.ts";
import { type TokenUsage, UsageReports } from "../../src/ai/usage/token-usage.ts";

function report(shape: AiShape, ...answers: unknown[]): UsageReports {
  const reports = new UsageReports(shape);
  for (const answer of answers) {
    const scanner = new JsonScanner();
    assert.ok(scanner.scan(Buffer.from(JSON.stringify(answer))));
    reports.add(scanner);
  }
  return reports;
}

test("OpenAI counts cached tokens inside of the input, Anthropic outside", () => {
  const chat = report("chat", {
    usage: {
      prompt_tokens: 100,
      completion_tokens: 7,
      prompt_tokens_details: { cached_tokens: 60 },
    },
  });
  assert.deepEqual(chat.reported, { input: 40, cachedInput: 60, cacheWrite: 0, output: 7 });
  const messages = report("messages", {
    usage: {
      input_tokens: 40,
      cache_read_input_tokens: 60,
      cache_creation_input_tokens: 5,
      output_tokens: 7,
    },
  });
  assert.deepEqual(messages.reported, { input: 40, cachedInput: 60, cacheWrite: 5, output: 7 });
});

test("the last report counts, for each figure that it has, wherever it stands", () => {
  const stream = report(
    "messages",
    { type: "message_start", message: { usage: { input_tokens: 9, output_tokens: 1 } } },
    { type: "message_delta", usage: { output_tokens: 30 } },
    { type: "message_delta", usage: { output_tokens: 31 } },
  );
  assert.deepEqual(stream.reported, { input: 9, cachedInput: 0, cacheWrite: 0, output: 31 });
  const chat = report(
    "chat",
    { choices: [{ delta: {} }], usage: { prompt_tokens: 5, completion_tokens: 9 } },
    { choices: [{ delta: {}, usage: { prompt_tokens: 6, completion_tokens: 0 } }], usage: null },
  );
  assert.deepEqual(chat.reported, { input: 6, cachedInput: 0, cacheWrite: 0, output: 0 });
  const responses = report("responses", {
    type: "response.completed",
    response: { usage: { input_tokens: 3, output_tokens: 4 } },
  });
  assert.equal(responses.reported?.output, 4);
  assert.equal(report("embeddings", { usage: { prompt_tokens: 3 } }).reported?.input, 3);
  assert.equal(report("chat", { usage: { prompt_tokens: 3 } }).reported, undefined);
});

test("impossible figures are ignored and counted", () => {
  for (const value of [-1, 1e18, 1.5, "7", true]) {
    const reports = report("chat", { usage: { prompt_tokens: value, completion_tokens: 2 } });
    assert.equal(reports.reported, undefined, String(value));
    assert.equal(reports.faults, 1, String(value));
    assert.equal(reports.complete(50, 60).input, 50);
    assert.equal(reports.complete(50, 60).output, 2);
  }
});

test("prices: the longest name counts, cached tokens cost less, sums are exact", () => {
  const table = new PriceTable({
    "gpt-*": { input: 2.5, output: 10 },
    "gpt-4o-mini*": { input: 0.15, output: 0.6, cached_input: 0.075 },
    "gpt-4o-mini": { input: 1, output: 1, request: 0.01 },
    free: { input: 0, output: 0 },
  });
  const usage: TokenUsage = { input: 1_000, cachedInput: 2_000, cacheWrite: 0, output: 3 };
  const cost = (model: string): string => formatUsd(table.find(model)!.cost(usage));
  assert.equal(cost("gpt-4o-mini-2026"), "0.0003018");
  assert.equal(cost("gpt-4o-mini"), "0.013003");
  assert.equal(cost("gpt-9"), "0.00753");
  assert.equal(cost("free"), "0");
  assert.equal(table.find("claude"), undefined);
  // 0.1 + 0.2 of a floating-point sum would not be 0.3.
  const tenth = new PriceTable({ m: { input: 0.1, output: 0.2 } }).find("m")!;
  const million = { input: 1_000_000, cachedInput: 0, cacheWrite: 0, output: 1_000_000 };
  assert.equal(formatUsd(tenth.cost(million)), "0.3");
});

test("USD are written without exponents and read back exactly", () => {
  for (const [pico, text] of [
    [0n, "0"],
    [1n, "0.000000000001"],
    [-1_500_000_000_000n, "-1.5"],
    [123_456_000_000_000_000n, "123456"],
  ] as const) {
    assert.equal(formatUsd(pico), text);
    assert.equal(readUsd(toUsd(pico)), pico);
  }
});

test("tokens of texts are estimated from their beginning", () => {
  const words = "The quick brown fox jumps over the lazy dog. ";
  const short = new TextSample();
  short.add(Buffer.from(words), 0, words.length);
  const long = new TextSample();
  for (let repeat = 0; repeat < 10_000; repeat++) long.add(Buffer.from(words), 0, words.length);
  const each = long.estimateTokens() / 10_000;
  assert.ok(each > 5 && each < 20, String(each));
  assert.ok(Math.abs(short.estimateTokens() - each) < 4);
  assert.equal(new TextSample().estimateTokens(), 0);
});
