import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import {
  explainTopicName,
  fromKafkaName,
  splitStoredName,
  toKafkaName,
  toStoredName,
} from "../../src/topic/name.ts";
import { compilePattern } from "../../src/topic/pattern.ts";

test("names with tenants, wildcards or reserved prefixes are rejected", () => {
  const bad = ["", ".", "..", "a:b", "a*", "#", "+", "$sys", "__state", "a b", "a\n", "a/b"];
  for (const name of bad) assert.equal(typeof explainTopicName(name), "string", name);
  for (const name of [
    "a",
    "orders.eu",
    "a_b-c.1",
    "büro",
    "a..b",
    ".a",
    "a.",
    "...",
    "x".repeat(249),
  ]) {
    assert.equal(explainTopicName(name), undefined, name);
  }
  assert.equal(typeof explainTopicName("x".repeat(250)), "string");
});

test("Kafka names are legal and reversible", () => {
  fc.assert(
    fc.property(fc.string({ unit: "grapheme", minLength: 1, maxLength: 40 }), (name) => {
      const shown = toKafkaName(name);
      assert.match(shown, /^[A-Za-z0-9._-]+$/);
      assert.equal(fromKafkaName(shown), name.toWellFormed());
    }),
  );
  for (const name of ["_x41", "a_x5F_x41", "_x", "_x4", "é_xFF"]) {
    assert.equal(fromKafkaName(toKafkaName(name)), name);
  }
});

test("a stored name is the tenant's prefix and the name", () => {
  assert.equal(toStoredName("acme", "a.b"), "acme:a.b");
  assert.deepEqual(splitStoredName("acme:a.b"), { tenant: "acme", name: "a.b" });
  assert.deepEqual(splitStoredName("a.b"), { tenant: "", name: "a.b" });
});

test("* matches one level and # zero or more", () => {
  const cases: [pattern: string, name: string, matches: boolean][] = [
    ["a.*", "a.b", true],
    ["a.*", "a", false],
    ["a.*", "a.b.c", false],
    ["a.#", "a", true],
    ["a.#", "a.b.c", true],
    ["#", "anything.at.all", true],
    ["#.end", "end", true],
    ["#.end", "x.y.end", true],
    ["#.end", "x.end.y", false],
    ["a.#.c.*", "a.b.b.c.d", true],
    ["*.*", "a", false],
    ["a.*.b", "a..b", true],
    ["a..*", "a..b", true],
    ["a..*", "a.b", false],
  ];
  for (const [pattern, name, matches] of cases) {
    assert.equal(compilePattern(pattern)(name), matches, `${pattern} on ${name}`);
  }
  for (const bad of ["a*", "a.b#", "a.:"]) assert.throws(() => compilePattern(bad), bad);
});

test("patterns with many # are matched in polynomial time", () => {
  const pattern = Array.from({ length: 60 }, (_, at) => (at % 2 === 0 ? "#" : "a")).join(".");
  const started = performance.now();
  assert.equal(compilePattern(pattern)(`${"a.".repeat(60)}b`), false);
  // Exponential work never ends.
  assert.ok(performance.now() - started < 10_000);
});
