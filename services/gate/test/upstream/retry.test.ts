// Retry decisions and the retry budget.
import assert from "node:assert/strict";
import { test } from "node:test";
import { RetryBudget } from "../../src/upstream/retry-budget.ts";
import { decideRetry, type FailedAttempt } from "../../src/upstream/retry-policy.ts";

const SENT_GET: FailedAttempt = {
  idempotent: true,
  requestSent: true,
  replayable: true,
  isTargetBlameless: false,
  retries: 0,
  retriesMax: 2,
  refreshed: false,
};

test("retry decisions", () => {
  const table: [string, Partial<FailedAttempt>, string][] = [
    ["an idempotent request that was sent", {}, "other-target spend"],
    ["one that was never sent", { requestSent: false }, "other-target free"],
    ["a POST that was sent", { idempotent: false }, "give-up"],
    ["a POST that was never sent", { idempotent: false, requestSent: false }, "other-target free"],
    ["a body that is gone", { replayable: false }, "give-up"],
    ["after two retries", { retries: 2 }, "give-up"],
    ["after two retries, never sent", { retries: 2, requestSent: false }, "give-up"],
    ["a keep-alive race", { isTargetBlameless: true }, "same-target"],
    [
      "a second keep-alive race",
      { isTargetBlameless: true, refreshed: true },
      "other-target spend",
    ],
    ["a keep-alive race of a POST", { isTargetBlameless: true, idempotent: false }, "give-up"],
  ];
  for (const [name, change, expected] of table) {
    const decision = decideRetry({ ...SENT_GET, ...change });
    const told =
      decision.kind === "other-target"
        ? `${decision.kind} ${decision.spend ? "spend" : "free"}`
        : decision.kind;
    assert.equal(told, expected, name);
  }
});

test("the budget is ten retries per second without traffic, and 20 % of requests with traffic", () => {
  const idle = new RetryBudget();
  assert.equal(takeAll(idle, 1_000), 100);
  const busy = new RetryBudget();
  for (let request = 0; request < 10_000; request++) busy.addRequest();
  assert.equal(takeAll(busy, 10_000), 2_000);
});

test("spent budget is available again after the window", () => {
  const budget = new RetryBudget();
  assert.equal(takeAll(budget, 1_000), 100);
  for (let second = 0; second < 9; second++) budget.tick();
  assert.equal(budget.takeRetry(), false);
  budget.tick();
  assert.equal(takeAll(budget, 1_000), 100);
});

function takeAll(budget: RetryBudget, times: number): number {
  let taken = 0;
  for (let time = 0; time < times; time++) if (budget.takeRetry()) taken++;
  return taken;
}
