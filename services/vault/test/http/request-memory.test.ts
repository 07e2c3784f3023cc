// The bound on memory for documents and forms.
import assert from "node:assert/strict";
import { test } from "node:test";
import { RequestMemory } from "../../src/http/request-memory.ts";

test("one source gets half of the memory, and others the rest", () => {
  const memory = new RequestMemory(100);
  memory.take("a", 50);
  assert.throws(() => memory.take("a", 1), { code: "ServiceUnavailable" });
  memory.take("b", 49);
  memory.take("c", 1);
  assert.throws(() => memory.take("d", 1), { code: "ServiceUnavailable" });
  memory.give("a", 50);
  memory.take("d", 50);
  memory.give("b", 49);
  memory.take("a", 49);
});
