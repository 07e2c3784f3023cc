// Jumps of the system clock.
import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { createLogger } from "@platform/kernel/log";
import { createManualClock } from "@platform/kernel/time";
import { watchClock } from "../../src/supervisor/clock-watch.ts";

const HOUR = 3_600_000;

test("a jump of the clock is logged with what to do, and is a condition for an hour", async (t) => {
  const clock = createManualClock(10 * HOUR);
  const lines: { msg: string; seconds: number; remedy: string }[] = [];
  const logger = createLogger({
    service: "test",
    format: "json",
    write: (line) => void lines.push(JSON.parse(line)),
  });
  const watch = watchClock(clock, logger, 5);
  t.after(() => watch.stop());
  const waitForLines = async (count: number): Promise<void> => {
    for (let turn = 0; turn < 2_000 && lines.length < count; turn++) await sleep(10);
    assert.equal(lines.length, count);
  };
  clock.advance(10_000);
  clock.setNow(clock.now() + 20_000);
  await sleep(50);
  assert.equal(watch.describe(), undefined, "corrections of a time service are not reported");

  clock.setNow(clock.now() + HOUR);
  await waitForLines(1);
  assert.equal(lines[0]!.msg, "the system clock has jumped");
  assert.equal(lines[0]!.seconds, 3_600);
  assert.match(lines[0]!.remedy, /timedatectl; sessions, tokens and presigned URLs may have/);
  assert.match(watch.describe()!, /^the system clock jumped forward by 3600 s: check it with date/);

  clock.setNow(clock.now() - 2 * HOUR);
  await waitForLines(2);
  assert.match(watch.describe()!, /^the system clock jumped back by 7200 s: .*not be valid yet$/);
  clock.advance(HOUR + 1);
  assert.equal(watch.describe(), undefined);
});
