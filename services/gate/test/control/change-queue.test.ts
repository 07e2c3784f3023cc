// The queue of changes.
import assert from "node:assert/strict";
import { test } from "node:test";
import { ChangeQueue } from "../../src/control/change-queue.ts";

test("changes run one at a time in order, also after a failure", async () => {
  const queue = new ChangeQueue(10);
  const seen: string[] = [];
  const gate = Promise.withResolvers<void>();
  const first = queue.run(async () => {
    seen.push("first begins");
    await gate.promise;
    seen.push("first ends");
  });
  const second = queue.run(() => Promise.reject(new Error("second fails")));
  const third = queue.run(async () => seen.push("third"));
  gate.resolve();
  await first;
  await assert.rejects(second, /second fails/);
  await third;
  assert.deepEqual(seen, ["first begins", "first ends", "third"]);
});

test("changes beyond the queue limit are refused with overloaded until others are done", async () => {
  const queue = new ChangeQueue(2);
  const gate = Promise.withResolvers<void>();
  const waiting = [queue.run(() => gate.promise), queue.run(() => gate.promise)];
  assert.throws(() => queue.run(() => gate.promise), { code: "overloaded" });
  gate.resolve();
  await Promise.all(waiting);
  await queue.run(() => Promise.resolve());
});
