// Counts of rate-limited requests: the limit in any window, many keys, several threads.
import assert from "node:assert/strict";
import { once } from "node:events";
import { test } from "node:test";
import { Worker } from "node:worker_threads";
import { RATE_KEYS_MAX, RATE_TABLE_BYTES, SharedRateTable } from "../../src/shared-state/index.ts";

const MINUTE_MS = 60_000;

function createTable(): SharedRateTable {
  return new SharedRateTable(new SharedArrayBuffer(RATE_TABLE_BYTES), 12_345);
}

function take(
  table: SharedRateTable,
  space: number,
  key: string,
  limit: number,
  nowMs: number,
): boolean {
  return table.take(table.findPlace(space, key), limit, nowMs);
}

test("a whole limit may come at once, and then no more until it has left the window", () => {
  const table = createTable();
  for (let request = 1; request <= 5; request++) {
    assert.ok(take(table, 1, "a", 5, 999));
    assert.equal(table.remaining, 5 - request);
  }
  assert.equal(take(table, 1, "a", 5, 999), false);
  assert.deepEqual([table.remaining, table.resetSeconds], [0, 61]);
  assert.ok(take(table, 1, "b", 5, 999), "another key has its own count");
  assert.ok(take(table, 2, "a", 5, 999), "another limit has its own count");
  assert.equal(take(table, 1, "a", 5, 60_998), false);
  assert.equal(table.resetSeconds, 1);
  assert.ok(take(table, 1, "a", 5, 61_000));
});

test("no window of 60 s ever has more requests than the limit, whatever their pattern", () => {
  const table = createTable();
  let state = 1;
  const random = (): number => (state = (Math.imul(state, 48_271) >>> 0) % 2 ** 31) / 2 ** 31;
  const admitted: number[] = [];
  let nowMs = 500;
  for (let round = 0; round < 30_000; round++) {
    nowMs += random() < 0.02 ? random() * 40_000 : random() * 300;
    if (take(table, 3, "client", 100, nowMs)) admitted.push(nowMs);
  }
  let first = 0;
  for (const [at, time] of admitted.entries()) {
    while (time - admitted[first]! >= MINUTE_MS) first++;
    assert.ok(at - first + 1 <= 100, `${at - first + 1} requests until ${time}`);
  }
  assert.ok(admitted.length > nowMs / MINUTE_MS, "clients below the limit are admitted");
});

test("a full table drops the key that was used least recently, and keeps counting the others", () => {
  const table = createTable();
  for (let key = 0; key < RATE_KEYS_MAX * 1.2; key++) take(table, 1, `old-${key}`, 1, key / 100);
  assert.ok(table.evictions > 0);
  const nowMs = 10_000;
  assert.ok(take(table, 1, "client", 1, nowMs));
  assert.equal(take(table, 1, "client", 1, nowMs), false);
  for (let key = 0; key < 100; key++) take(table, 1, `new-${key}`, 1, nowMs + 1_000);
  assert.equal(take(table, 1, "client", 1, nowMs + 1_000), false);
});

test("a place that another key has taken meanwhile is found again", () => {
  const table = createTable();
  const place = table.findPlace(1, "client");
  assert.ok(table.take(place, 1, 0));
  assert.equal(table.take(place, 1, 0), false);
  const others = Array.from({ length: RATE_KEYS_MAX * 2 }, (_, key) => `other-${key}`);
  for (const key of others) take(table, 1, key, 1, 1_000);
  assert.ok(table.take(place, 1, 2_000), "its count was dropped with the key");
  assert.equal(table.take(place, 1, 2_000), false);
  assert.equal(take(table, 1, "client", 1, 2_000), false, "the same count as without a place");
});

test("threads that count the same keys together admit exactly the limit", async () => {
  const buffer = new SharedArrayBuffer(RATE_TABLE_BYTES);
  const module = new URL("../../src/shared-state/rate-table.ts", import.meta.url).href;
  const source = `
    const { workerData, parentPort } = require("node:worker_threads");
    import(${JSON.stringify(module)}).then(({ SharedRateTable }) => {
      const table = new SharedRateTable(workerData, 7);
      const places = Array.from({ length: 50 }, (_, key) => table.findPlace(1, "key-" + key));
      let admitted = 0;
      for (let round = 0; round < 20_000; round++) {
        if (table.take(places[round % 50], 100, 5_000)) admitted++;
      }
      parentPort.postMessage(admitted);
    });`;
  const workers = [0, 1, 2].map(() => new Worker(source, { eval: true, workerData: buffer }));
  const counts = await Promise.all(
    workers.map(async (worker) => ((await once(worker, "message")) as [number])[0]),
  );
  const admitted = counts.reduce((sum, count) => sum + count, 0);
  assert.ok(admitted <= 5_000 && admitted >= 4_950, String(counts));
});
