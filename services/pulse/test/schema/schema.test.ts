// Schemas of topics: names of Object.prototype are ordinary names, and a check takes time in proportion to the payload.
import assert from "node:assert/strict";
import { test } from "node:test";
import { compileSchema, explainBreak } from "../../src/schema/schema.ts";

const NAMES = ["constructor", "toString", "hasOwnProperty", "valueOf"];

const isValid = (document: unknown, payload: unknown): boolean =>
  compileSchema(document).check(payload).length === 0;

for (const name of NAMES) {
  test(`${name} is an ordinary name`, () => {
    const text = { type: "string" };
    const properties = { [name]: text };
    assert.ok(isValid({ type: "object", properties }, {}), "an absent member is not checked");
    assert.ok(!isValid({ type: "object", properties }, { [name]: 1 }));
    const required = { type: "object", properties: { a: text }, required: [name] };
    assert.ok(!isValid(required, {}), "an inherited member is not there");
    assert.ok(isValid(required, { [name]: 1 }));
    const dependent = { type: "object", dependentRequired: { [name]: ["a"] } };
    assert.ok(isValid(dependent, {}));
    assert.ok(!isValid(dependent, { [name]: 1 }));
    const closed = { properties: { a: text }, additionalProperties: false, type: "object" };
    assert.ok(!isValid(closed, { [name]: 1 }));
    const unevaluated = { anyOf: [{ properties: { a: text } }], unevaluatedProperties: false };
    assert.ok(!isValid(unevaluated, { [name]: 1 }), "no schema has evaluated it");
    assert.ok(isValid(unevaluated, { a: "1" }));
    assert.ok(!isValid({ [name]: "string", a: "string" }, { a: "1" }), "a map requires it");
    const breaks = explainBreak(
      compileSchema({ a: "string" }),
      compileSchema({ a: "string", [name]: "string" }),
    );
    assert.match(breaks ?? "", /was not required before/);
  });
}

test("uniqueItems compares values, nested as well, in linear time", () => {
  const nested = { type: "array", items: { type: "array", uniqueItems: true } };
  assert.ok(
    isValid(nested, [
      [1, 2],
      [{ a: 1, b: 2 }, { a: 1 }],
    ]),
  );
  assert.ok(
    !isValid(nested, [
      [
        { a: 1, b: 2 },
        { b: 2, a: 1 },
      ],
    ]),
    "the order of members is none",
  );
  assert.ok(isValid(nested, [[1, "1", true, null]]));
  // About 1 MB: comparing pairs took seconds.
  const items = Array.from({ length: 60_000 }, (_, index) => ({ id: index }));
  // Processor time: others may keep the processor busy.
  const since = process.cpuUsage();
  assert.ok(isValid({ type: "object", properties: { a: nested } }, { a: [items, items] }));
  assert.ok(process.cpuUsage(since).user < 2_000_000);
});
