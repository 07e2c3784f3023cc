// Preconditions and ranges (RFC 9110 sections 13.1, 13.2.2 and 14.2).
import assert from "node:assert/strict";
import { test } from "node:test";
import { evaluateConditions } from "../../src/content/index.ts";

const MODIFIED_MS = Date.UTC(2026, 0, 2, 3, 4, 5);
const SAME = new Date(MODIFIED_MS).toUTCString();
const EARLIER = new Date(MODIFIED_MS - 1_000).toUTCString();
const LATER = new Date(MODIFIED_MS + 1_000).toUTCString();

function evaluate(fields: Record<string, string>, method = "GET", ageMs = 60_000) {
  const validators = { etag: '"a"', modifiedMs: MODIFIED_MS + 400, sizeBytes: 10 };
  return evaluateConditions(method, (name) => fields[name], validators, MODIFIED_MS + ageMs);
}

test("conditions are evaluated in the order of the RFC", () => {
  const cases: [fields: Record<string, string>, status: number][] = [
    [{}, 200],
    [{ "if-match": '"a"' }, 200],
    [{ "if-match": '"b", "a"' }, 200],
    [{ "if-match": "*" }, 200],
    [{ "if-match": 'W/"a"' }, 412],
    [{ "if-match": '"b"' }, 412],
    [{ "if-match": '"a"', "if-unmodified-since": EARLIER }, 200],
    [{ "if-unmodified-since": EARLIER }, 412],
    [{ "if-unmodified-since": SAME }, 200],
    [{ "if-unmodified-since": "yesterday" }, 200],
    [{ "if-none-match": '"b", W/"a"' }, 304],
    [{ "if-none-match": "*" }, 304],
    [{ "if-none-match": '"b"', "if-modified-since": LATER }, 200],
    [{ "if-modified-since": SAME }, 304],
    [{ "if-modified-since": LATER }, 304],
    [{ "if-modified-since": EARLIER }, 200],
    [{ "if-match": '"b"', "if-none-match": '"a"' }, 412],
    [{ "if-none-match": '"a"', range: "bytes=0-1" }, 304],
  ];
  for (const [fields, status] of cases) {
    assert.equal(evaluate(fields).status, status, JSON.stringify(fields));
  }
});

test("ranges are selected, unusable ones are ignored", () => {
  const cases: [range: string, result: object][] = [
    ["bytes=0-3", { status: 206, ranges: [{ start: 0, end: 4 }] }],
    ["bytes=7-", { status: 206, ranges: [{ start: 7, end: 10 }] }],
    ["bytes=-3", { status: 206, ranges: [{ start: 7, end: 10 }] }],
    ["bytes=-99", { status: 206, ranges: [{ start: 0, end: 10 }] }],
    ["bytes=9-99", { status: 206, ranges: [{ start: 9, end: 10 }] }],
    ["bytes=10-", { status: 416 }],
    ["bytes=-0", { status: 416 }],
    ["bytes=3-2", { status: 200 }],
    ["bytes=-", { status: 200 }],
    ["bytes=0-1,4-5", { status: 206, ranges: [{ start: 0, end: 6 }] }],
    ["items=0-1", { status: 200 }],
  ];
  for (const [range, result] of cases) assert.deepEqual(evaluate({ range }), result, range);
  assert.deepEqual(evaluate({ range: "bytes=0-3" }, "HEAD"), { status: 200 });
});

test("If-Range requires a strong validator", () => {
  const evaluateWith = (validator: string, ageMs?: number) =>
    evaluate({ range: "bytes=0-3", "if-range": validator }, "GET", ageMs).status;
  assert.equal(evaluateWith('"a"'), 206);
  assert.equal(evaluateWith('"b"'), 200);
  assert.equal(evaluateWith('W/"a"'), 200);
  assert.equal(evaluateWith(SAME), 206);
  assert.equal(evaluateWith(LATER), 200);
  assert.equal(evaluateWith(SAME, 999), 200);
  assert.equal(evaluateWith("*"), 200);
});
