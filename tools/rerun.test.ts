// Which failures of a whole run get a second chance.
import assert from "node:assert/strict";
import { test } from "node:test";
import { chooseReruns, judgeRerun } from "./rerun.ts";
import type { FileResult } from "./test-file.ts";

function list(failed: readonly string[], count: number): FileResult[] {
  const passed = Array.from({ length: count - failed.length }, (_, index) => `passed-${index}`);
  return [...passed, ...failed].map((file) => ({
    file,
    ms: 1,
    cost: { wallS: 0, cpuS: 0 },
    counts: { passed: 1, failed: 0, skipped: 0 },
    failure: failed.includes(file) ? "1 failed" : undefined,
    failedTests: failed.includes(file) ? ["one"] : [],
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
  assert.deepEqual(choose(["auth/test/file-faults.test.ts", "editor/faults.test.ts"], 400), [
    "editor/faults.test.ts",
  ]);
});

test("a file passes if each of its tests has passed in one of its two runs", () => {
  const [base] = list([], 1);
  const fail = (failedTests: readonly string[], failed = failedTests.length): FileResult => ({
    ...base!,
    counts: { passed: 50, failed, skipped: 2 },
    failure: `${failed} failed`,
    failedTests,
  });
  const judge = (first: FileResult, second: FileResult) => judgeRerun(first, second).failure;
  assert.equal(judge(fail(["one"]), base!), undefined);
  assert.equal(judge(fail(["one"]), fail(["one", "two"])), "2 failed");
  const judged = judgeRerun(fail(["one"]), fail(["two"]));
  assert.equal(judged.failure, undefined);
  assert.deepEqual(judged.counts, { passed: 51, failed: 0, skipped: 2 });
  assert.equal(judge(fail(["one"]), fail([], 3)), "3 failed", "cancelled tests have no name");
  const cutOff = { ...fail([]), counts: base!.counts, failure: "was killed" };
  assert.equal(judge(cutOff, fail(["two"])), "1 failed");
  assert.equal(judge(fail(["one"]), cutOff), "was killed");
});
