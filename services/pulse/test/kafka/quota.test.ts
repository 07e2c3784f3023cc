// Quotas: clients that are over their rate are told to pause, and paused.
import assert from "node:assert/strict";
import { test } from "node:test";
import { createManualClock } from "@platform/kernel/time";
import { encodeBatch } from "@platform/log/batch";
import { fetch, metadata, produce } from "../../src/kafka/protocol/messages/index.ts";
import { ByteQuota } from "../../src/tenant/byte-quota.ts";
import { KafkaStage } from "./stage.ts";

test("a tenant over its rate is paused, other tenants are not", () => {
  const clock = createManualClock();
  const quota = new ByteQuota(clock, 1_000);
  assert.equal(quota.charge("one", 1_000), 0, "a second's worth may come at once");
  assert.equal(quota.charge("one", 500), 500);
  assert.equal(quota.charge("other", 900), 0);
  clock.advance(750);
  assert.equal(quota.charge("one", 0), 0);
  assert.equal(quota.charge("one", 1_000_000_000), 10_000, "no pause is longer than clients wait");
  assert.equal(new ByteQuota(clock, 0).charge("one", 1e12), 0, "0 is without limit");
});

test("the answers to Produce and Fetch contain the pause, and the connection pauses", async () => {
  await using stage = await KafkaStage.open({ sync: { kind: "os" }, bytesPerSecond: 10_000 });
  const client = await stage.connect();
  await client.ask(metadata, 12, { topics: [{ name: "t" }] });
  const record = { key: null, value: Buffer.alloc(11_000), headers: [], timestamp: 1 };
  const started = performance.now();
  const written = await client.ask(produce, 9, {
    acks: -1,
    timeoutMs: 30_000,
    topics: [{ name: "t", partitions: [{ index: 0, records: [encodeBatch([record])] }] }],
  });
  assert.equal(written.topics[0]!.partitions[0]!.errorCode, 0, "nothing is refused");
  assert.ok(written.throttleTimeMs > 0 && written.throttleTimeMs <= 200);
  const partitions = [{ partition: 0, fetchOffset: 0, partitionMaxBytes: 1_000_000 }];
  const body = { maxWaitMs: 0, minBytes: 1, maxBytes: 1_000_000, isolationLevel: 0 };
  const read = () => client.ask(fetch, 12, { ...body, topics: [{ name: "t", partitions }] });
  // The pause begins at the broker: on a busy machine much of it may be over when the answer is here.
  const before = performance.now();
  const first = await read();
  assert.ok(performance.now() - started >= written.throttleTimeMs - 5, "it rested");
  assert.ok(first.throttleTimeMs > 0);
  await read();
  assert.ok(performance.now() - before >= first.throttleTimeMs - 5, "it rested again");
});
