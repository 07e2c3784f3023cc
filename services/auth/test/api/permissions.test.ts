// Permissions, and those for one thing alone.
import assert from "node:assert/strict";
import { test } from "node:test";
import { coversPermission, intersectPermissions, PERMISSION } from "../../src/rbac/permission.ts";

test("a permission for one thing covers that thing only, and one for all covers each", () => {
  for (const held of ["data:read", "data:*", "*:read", "*:*", "data:read:shop"]) {
    assert.ok(coversPermission(held, "data:read:shop"), held);
  }
  for (const held of ["data:read:blog", "data:edit", "data:edit:shop", "users:read:shop"]) {
    assert.ok(!coversPermission(held, "data:read:shop"), held);
  }
  for (const wanted of ["data:read", "data:*", "*:*", "data:read:shop2"]) {
    assert.ok(!coversPermission("data:read:shop", wanted), wanted);
  }
});

test("what two lists have in common keeps the name of the thing", () => {
  const common = (left: string, right: string) => intersectPermissions([left], [right]);
  assert.deepEqual(common("data:read:shop", "data:read"), ["data:read:shop"]);
  assert.deepEqual(common("*:*", "data:read:shop"), ["data:read:shop"]);
  assert.deepEqual(common("data:*", "*:read"), ["data:read"]);
  assert.deepEqual(common("data:read:shop", "data:read:shop"), ["data:read:shop"]);
  assert.deepEqual(common("data:read:shop", "data:read:blog"), []);
  assert.deepEqual(common("data:read:shop", "data:edit"), []);
});

test("names of things are no patterns", () => {
  for (const text of ["data:read", "*:*", "data:read:shop", "data:read:my_shop-2.x"]) {
    assert.match(text, PERMISSION);
  }
  for (const text of [
    "data:read:*",
    "*:read:shop",
    "data:*:shop",
    "data:read:",
    "users:read:shop",
    "data:read:a:b",
  ]) {
    assert.doesNotMatch(text, PERMISSION);
  }
});
