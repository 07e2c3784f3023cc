// Records of delayed messages that are kept in memory: a bound, and what happens at it.
import assert from "node:assert/strict";
import { test } from "node:test";
import { NearRecords } from "../../src/dispatch/near-records.ts";
import { makeFolder, openStore, recordOf } from "../store/fixture.ts";

const offsetsTo = (count: number) => Float64Array.from({ length: count }, (_, at) => at);

test("one pass over the log loads missing records, up to a byte limit", async (t) => {
  const { store } = await openStore(makeFolder(t));
  const { partitions } = await store.log.createTopic("t");
  const partition = partitions[0]!;
  for (let batch = 0; batch < 10; batch++) {
    const pendingRecords = Array.from({ length: 20 }, (_, at) => ({
      partition,
      record: recordOf(`${batch * 20 + at}`.padEnd(1_000)),
    }));
    await store.append(pendingRecords);
  }
  const near = new NearRecords(store, 100_000);
  near.keep(partition, { ...recordOf("kept before"), offset: 3 });
  await near.load(partition, Float64Array.of(3, 55, 199), 100_000);
  const texts = [3, 55, 199].map((at) => near.get(partition, at)?.value?.toString().trim());
  assert.deepEqual(texts, ["kept before", "55", "199"]);
  assert.equal(near.countOf(partition), 3, "and nothing else");

  await near.load(partition, offsetsTo(200), near.roomBytes);
  assert.equal(near.roomBytes, 0);
  assert.ok(near.countOf(partition) < 150, "the bound is passed by a batch at most");
  near.dropOthers(partition, new Set([0, 1]));
  assert.equal(near.countOf(partition), 2);
  for (const offset of [0, 1, 1, 77]) near.drop(partition, offset);
  assert.equal(near.roomBytes, 100_000, "everything is given back");
  near.keep(partition, { ...recordOf("again"), offset: 5 });
  near.forget(partition);
  assert.deepEqual([near.roomBytes, near.get(partition, 5)], [100_000, undefined]);
  await store.close();
});
