// The history of one key in topics with filters of keys: equal to reading everything, at a small part of the bytes.
import assert from "node:assert/strict";
import { test } from "node:test";
import { createRandom } from "@platform/testing/random";
import { MergedReader, type MergedSource } from "../../src/store/merged-reader.ts";
import type { Store } from "../../src/store/store.ts";
import { makeFolder, openStore } from "./fixture.ts";

/** PLATFORM_EVENTS=2000000 is the long form. */
const EVENTS = Number(process.env["PLATFORM_EVENTS"] ?? 30_000);
const KEYS = Math.floor(EVENTS / 20);
const IS_LONG = EVENTS > 100_000;
/** So many that each partition gets them as a segment of its own, not through the journal. */
const PER_APPEND = 1_500;
const SEGMENT_BYTES = IS_LONG ? 8 * 1024 * 1024 : 1024 * 1024;
const SEED = 39;

async function readHistory(
  store: Store,
  sources: readonly MergedSource[],
  key: Buffer,
  asksFilters: boolean,
): Promise<{ values: string[]; bytes: number }> {
  const { log } = store;
  const read = log.read.bind(log);
  let bytes = 0;
  log.read = async (...args) => {
    const found = await read(...args);
    bytes += found.bytes;
    return found;
  };
  const bytesMax = Number.MAX_SAFE_INTEGER;
  const reader = new MergedReader(store, sources, {
    floor: 0,
    bytesMax,
    ...(asksFilters ? { key } : {}),
  });
  const values: string[] = [];
  for (let next = await reader.peek(); next !== undefined; next = await reader.peek()) {
    if (next.record.key?.equals(key) === true) {
      values.push(
        `${next.source.partition.index} ${next.record.offset} ${String(next.record.value)}`,
      );
    }
    reader.take();
  }
  log.read = read;
  return { values, bytes };
}

test("the history of a key equals a full scan and reads little", async (t) => {
  const { store, topics } = await openStore(makeFolder(t));
  const { stored } = await topics.create("", "orders", {
    partitions: 3,
    config: { keyIndex: true, segmentBytes: SEGMENT_BYTES },
  });
  const random = createRandom(SEED);
  const text = "x".repeat(400);
  for (let event = 0; event < EVENTS; event += PER_APPEND) {
    const records = Array.from({ length: PER_APPEND }, (_, index) => {
      const number = Math.floor(random() * KEYS);
      // Times run backwards now and then.
      const timestamp = 1_000_000 + event + index - Math.floor(random() * 2_000);
      const value = Buffer.from(`${event + index} ${text}`);
      const record = { key: Buffer.from(`key-${number}`), value, headers: [], timestamp };
      return { partition: stored.partitions[number % 3]!, record };
    });
    await store.append(records);
  }
  await store.log.checkpoint();
  await store.log.indexKeys();
  const sources = stored.partitions.map((partition) => {
    return { partition, from: 0, until: partition.durableEnd };
  });
  const total = stored.partitions.reduce((sum, { bytes }) => sum + bytes, 0);
  const shares: number[] = [];
  for (const name of ["key-0", `key-${KEYS - 1}`, "key-17", "absent"]) {
    const key = Buffer.from(name);
    const found = await readHistory(store, sources, key, true);
    const expected = await readHistory(store, sources, key, false);
    assert.deepEqual(found.values, expected.values, name);
    assert.ok(found.bytes <= expected.bytes);
    shares.push(found.bytes / total);
  }
  t.diagnostic(`share of the bytes: ${shares.map((share) => share.toFixed(4)).join(", ")}`);
  // The open segments are read whole; in the long form they are a small part.
  assert.ok(Math.max(...shares) <= (IS_LONG ? 0.03 : 0.5));
  await store.close();
});
