// Which test files run beside each other, and what a file's cost is.
import assert from "node:assert/strict";
import { test } from "node:test";
import { IdleCores } from "./idle-cores.ts";
import { parseTimes, type TestCost } from "./test-costs.ts";
import { TestQueue } from "./test-queue.ts";

const plan = (file: string) => ({ file, env: {}, timeoutMs: 1 });

function createQueue(costs: Record<string, TestCost>, jobs?: number): TestQueue {
  const plans = Object.keys(costs).map(plan);
  const options = { costs: new Map(Object.entries(costs)), cores: 2 };
  return new TestQueue(plans, jobs === undefined ? options : { ...options, jobs });
}

function takeAll(queue: TestQueue): string[] {
  const taken: string[] = [];
  for (let next = queue.take(); next !== undefined; next = queue.take()) taken.push(next.file);
  return taken;
}

test("the longest file is first, and a file that waits is taken before a longer one that is busy", () => {
  const queue = createQueue({
    short: { wallS: 2, cpuS: 2 },
    busy: { wallS: 50, cpuS: 50 },
    browser: { wallS: 100, cpuS: 200 },
    waiter: { wallS: 40, cpuS: 2 },
  });
  assert.deepEqual(takeAll(queue), ["browser", "waiter"]);
  assert.deepEqual(
    queue.waiting.map(({ file }) => file),
    ["busy", "short"],
  );
});

test("a file that ends makes room, and one that needs more than there is runs alone", () => {
  const queue = createQueue({
    all: { wallS: 10, cpuS: 90 },
    one: { wallS: 9, cpuS: 9 },
    other: { wallS: 8, cpuS: 8 },
  });
  const first = queue.take()!;
  assert.equal(first.file, "all");
  assert.equal(queue.take(), undefined);
  queue.release(first);
  assert.deepEqual(takeAll(queue), ["one", "other"]);
});

test("a given number of jobs counts files, whatever they cost", () => {
  const files = Object.fromEntries(
    Array.from({ length: 5 }, (_, n) => [`${n}`, { wallS: 1, cpuS: 0 }]),
  );
  assert.equal(takeAll(createQueue(files, 3)).length, 3);
  assert.equal(takeAll(createQueue(files)).length, 5);
});

test("the CPU time of a file is that of its processes", () => {
  assert.equal(parseTimes("0m0.01s 0m0.02s\n1m2.500s 0m3.25s\n"), 65.75);
});

test("more files than cores run only while cores are idle, whatever their recorded loads", () => {
  let [nowMs, idleMs] = [0, 0];
  const idle = new IdleCores(() => ({ idleMs, nowMs }));
  const files = Array.from({ length: 6 }, (_, n) => `${n}`);
  const costs = new Map(files.map((file) => [file, { wallS: 9, cpuS: 0 }]));
  const queue = new TestQueue(files.map(plan), { costs, cores: 2, idle });
  const pass = (ms: number, idleCores: number): void => {
    nowMs += ms;
    idleMs += ms * idleCores;
  };
  assert.deepEqual(takeAll(queue), ["0", "1"], "as many as cores");
  pass(500, 2);
  assert.deepEqual(takeAll(queue), [], "too early to know");
  pass(1_000, 0.1);
  assert.deepEqual(takeAll(queue), ["2"], "mostly idle since the last start");
  for (let round = 0; round < 5; round++) {
    pass(1_000, 0.1);
    assert.deepEqual(takeAll(queue), [], "busy");
  }
  pass(1_000, 1);
  assert.deepEqual(takeAll(queue), ["3"], "idle of late");
});
