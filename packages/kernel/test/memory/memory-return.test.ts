// Memory of idle processes.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { constants } from "node:perf_hooks";
import { test } from "node:test";
import { setImmediate } from "node:timers/promises";
import { promisify } from "node:util";
import { MemoryReturn } from "../../src/memory/memory-return.ts";

/** Shares of the thread's time, by second: collects and shrinks at the returned seconds. */
async function listReturns(
  shareAt: (second: number) => number,
  seconds: number,
): Promise<{ collections: number[]; shrinks: number[] }> {
  let nowMs = 0;
  let pending: { ms: number; callback: () => void } | undefined;
  const collections: number[] = [];
  const shrinks: number[] = [];
  void new MemoryReturn({
    measureShare: () => shareAt(nowMs / 1000),
    collect: () => void collections.push(nowMs / 1000),
    shrink: () => void shrinks.push(nowMs / 1000),
    wait: (ms, callback) => (pending = { ms, callback }),
  });
  while (nowMs < seconds * 1000) {
    const { ms, callback } = pending!;
    nowMs += ms;
    callback();
    // A collection ends.
    await setImmediate();
  }
  return { collections, shrinks };
}

test("an idle service collects once, soon after its start", async () => {
  const { collections, shrinks } = await listReturns(() => 0, 3_600);
  assert.equal(collections.length, 1);
  assert.ok(collections[0]! < 5, String(collections));
  assert.deepEqual(shrinks, []);
});

test("work of the start delays the collection", async () => {
  const { collections } = await listReturns((second) => (second < 5 ? 0.3 : 0), 60);
  assert.equal(collections.length, 1, String(collections));
  assert.ok(collections[0]! > 5 && collections[0]! < 9, String(collections));
});

test("the collection waits until no request is in flight", async () => {
  assert.deepEqual(await listReturns(() => 0.08, 1_800), { collections: [], shrinks: [] });
});

test("requests soon after the start keep their compiled code until the service is idle for long", async () => {
  const isBusy = (second: number): boolean => second < 10 || (second > 30 && second < 40);
  const { collections } = await listReturns((second) => (isBusy(second) ? 0.9 : 0), 1_800);
  assert.equal(collections.length, 1, String(collections));
  assert.ok(collections[0]! > 630 && collections[0]! < 645, String(collections));
});

test("a minute after a busy time the young generation is shrunk, after ten minutes all is collected", async () => {
  const isBusy = (second: number): boolean =>
    (second > 50 && second < 80) || (second > 300 && second < 305);
  const share = (second: number): number => (isBusy(second) ? 0.9 : 0);
  const { collections, shrinks } = await listReturns(share, 3_600);
  const [, ...later] = collections;
  assert.equal(later.length, 1, String(later));
  assert.ok(later[0]! > 900 && later[0]! < 910, String(later));
  assert.equal(shrinks.length, 2, String(shrinks));
  assert.ok(shrinks[0]! > 138 && shrinks[0]! < 145, String(shrinks));
  assert.ok(shrinks[1]! > 362 && shrinks[1]! < 370, String(shrinks));
});

test("the young generation is shrunk without a full collection", async () => {
  const module = new URL("../../src/memory/memory-return.ts", import.meta.url).href;
  const code = `
    import { PerformanceObserver } from "node:perf_hooks";
    import { setTimeout as sleep } from "node:timers/promises";
    import { getHeapSpaceStatistics } from "node:v8";
    import { shrinkYoung } from ${JSON.stringify(module)};
    const measure = () =>
      getHeapSpaceStatistics().find(({ space_name }) => space_name === "new_space").physical_space_size;
    for (let round = 0, list; round < 20; round++) list = Array.from({ length: 50_000 }, (_, index) => ({ index }));
    await sleep(1_000);
    const kinds = [];
    new PerformanceObserver((found) => kinds.push(...found.getEntries().map(({ detail }) => detail.kind))).observe({ entryTypes: ["gc"] });
    const before = measure();
    await shrinkYoung();
    await sleep(100);
    console.log(JSON.stringify({ before, after: measure(), kinds }));
    process.exit();`;
  // A smaller young generation is full earlier.
  const args = [
    "--max-semi-space-size=4",
    "--input-type=module",
    "--eval",
    `setInterval(() => {}, 1_000);${code}`,
  ];
  const { stdout } = await promisify(execFile)(process.execPath, args);
  const { before, after, kinds } = JSON.parse(stdout);
  assert.ok(before > 6_000_000, stdout);
  assert.ok(after <= 4_194_304, stdout);
  assert.deepEqual([...new Set(kinds)], [constants.NODE_PERFORMANCE_GC_MINOR], stdout);
});

test("a thread returns memory when it is idle, if it asks for that", async () => {
  const module = new URL("../../src/memory/memory-return.ts", import.meta.url).href;
  const code = `
    import { returnMemory } from ${JSON.stringify(module)};
    let list = Array.from({ length: 500_000 }, (_, index) => ({ index }));
    const before = process.memoryUsage().heapUsed + 0 * list.length;
    list = undefined;
    if (process.argv[1] === "asks") returnMemory();
    setTimeout(() => console.log(before - process.memoryUsage().heapUsed), 4_000);`;
  const measure = async (argument: string) => {
    const args = ["--input-type=module", "--eval", code, argument];
    const { stdout } = await promisify(execFile)(process.execPath, args);
    return Number(stdout);
  };
  const [returned, kept] = await Promise.all([measure("asks"), measure("does not")]);
  assert.ok(returned > 10_000_000, String(returned));
  assert.ok(kept < 5_000_000, String(kept));
});
