// Whether types are checked beside a running service.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { TypeCheck } from "../../src/watch/type-check.ts";

/** Child processes that this thread has started, as their number in /proc. */
function countChildren(): number {
  const text = readFileSync(`/proc/self/task/${process.pid}/children`, "utf8");
  return text.split(" ").filter((pid) => pid !== "").length;
}

test("a process checks the types beside a service, unless that is off", () => {
  for (const [setting, count] of [
    ["off", 0],
    ["on", 1],
    ["", 1],
  ] as const) {
    const before = countChildren();
    const check = new TypeCheck("missing.service.ts", assert.fail, setting);
    check.start();
    assert.equal(countChildren() - before, count, setting);
    check.stop();
  }
  assert.throws(
    () => new TypeCheck("missing.service.ts", assert.fail, "no"),
    /PLATFORM_SERVICE_TYPE_CHECK is "no"; expected "on" or "off"/,
  );
});
