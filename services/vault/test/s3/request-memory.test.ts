// The memory limit of documents and the files of forms.
import assert from "node:assert/strict";
import { test } from "node:test";
import { RequestMemory } from "../../src/s3/request-memory.ts";

test("one tenant gets half of the memory, and others the rest", () => {
  const memory = new RequestMemory({ bytesMax: 100 });
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

test("files wait for room, and those of other tenants overtake them", async () => {
  const memory = new RequestMemory({ bytesMax: 100 });
  const { signal } = new AbortController();
  assert.equal(memory.takeWhenRoom("a", 50, signal), undefined);
  let isTaken = false;
  const own = memory.takeWhenRoom("a", 30, signal)?.then(() => (isTaken = true));
  assert.equal(memory.takeWhenRoom("b", 50, signal), undefined);
  const other = memory.takeWhenRoom("c", 40, signal);
  memory.give("b", 50);
  await other;
  assert.equal(isTaken, false);
  memory.give("a", 50);
  await own;
  assert.throws(() => memory.take("d", 31), { code: "ServiceUnavailable" });
  memory.take("d", 30);
});

test("a wait ends after its limit, and when its request has ended", async () => {
  const memory = new RequestMemory({ bytesMax: 100, waitMs: 20 });
  memory.take("a", 50);
  const ended = new AbortController();
  const waiting = memory.takeWhenRoom("a", 50, ended.signal);
  ended.abort();
  await assert.rejects(async () => waiting, { code: "ServiceUnavailable" });
  const late = memory.takeWhenRoom("a", 50, new AbortController().signal);
  await assert.rejects(async () => late, { code: "ServiceUnavailable" });
  memory.give("a", 50);
  memory.take("a", 50);
});
