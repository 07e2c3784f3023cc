// Which failures of a whole run get a second chance.
import assert from "node:assert/strict";
import { test } from "node:test";
import { chooseReruns } from "./rerun.ts";
import type { FileResult } from "./test-file.ts";

function list(failed: readonly string[], count: number): FileResult[] {
  const passed = Array.from({ length: count - failed.length }, (_, index) => `passed-${index}`);
  return [...passed, ...failed].map((file) => ({
    file,
    ms: 1,
    cost: { wallS: 0, cpuS: 0 },
    counts: { passed: 1, failed: 0, skipped: 0 },
    failure: failed.includes(file) ? "1 failed" : undefined,
    output: "",
    skips: [],
  }));
}

const choose = (failed: readonly string[], count: number): string[] =>
  chooseReruns(list(failed, count)).map(({ file }) => file);

test("a few failed files of a whole run are run again", () => {
  assert.deepEqual(choose(["a", "b"], 400), ["a", "b"]);
});

test("many failures, a run of a few files, and suites about data are not run again", () => {
  assert.deepEqual(choose(["a", "b", "c", "d"], 400), []);
  assert.deepEqual(choose(["a"], 5), []);
  assert.deepEqual(choose(["pulse/test/kill.test.ts", "a"], 400), ["a"]);
});
