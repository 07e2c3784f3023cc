// Work that follows a calendar that was set back.
import assert from "node:assert/strict";
import { test } from "node:test";
import { SetBackWatch } from "../../src/time/index.ts";

test("work is done at first and after each step back, until it succeeds", async () => {
  const watch = new SetBackWatch();
  const done: number[] = [];
  let fails = false;
  const follow = (nowMs: number) =>
    watch.follow(nowMs, async () => {
      if (fails) throw new Error("the database is down");
      done.push(nowMs);
    });
  await follow(100);
  await follow(200);
  await follow(200);
  assert.deepEqual(done, [100]);
  fails = true;
  await assert.rejects(follow(150), /the database is down/);
  fails = false;
  await follow(160);
  assert.deepEqual(done, [100, 160]);
  watch.note(500);
  await follow(300);
  await follow(301);
  assert.deepEqual(done, [100, 160, 300]);
});
