import assert from "node:assert/strict";
import { test } from "node:test";
import { ProducerIds } from "../../src/store/producer-ids.ts";
import { makeFolder, openStore, recordOf } from "./fixture.ts";

test("records appended concurrently get the offsets at which they are read", async (t) => {
  const { store, topics } = await openStore(makeFolder(t));
  const topic = await topics.create("", "a", { partitions: 2 });
  const [first, second] = topic.stored.partitions;
  const offsets = await Promise.all([
    store.append([
      { partition: first!, record: recordOf("1") },
      { partition: second!, record: recordOf("2") },
      { partition: first!, record: recordOf("3") },
    ]),
    store.append([{ partition: first!, record: recordOf("4") }]),
  ]);
  assert.deepEqual(offsets, [[0, 0, 1], [2]]);
  assert.equal(first!.durableEnd, 3);
  await store.close();
});

test("a topic that was deleted meanwhile only fails its own records", async (t) => {
  const { store, topics } = await openStore(makeFolder(t));
  const doomed = await topics.create("", "doomed");
  const kept = await topics.create("", "kept");
  const deleting = topics.delete(doomed);
  await deleting;
  const outcomes = await Promise.allSettled([
    store.append([{ partition: doomed.stored.partitions[0]!, record: recordOf("lost") }]),
    store.append([{ partition: kept.stored.partitions[0]!, record: recordOf("kept") }]),
  ]);
  assert.deepEqual(
    outcomes.map(({ status }) => status),
    ["rejected", "fulfilled"],
  );
  await store.close();
});

test("waits for data resolve when it is durable, otherwise at the timeout", async (t) => {
  const { store, topics } = await openStore(makeFolder(t));
  const partition = (await topics.create("", "a")).stored.partitions[0]!;
  assert.equal(await store.waitForData([{ partition, offset: 0 }], 20), false);
  const waiting = store.waitForData([{ partition, offset: 0 }], 10_000);
  await store.append([{ partition, record: recordOf("x") }]);
  assert.equal(await waiting, true);
  const aborted = new AbortController();
  const stopped = store.waitForData([{ partition, offset: 1 }], 10_000, aborted.signal);
  aborted.abort();
  assert.equal(await stopped, false);
  await store.close();
});

test("committed offsets, group kinds and producer ids survive a restart; those of a deleted topic do not", async (t) => {
  const folder = makeFolder(t);
  const before = await openStore(folder);
  const topic = await before.topics.create("acme", "a", { partitions: 2 });
  const doomed = await before.topics.create("acme", "b");
  await before.offsets.claim("acme", "g", "kafka");
  await before.offsets.commit("acme", "g", [
    { topic, partition: 1, offset: 7, metadata: "m" },
    { topic: doomed, partition: 0, offset: 3 },
  ]);
  const firstId = await ProducerIds.open(before.store, before.state).take();
  await before.topics.delete(doomed);
  await before.store.close();

  const after = await openStore(folder);
  const found = [...after.offsets.list("acme", "g")];
  assert.deepEqual(
    found.map(({ topic: { name }, partition, offset, metadata }) => [
      name,
      partition,
      offset,
      metadata,
    ]),
    [["a", 1, 7, "m"]],
  );
  assert.equal(after.offsets.kindOf("acme", "g"), "kafka");
  await assert.rejects(after.offsets.claim("acme", "g", "dispatch"), { code: "conflict" });
  assert.deepEqual([...after.offsets.list("other", "g")], []);
  const laterId = await ProducerIds.open(after.store, after.state).take();
  assert.ok(laterId > firstId);
  await after.store.close();
});

test("groups and topics are limited per tenant", async (t) => {
  const { store, topics, offsets } = await openStore(makeFolder(t));
  for (let group = 0; group < 5; group++) await offsets.claim("acme", `g${group}`, "dispatch");
  await assert.rejects(offsets.claim("acme", "one-more", "dispatch"), { code: "overloaded" });
  await offsets.claim("other", "g", "dispatch");
  for (let topic = 0; topic < 50; topic++) await topics.ensure("acme", `t${topic}`);
  await assert.rejects(topics.ensure("acme", "one-more"), { code: "overloaded" });
  await topics.ensure("other", "t");
  await store.close();
});
