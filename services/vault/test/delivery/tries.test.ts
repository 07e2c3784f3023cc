// The memory of tries is bounded, and forgets what is the longest ago.
import assert from "node:assert/strict";
import { test } from "node:test";
import { TryLog } from "../../src/delivery/tries.ts";
import { MemoryOutbox } from "./rig.ts";

const target = { kind: "webhook", url: "https://example.com/", names: "objstore" } as const;
const delivered = { endedMs: 1, durationMs: 1, attempt: 1, outcome: "delivered" } as const;

test("the newest tries of a subscription are kept, and all are counted", () => {
  const outbox = new MemoryOutbox();
  const log = new TryLog();
  for (let n = 0; n < 50; n += 1) log.add(outbox.add(target, { key: `k${n}` }), delivered);
  const reason = "x".repeat(10_000);
  log.add(outbox.add(target), { ...delivered, outcome: "abandoned", reason });
  const found = log.read("photos", "rule");
  assert.deepEqual([found.delivered, found.failed, found.abandoned], [50, 0, 1]);
  assert.equal(found.tries.length, 20);
  assert.deepEqual([found.tries[0]!.reason!.length, found.tries[1]!.key], [500, "k49"]);
});

test("of more than a thousand subscriptions the one without a recent try is forgotten", () => {
  const outbox = new MemoryOutbox();
  const log = new TryLog();
  const add = (n: number): void => log.add(outbox.add(target, { ruleId: `r${n}` }), delivered);
  for (let n = 0; n < 1_000; n += 1) add(n);
  add(0);
  add(1_000);
  const counts = [0, 1, 2, 1_000].map((n) => log.read("photos", `r${n}`).delivered);
  assert.deepEqual(counts, [2, 0, 1, 1]);
});
