// Bounds of what is held for guests: the time of a response, and the bytes of requests.
import assert from "node:assert/strict";
import { test } from "node:test";
import type { ContentOutput } from "@platform/http1";
import { BodyBudget } from "../../src/middleware/body-budget.ts";
import { describeFault } from "../../src/middleware/guest-fault.ts";
import { HeldResponse } from "../../src/middleware/held-response.ts";

const OUTPUT = {} as ContentOutput;

test("a response that is not complete after 30 s is given up, and passes no later content", (context) => {
  context.mock.timers.enable({ apis: ["setTimeout"] });
  const reasons: string[] = [];
  let contents = 0;
  const held = new HeldResponse({
    ends: true,
    onTooLarge: (reason) => reasons.push(reason),
    onContent: () => void contents++,
  });
  held.onBytes(Buffer.from("first"), OUTPUT);
  context.mock.timers.tick(29_999);
  assert.deepEqual(reasons, []);
  context.mock.timers.tick(1);
  assert.deepEqual(reasons, ["The response was not complete in time to be buffered."]);
  held.onBytes(Buffer.from("second"), OUTPUT);
  held.onEnd(OUTPUT);
  assert.equal(contents, 0);
});

test("bodies of requests have 128 MiB in a worker; then requests are refused until some have ended", () => {
  const budget = new BodyBudget();
  budget.claim(128 * 1024 * 1024);
  assert.throws(
    () => budget.claim(1),
    (error) => {
      const { code, isOfGuest } = describeFault(error);
      assert.deepEqual([code, isOfGuest], ["overloaded", false]);
      return true;
    },
  );
  budget.release(1);
  budget.claim(1);
});
