// Spans that are kept in memory: bounded, with errors and slow ones longest.
import assert from "node:assert/strict";
import { test } from "node:test";
import { createIdSource } from "@platform/kernel/ids";
import { systemClock } from "@platform/kernel/time";
import {
  combineExporters,
  createTracer,
  type FinishedSpan,
  SpanKeeper,
} from "@platform/kernel/trace";

const randomIds = createIdSource();

let nowMs = 0;
const readMonotonicMs = (): number => nowMs;

function createSpan(
  trace: number,
  {
    durationMs = 1,
    isError = false,
    text = "x",
  }: { durationMs?: number; isError?: boolean; text?: string } = {},
): FinishedSpan {
  const traceId = String(trace).padStart(32, "0");
  return {
    context: { traceId, spanId: "0".repeat(16), sampled: true, traceState: "" },
    parentSpanId: "",
    name: "GET /",
    kind: "server",
    startMs: 1_000,
    endMs: 1_000 + durationMs,
    attributes: new Map([["url.path", text]]),
    attributesDropped: 0,
    events: [],
    status: isError ? "error" : "unset",
    statusMessage: "",
  };
}

const find = (keeper: SpanKeeper, trace: number): number =>
  keeper.find(String(trace).padStart(32, "0")).length;

test("spans are found by trace, and a trace keeps all of its spans", () => {
  const keeper = new SpanKeeper({ readMonotonicMs });
  keeper.export(createSpan(1));
  keeper.export(createSpan(1, { isError: true }));
  keeper.export(createSpan(2));
  assert.deepEqual([find(keeper, 1), find(keeper, 2), find(keeper, 3)], [2, 1, 0]);
});

test("ordinary traces displace only each other, as do slow ones; those with errors stay longest", () => {
  const keeper = new SpanKeeper({ bytesMax: 40_000, readMonotonicMs });
  keeper.export(createSpan(1, { isError: true }));
  keeper.export(createSpan(2, { durationMs: 800 }));
  for (let trace = 100; trace < 400; trace += 1) {
    nowMs += 1_000;
    keeper.export(createSpan(trace));
  }
  assert.deepEqual([find(keeper, 1), find(keeper, 2)], [1, 1]);
  assert.equal(find(keeper, 100), 0, "the oldest ordinary trace has gone");
  assert.equal(find(keeper, 399), 1);
  for (let trace = 500; trace < 700; trace += 1) {
    keeper.export(createSpan(trace, { durationMs: 900 }));
  }
  assert.deepEqual([find(keeper, 1), find(keeper, 2), find(keeper, 399)], [1, 0, 1]);
});

test("an error keeps the ordinary spans of its trace", () => {
  const keeper = new SpanKeeper({ bytesMax: 40_000, readMonotonicMs });
  nowMs += 1_000;
  keeper.export(createSpan(1));
  keeper.export(createSpan(1, { isError: true }));
  for (let trace = 100; trace < 400; trace += 1) {
    nowMs += 1_000;
    keeper.export(createSpan(trace));
  }
  assert.equal(find(keeper, 1), 2);
});

test("at most 50 ordinary traces are kept in a second, and all with errors", () => {
  const keeper = new SpanKeeper({ readMonotonicMs });
  nowMs += 1_000;
  for (let trace = 1; trace <= 80; trace += 1) keeper.export(createSpan(trace));
  assert.deepEqual([find(keeper, 50), find(keeper, 51)], [1, 0]);
  assert.equal(keeper.takesOrdinary(), false);
  keeper.export(createSpan(90, { isError: true }));
  assert.equal(find(keeper, 90), 1);
  nowMs += 1_000;
  assert.equal(keeper.takesOrdinary(), true);
});

test("a span of a kept trace, one with an error and a slow one are kept however many there are", () => {
  const keeper = new SpanKeeper({ readMonotonicMs });
  let ids = 0;
  const tracer = createTracer({
    ids: {
      ...randomIds,
      traceId: () => String((ids += 1)).padStart(32, "0"),
    },
    clock: { ...systemClock, now: () => 0, monotonicMs: readMonotonicMs },
    exporter: combineExporters(keeper),
  });
  nowMs += 1_000;
  const first = tracer.startSpan({ name: "first", attributes: { a: 1, b: "x" } });
  first.setAttribute("a", 2);
  first.end();
  for (let n = 0; n < 80; n += 1) tracer.startSpan({ name: "ordinary" }).end();
  assert.equal(keeper.find("60".padStart(32, "0")).length, 0, "no place is left");
  tracer.startSpan({ name: "second", parent: first.context }).end();
  const failed = tracer.startSpan({ name: "failed" });
  failed.setAttribute("http.response.status_code", 503);
  failed.end();
  const slow = tracer.startSpan({ name: "slow" });
  nowMs += 600;
  slow.end();
  const outer = tracer.startSpan({ name: "outer" });
  nowMs += 100;
  const inner = tracer.startSpan({ name: "inner", parent: outer.context });
  inner.setStatus("error");
  inner.end();
  nowMs += 50;
  outer.end();
  assert.equal(keeper.find(outer.context.traceId).length, 2, "the span that began the trace");
  const kept = keeper.find(first.context.traceId);
  assert.deepEqual(
    kept.map(({ name }) => name),
    ["first", "second"],
  );
  assert.deepEqual(Object.fromEntries(kept[0]!.attributes), { a: 2, b: "x" });
  for (const { context } of [failed, slow]) assert.equal(keeper.find(context.traceId).length, 1);
});

test("memory and the spans of one trace are bounded", () => {
  const keeper = new SpanKeeper({ bytesMax: 100_000, readMonotonicMs });
  for (let n = 0; n < 1_000; n += 1) keeper.export(createSpan(1, { isError: true }));
  assert.ok(find(keeper, 1) <= 200);
  const long = "x".repeat(4_096);
  for (let trace = 2; trace < 200; trace += 1) {
    keeper.export(createSpan(trace, { isError: true, text: long }));
  }
  const kept = Array.from({ length: 200 }, (_, trace) => find(keeper, trace));
  assert.ok(kept.filter((count) => count > 0).length <= 6);
});
