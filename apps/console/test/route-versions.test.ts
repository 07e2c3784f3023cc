// Versions of a route that two people have changed: what differs, and how it is merged.
import assert from "node:assert/strict";
import { test } from "node:test";
import {
  compareVersions,
  isSame,
  mergeVersions,
  type Side,
} from "../src/gateway/route-versions.ts";

const base = { prefix: "/a", target: "http://a", rpm: 1, gone: 1, kept: { a: 1, b: 2 } };
const mine = { prefix: "/a", target: "http://b", rpm: 2, kept: { b: 2, a: 1 }, own: true };
const theirs = { prefix: "/a", target: "http://a", rpm: 3, gone: 2, kept: { a: 1, b: 2 }, new: 1 };

test("a member that one has changed is that version's, and one that both have is open", () => {
  const found = compareVersions(base, mine, theirs).map(({ name, changedBy }) => [name, changedBy]);
  assert.deepEqual(found, [
    ["target", "mine"],
    ["rpm", undefined],
    ["gone", undefined],
    ["new", "theirs"],
    ["own", "mine"],
  ]);
});

test("the merge has the chosen members, and loses those that the chosen version has removed", () => {
  const differences = compareVersions(base, mine, theirs);
  const merge = (open: Side) =>
    mergeVersions(theirs, differences, ({ changedBy }) => changedBy ?? open);
  const common = { prefix: "/a", target: "http://b", kept: { a: 1, b: 2 }, new: 1, own: true };
  assert.deepEqual(merge("mine"), { ...common, rpm: 2 });
  assert.deepEqual(merge("theirs"), { ...common, rpm: 3, gone: 2 });
});

test("a member called __proto__ is a member", () => {
  const odd = JSON.parse('{"__proto__": {"a": 1}}') as Record<string, unknown>;
  const differences = compareVersions({}, odd, {});
  assert.deepEqual(
    differences.map(({ name }) => name),
    ["__proto__"],
  );
  const merged = mergeVersions({}, differences, () => "mine");
  assert.equal(Object.getPrototypeOf(merged), Object.prototype);
  assert.ok(Object.hasOwn(merged, "__proto__"));
});

test("equality does not depend on the order of members", () => {
  assert.ok(isSame({ a: [{ b: 1, c: 2 }] }, { a: [{ c: 2, b: 1 }] }));
  assert.ok(!isSame({ a: [1, 2] }, { a: [2, 1] }));
  assert.ok(!isSame(undefined, null));
});
