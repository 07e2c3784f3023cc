// Figures of requests to models in live metrics and on the dashboard.
import assert from "node:assert/strict";
import { test } from "node:test";
import { LiveState } from "../../src/dashboard/live-state.ts";
import { formatScreen } from "../../src/dashboard/screen.ts";
import { MetricsStream } from "../../src/telemetry/metrics-stream.ts";

const FACTS = { url: "http://x", columns: 80, rows: 24, lost: undefined, now: new Date(0) };

function show(values: Record<string, number | null>): string {
  const state = new LiveState();
  state.take(JSON.stringify({ type: "hello", version: "1", values, attention: [] }));
  return formatScreen(state, FACTS).join("\n");
}

test("the dashboard shows tokens, cost, refused prompts and hits once there are requests to models", () => {
  const figures = {
    ai_tokens: 1_234.5,
    ai_cost_today: 12.3456,
    ai_blocked: 0.5,
    ai_hit_ratio: 0.25,
  };
  assert.match(
    show(figures),
    /models +1235 tokens\/s {3}12\.35 USD today\n +0\.5 blocked\/s {3}hits 25 %/,
  );
  assert.doesNotMatch(show({ ai_tokens: null, ai_cost_today: null }), /models/);
});

test("live metrics have the rates of the last second, and none before the first request", () => {
  const totals = {
    requests: 0,
    errors: 0,
    cacheHits: 0,
    cacheLookups: 0,
    promptsBlocked: 0,
    buckets: [0],
  };
  let models = { requests: 0, tokens: 0, cacheHits: 0 };
  let nowMs = 0;
  const stream = new MetricsStream({
    readTotals: () => ({ ...totals }),
    readConnections: () => ({}),
    readBreakers: () => ({}),
    readModels: () => models,
    readNow: () => new Date(nowMs),
    readMonotonicMs: () => nowMs,
    onError: (error) => assert.fail(String(error)),
  });
  const measure = (): typeof stream.sums.ai => {
    nowMs += 2_000;
    stream.measure();
    return stream.sums.ai;
  };
  assert.equal(measure(), undefined);
  models = { requests: 4, tokens: 1_000, cacheHits: 1 };
  totals.promptsBlocked = 3;
  assert.deepEqual(measure(), { tokensPerSecond: 500, blockedPerSecond: 1.5, hitRatio: 0.25 });
  assert.deepEqual(measure(), { tokensPerSecond: 0, blockedPerSecond: 0, hitRatio: null });
});
