// Which test files share a process, and how a group's costs are divided.
import assert from "node:assert/strict";
import { test } from "node:test";
import { addCosts, shareCosts, type TestCost } from "./test-costs.ts";
import { divideGroup, groupPlans } from "./test-groups.ts";
import type { TestPlan } from "./test-plan.ts";

const plan = (file: string): TestPlan => ({ file, env: {}, timeoutMs: 1 });
const others = Array.from({ length: 30 }, (_, n) => `services/long/test/${n}.test.ts`);

/** Groups files that take these seconds, beside long ones. */
function group(seconds: Record<string, number>, texts: Record<string, string> = {}): string[][] {
  const costs = new Map<string, TestCost>(
    Object.entries(seconds).map(([file, wallS]) => [file, { wallS, cpuS: wallS }]),
  );
  const plans = [...others, ...Object.keys(seconds), "services/gate/test/unknown.test.ts"];
  return groupPlans(plans.map(plan), costs, (file) => texts[file] ?? "").flatMap(({ members }) =>
    members === undefined ? [] : [[...members]],
  );
}

test("small files of a package share a process, up to the time of a longer file", () => {
  const seconds = Object.fromEntries(
    Array.from({ length: 10 }, (_, n) => [`services/gate/test/${n}.test.ts`, 10]),
  );
  const groups = group({
    ...seconds,
    "services/gate/test/long.test.ts": 100,
    "services/pulse/a": 1,
  });
  assert.deepEqual(
    groups.map((files) => files.length),
    [4, 4, 2],
  );
  assert.ok(
    groups.flat().every((file) => /gate\/test\/\d/.test(file)),
    "others stay alone",
  );
});

test("suites about data, and files that change or measure their process, stay alone", () => {
  const files = ["a", "b", "crash/c", "hook", "environment", "heap"];
  const seconds = Object.fromEntries(files.map((name) => [`packages/x/${name}`, 1]));
  const texts = {
    "packages/x/hook": 'import "a";\nbeforeEach(() => undefined);',
    "packages/x/environment": '  process.env["KEY"] = "value";',
    "packages/x/heap": "const { rss } = process.memoryUsage();",
  };
  assert.deepEqual(group(seconds, texts), [["packages/x/a", "packages/x/b"]]);
});

test("a few files run one by one", () => {
  const plans = ["packages/x/a", "packages/x/b"].map(plan);
  const costs = new Map(plans.map(({ file }) => [file, { wallS: 1, cpuS: 1 }]));
  assert.deepEqual(
    groupPlans(plans, costs, () => ""),
    plans,
  );
});

test("a group is divided into its files, and its costs as they were recorded", () => {
  const members = ["a", "b"];
  assert.deepEqual(divideGroup({ ...plan("group"), members }, 1), members.map(plan));
  const recorded = new Map([
    ["a", { wallS: 1, cpuS: undefined }],
    ["b", { wallS: 3, cpuS: 1 }],
  ]);
  assert.deepEqual(shareCosts({ wallS: 8, cpuS: 4 }, members, recorded), [
    ["a", { wallS: 2, cpuS: 1 }],
    ["b", { wallS: 6, cpuS: 3 }],
  ]);
});

test("the processor time of a group is not known unless that of each file is", () => {
  const known = { wallS: 2, cpuS: 1 };
  assert.deepEqual(addCosts([known, known]), { wallS: 4, cpuS: 2 });
  assert.deepEqual(addCosts([known, { wallS: 3, cpuS: undefined }]), {
    wallS: 5,
    cpuS: undefined,
  });
});
