// Memory of idle processes.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { test } from "node:test";
import { setImmediate } from "node:timers/promises";
import { promisify } from "node:util";
import { MemoryReturn } from "../../src/memory/memory-return.ts";

/** Shares of the thread's time, by second: collects at the returned seconds. */
async function listCollections(
  shareAt: (second: number) => number,
  seconds: number,
): Promise<number[]> {
  let nowMs = 0;
  let pending: { ms: number; callback: () => void } | undefined;
  const collections: number[] = [];
  void new MemoryReturn({
    measureShare: () => shareAt(nowMs / 1000),
    collect: () => void collections.push(nowMs / 1000),
    wait: (ms, callback) => (pending = { ms, callback }),
  });
  while (nowMs < seconds * 1000) {
    const { ms, callback } = pending!;
    nowMs += ms;
    callback();
    // A collection ends.
    await setImmediate();
  }
  return collections;
}

test("an idle service collects once, soon after its start", async () => {
  const collections = await listCollections(() => 0, 600);
  assert.equal(collections.length, 1);
  assert.ok(collections[0]! < 5, String(collections));
});

test("the collection waits until no request is in flight", async () => {
  assert.deepEqual(await listCollections(() => 0.08, 600), []);
  const [first] = await listCollections((second) => (second < 100 ? 0.5 : 0), 600);
  assert.ok(first! >= 100, String(first));
});

test("a service collects again a minute after a busy time, and once for each", async () => {
  const isBusy = (second: number): boolean =>
    (second > 50 && second < 80) || (second > 300 && second < 305);
  const [, ...later] = await listCollections((second) => (isBusy(second) ? 0.6 : 0), 900);
  assert.equal(later.length, 2, String(later));
  assert.ok(later[0]! > 138 && later[0]! < 145, String(later));
  assert.ok(later[1]! > 362 && later[1]! < 370, String(later));
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
