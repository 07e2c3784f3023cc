// Memory of idle processes.
import assert from "node:assert/strict";
import { once } from "node:events";
import { test } from "node:test";
import { cachedDataVersionTag } from "node:v8";
import { Worker } from "node:worker_threads";
import { collectGarbage, MemoryReturn } from "../../src/memory/memory-return.ts";

/** Shares of the thread's time, by second: collects at the returned seconds. */
function listCollections(
  shareAt: (second: number) => number,
  seconds: number,
  missed = 0,
): number[] {
  let nowMs = 0;
  let pending: { ms: number; callback: () => void } | undefined;
  const collections: number[] = [];
  void new MemoryReturn({
    measureShare: () => shareAt(nowMs / 1000),
    collect: () => collections.push(nowMs / 1000) > missed,
    wait: (ms, callback) => (pending = { ms, callback }),
  });
  while (nowMs < seconds * 1000) {
    const { ms, callback } = pending!;
    nowMs += ms;
    callback();
  }
  return collections;
}

test("an idle service collects once, soon after its start", () => {
  const collections = listCollections(() => 0, 600);
  assert.equal(collections.length, 1);
  assert.ok(collections[0]! < 5, String(collections));
});

test("a collection that another thread has prevented is tried again", () => {
  assert.equal(listCollections(() => 0, 600, 2).length, 3);
});

test("threads that collect at the same time do not fail", async () => {
  const module = new URL("../../src/memory/memory-return.ts", import.meta.url).href;
  const code = `import(${JSON.stringify(module)}).then(({ collectGarbage }) => {
    let count = 0;
    for (let round = 0; round < 40; round++) if (collectGarbage()) count += 1;
    require("node:worker_threads").parentPort.postMessage(count);
  })`;
  const counts = await Promise.all(
    [1, 2, 3].map(async () => {
      const [count] = await once(new Worker(code, { eval: true }), "message");
      return Number(count);
    }),
  );
  assert.ok(
    counts.every((count) => count > 0),
    String(counts),
  );
});

test("the collection waits until no request is in flight", () => {
  assert.deepEqual(
    listCollections(() => 0.08, 600),
    [],
  );
  const [first] = listCollections((second) => (second < 100 ? 0.5 : 0), 600);
  assert.ok(first! >= 100, String(first));
});

test("a service collects again a minute after a busy time, and once for each", () => {
  const isBusy = (second: number): boolean =>
    (second > 50 && second < 80) || (second > 300 && second < 305);
  const [, ...later] = listCollections((second) => (isBusy(second) ? 0.6 : 0), 900);
  assert.equal(later.length, 2, String(later));
  assert.ok(later[0]! > 138 && later[0]! < 145, String(later));
  assert.ok(later[1]! > 362 && later[1]! < 370, String(later));
});

test("the collection frees memory, and compiled modules that were kept stay valid", () => {
  const tag = cachedDataVersionTag();
  let list: object[] | undefined = Array.from({ length: 500_000 }, (_, index) => ({ index }));
  const before = process.memoryUsage().heapUsed;
  assert.equal(list.length, 500_000);
  list = undefined;
  assert.ok(collectGarbage());
  assert.ok(before - process.memoryUsage().heapUsed > 10_000_000);
  assert.equal(cachedDataVersionTag(), tag);
});
