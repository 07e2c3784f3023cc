// Partitions read as one list: order, places to continue from, and the bounds of what is read and held.
import assert from "node:assert/strict";
import { test } from "node:test";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import type { PartitionView } from "@platform/log";
import { MergedReader, type MergedSource } from "../../src/store/merged-reader.ts";
import type { Store } from "../../src/store/store.ts";
import { makeFolder, openStore } from "./fixture.ts";

setFlagsFromString("--expose-gc");
const collect = runInNewContext("gc") as () => void;

const NO_BOUND = Number.MAX_SAFE_INTEGER;

function sourcesOf(partitions: readonly PartitionView[]): MergedSource[] {
  return partitions.map((partition) => ({ partition, from: 0, until: partition.durableEnd }));
}

/** Reads pages of `size` records until the end, each by a reader of its own; returns the values. */
async function readAll(
  store: Store,
  sources: readonly MergedSource[],
  size: number,
  bytesMax = NO_BOUND,
): Promise<string[]> {
  const values: string[] = [];
  let floor = 0;
  for (let rest = sources; rest.length > 0;) {
    const reader = new MergedReader(store, rest, { floor, bytesMax });
    let count = 0;
    for (; count < size; count++) {
      const found = await reader.peek();
      if (found === undefined) break;
      values.push(String(found.record.value));
      reader.take();
    }
    floor = reader.floor;
    rest = reader.rest().map(({ source, offset }) => ({ ...source, from: offset }));
    assert.ok(count > 0 || rest.length === 0, "each page gets on");
  }
  return values;
}

test("records of several partitions are in the order of time; a time that runs backwards counts as the one before", async (t) => {
  const { store, topics } = await openStore(makeFolder(t));
  const { stored } = await topics.create("", "a", { partitions: 5 });
  const expected: { value: string; time: number; partition: number; offset: number }[] = [];
  const latest = stored.partitions.map(() => 0);
  const nextOffset = stored.partitions.map(() => 0);
  for (let round = 0; round < 40; round++) {
    const records = Array.from({ length: 10 }, (_, index) => {
      const scattered = ((round * 10 + index) * 2_654_435_761) % 2 ** 32;
      const partition = scattered % 5;
      // Small numbers, so that many are equal and many run backwards.
      const timestamp = (scattered % 31) + round;
      const value = `${round}.${index}`;
      latest[partition] = Math.max(latest[partition]!, timestamp);
      const offset = nextOffset[partition]!++;
      expected.push({ value, time: latest[partition], partition, offset });
      const record = { key: null, value: Buffer.from(value), headers: [], timestamp };
      return { partition: stored.partitions[partition]!, record };
    });
    await store.append(records);
  }
  const wanted = expected
    .toSorted((a, b) => a.time - b.time || a.partition - b.partition || a.offset - b.offset)
    .map(({ value }) => value);
  for (const size of [1, 7, 1_000]) {
    assert.deepEqual(await readAll(store, sourcesOf(stored.partitions), size), wanted);
  }
  await store.close();
});

test("a reader reads about as much as it may, and the next one goes on where it ended", async (t) => {
  const { store, topics } = await openStore(makeFolder(t));
  const { stored } = await topics.create("", "a", { partitions: 2 });
  for (let number = 0; number < 60; number++) {
    const value = Buffer.alloc(100_000, String(number % 10));
    const record = { key: null, value, headers: [], timestamp: number };
    await store.append([{ partition: stored.partitions[number % 2]!, record }]);
  }
  const sources = sourcesOf(stored.partitions);
  const reader = new MergedReader(store, sources, { floor: 0, bytesMax: 1_000_000 });
  let count = 0;
  while ((await reader.peek()) !== undefined) {
    reader.take();
    count++;
  }
  assert.ok(count >= 5 && count < 30, `${count} of 60 records of 100 kB`);
  assert.equal((await readAll(store, sources, 1_000, 1_000_000)).length, 60);
  await store.close();
});

test("what is held stays bounded however large the records of the partitions are", async (t) => {
  const { store, topics } = await openStore(makeFolder(t));
  const { stored } = await topics.create("", "a", { partitions: 24 });
  const numbers = Array.from({ length: 24 }, (_, number) => number);
  for (const number of numbers) {
    const value = Buffer.alloc(6_000_000, "x");
    value.write(`${number} `);
    const record = { key: null, value, headers: [], timestamp: number };
    await store.append([{ partition: stored.partitions[number % 24]!, record }]);
  }
  const reader = new MergedReader(store, sourcesOf(stored.partitions), {
    floor: 0,
    bytesMax: NO_BOUND,
  });
  const found: number[] = [];
  const before = process.memoryUsage().arrayBuffers;
  let peak = 0;
  for (let next = await reader.peek(); next !== undefined; next = await reader.peek()) {
    found.push(Number.parseInt(next.record.value!.toString("latin1", 0, 3), 10));
    reader.take();
    collect();
    peak = Math.max(peak, process.memoryUsage().arrayBuffers - before);
  }
  assert.deepEqual(found, numbers);
  assert.ok(peak < 60_000_000, `${peak} bytes`);
  await store.close();
});
