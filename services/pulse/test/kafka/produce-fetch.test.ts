// Records in and out over the wire, in every version.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { decodeBatch, encodeBatch, splitBatches, type BatchFields } from "@platform/log/batch";
import { ERROR_CODES } from "../../src/kafka/protocol/error-codes.ts";
import {
  createTopics,
  fetch,
  initProducerId,
  listOffsets,
  metadata,
  produce,
} from "../../src/kafka/protocol/messages/index.ts";
import { UUID_ZERO } from "../../src/kafka/protocol/schema.ts";
import type { KafkaClient } from "./client.ts";
import { KafkaStage } from "./stage.ts";

let stage: KafkaStage;
let client: KafkaClient;
let topicCount = 0;

before(async () => {
  stage = await KafkaStage.open();
  client = await stage.connect();
});
after(() => stage[Symbol.asyncDispose]());

async function createTopic(partitions = 1): Promise<{ name: string; topicId: string }> {
  const name = `t${++topicCount}`;
  const { topics } = await client.ask(createTopics, 7, {
    topics: [
      { name, numPartitions: partitions, replicationFactor: 1, assignments: [], configs: [] },
    ],
    timeoutMs: 1000,
    validateOnly: false,
  });
  assert.equal(topics[0]!.errorCode, 0, topics[0]!.errorMessage ?? "");
  return { name, topicId: topics[0]!.topicId };
}

function batchOf(values: readonly string[], fields: BatchFields = {}, timestamp = 1000): Buffer {
  return encodeBatch(
    values.map((value, index) => ({
      key: null,
      value: Buffer.from(value),
      headers: [],
      timestamp: timestamp + index,
    })),
    fields,
  );
}

async function produceTo(name: string, records: Buffer | null, version = 9, acks = -1) {
  const response = await client.ask(produce, version, {
    acks,
    timeoutMs: 1000,
    topics: [{ name, partitions: [{ index: 0, records: records === null ? null : [records] }] }],
  });
  return response.topics[0]!.partitions[0]!;
}

async function fetchFrom(
  { name, topicId }: { name: string; topicId: string },
  offset: number,
  changes: { version?: number; minBytes?: number; maxWaitMs?: number; maxBytes?: number } = {},
  from = client,
) {
  const response = await from.ask(fetch, changes.version ?? 12, {
    maxWaitMs: changes.maxWaitMs ?? 0,
    minBytes: changes.minBytes ?? 1,
    maxBytes: changes.maxBytes ?? 1_000_000,
    isolationLevel: 0,
    topics: [
      {
        name,
        topicId,
        partitions: [{ partition: 0, fetchOffset: offset, partitionMaxBytes: 1_000_000 }],
      },
    ],
  });
  return response.topics[0]!.partitions[0]!;
}

async function valuesOf(records: Buffer | null): Promise<string[]> {
  const values: string[] = [];
  for (const batch of splitBatches(records ?? Buffer.alloc(0))) {
    for (const { value } of (await decodeBatch(batch)).records) values.push(value!.toString());
  }
  return values;
}

describe("records", () => {
  for (let version = 3; version <= 11; version++) {
    test(`are written by Produce ${version}`, async () => {
      const { name, topicId } = await createTopic();
      const answer = await produceTo(name, batchOf(["a", "b"]), version);
      assert.deepEqual([answer.errorCode, answer.baseOffset], [0, 0]);
      const second = await produceTo(name, batchOf(["c"]), version, 1);
      assert.equal(second.baseOffset, 2);
      const found = await fetchFrom({ name, topicId }, 0);
      assert.deepEqual(await valuesOf(found.records), ["a", "b", "c"]);
      assert.deepEqual([found.highWatermark, found.lastStableOffset], [3, 3]);
    });
  }

  for (let version = 4; version <= 16; version++) {
    test(`are read by Fetch ${version}`, async () => {
      const topic = await createTopic();
      await produceTo(topic.name, batchOf(["a", "b"]));
      await produceTo(topic.name, batchOf(["c"]));
      const found = await fetchFrom(topic, 2, { version });
      assert.equal(found.errorCode, 0);
      assert.deepEqual(await valuesOf(found.records), ["c"]);
      const end = await fetchFrom(topic, 3, { version });
      assert.deepEqual([end.errorCode, end.records?.length], [0, 0]);
      const outside = await fetchFrom(topic, 4, { version });
      assert.equal(outside.errorCode, ERROR_CODES.offsetOutOfRange);
    });
  }

  test("are waited for, and returned immediately when they arrive", async () => {
    const topic = await createTopic();
    const reader = await stage.connect();
    let isDone = false;
    const waiting = fetchFrom(topic, 0, { maxWaitMs: 10_000 }, reader);
    void waiting.then(() => (isDone = true));
    await sleep(50);
    assert.equal(isDone, false);
    await produceTo(topic.name, batchOf(["late"]));
    const producedMs = performance.now();
    assert.deepEqual(await valuesOf((await waiting).records), ["late"]);
    assert.ok(performance.now() - producedMs < 8_000);
  });

  test("are waited for until the minimum of bytes is reached, or the time is over", async () => {
    const topic = await createTopic();
    const reader = await stage.connect();
    await produceTo(topic.name, batchOf(["first"]));
    let isDone = false;
    const waiting = fetchFrom(topic, 0, { maxWaitMs: 10_000, minBytes: 400 }, reader);
    void waiting.then(() => (isDone = true));
    await produceTo(topic.name, batchOf(["second"]));
    await sleep(100);
    assert.equal(isDone, false);
    await produceTo(topic.name, batchOf(["x".repeat(400)]));
    assert.equal((await valuesOf((await waiting).records)).length, 3);
    const timed = await fetchFrom(topic, 3, { maxWaitMs: 100, minBytes: 1 }, reader);
    assert.deepEqual([timed.errorCode, timed.records?.length], [0, 0]);
  });

  test("of one batch are returned together, even over the limit", async () => {
    const topic = await createTopic();
    await produceTo(topic.name, batchOf(["x".repeat(5_000)]));
    await produceTo(topic.name, batchOf(["next"]));
    const found = await fetchFrom(topic, 0, { maxBytes: 100 });
    assert.equal((await valuesOf(found.records)).length, 1);
  });
});

describe("a batch is rejected", () => {
  const cases: [name: string, make: () => Buffer | null, code: number, version?: number][] = [
    ["with a wrong checksum", () => breakAt(batchOf(["a"]), 70), ERROR_CODES.corruptMessage],
    ["cut short", () => batchOf(["abc"]).subarray(0, 65), ERROR_CODES.corruptMessage],
    ["of magic 1", () => setByte(batchOf(["a"]), 16, 1), ERROR_CODES.invalidRecord],
    ["that is not there", () => null, ERROR_CODES.invalidRecord],
    ["that is empty", () => Buffer.alloc(0), ERROR_CODES.invalidRecord],
    [
      "followed by another one",
      () => Buffer.concat([batchOf(["a"]), batchOf(["b"])]),
      ERROR_CODES.invalidRecord,
    ],
    [
      "with offsets that do not match its count",
      () => setByte(batchOf(["a"]), 26, 3),
      ERROR_CODES.invalidRecord,
    ],
    [
      "of a transaction",
      () => batchOf(["a"], { attributes: 0x10, producerId: 1, producerEpoch: 0, baseSequence: 0 }),
      ERROR_CODES.transactionalIdAuthorizationFailed,
    ],
    [
      "of control records",
      () => batchOf(["a"], { attributes: 0x20 }),
      ERROR_CODES.transactionalIdAuthorizationFailed,
    ],
    [
      "with zstd before version 7",
      () => batchOf(["a"], { attributes: 4 }),
      ERROR_CODES.unsupportedCompressionType,
      6,
    ],
    [
      "of an unknown compression",
      () => batchOf(["a"], { attributes: 7 }),
      ERROR_CODES.unsupportedCompressionType,
    ],
    ["by a Produce of version 2", () => batchOf(["a"]), ERROR_CODES.unsupportedVersion, 2],
    ["by a Produce of version 0", () => batchOf(["a"]), ERROR_CODES.unsupportedVersion, 0],
  ];
  for (const [name, make, code, version] of cases) {
    test(name, async () => {
      const topic = await createTopic();
      const answer = await produceTo(topic.name, make(), version);
      assert.equal(answer.errorCode, code);
      assert.equal((await fetchFrom(topic, 0)).highWatermark, 0);
    });
  }

  test("for a missing topic or partition", async () => {
    assert.equal(
      (await produceTo("missing", batchOf(["a"]))).errorCode,
      ERROR_CODES.unknownTopicOrPartition,
    );
  });

  test("with invalid acks", async () => {
    const topic = await createTopic();
    const answer = await produceTo(topic.name, batchOf(["a"]), 9, 2);
    assert.equal(answer.errorCode, ERROR_CODES.invalidRequiredAcks);
  });
});

describe("a producer", () => {
  test("with acks 0 gets no answer, and its records are stored", async () => {
    const topic = await createTopic();
    const quiet = await stage.connect();
    const body = {
      acks: 0,
      timeoutMs: 1000,
      topics: [{ name: topic.name, partitions: [{ index: 0, records: [batchOf(["quiet"])] }] }],
    };
    quiet.send(produce, 9, body);
    const { topics } = await quiet.ask(metadata, 12, {
      topics: [{ name: topic.name, topicId: UUID_ZERO }],
    });
    assert.equal(topics[0]!.errorCode, 0);
    const found = await fetchFrom(topic, 0, { maxWaitMs: 1000 });
    assert.deepEqual(await valuesOf(found.records), ["quiet"]);
    quiet.send(produce, 9, {
      ...body,
      topics: [{ name: "missing", partitions: [{ index: 0, records: [batchOf(["lost"])] }] }],
    });
    assert.equal(await quiet.readFrame(), undefined, "the end of the connection is the answer");
  });

  test("that is idempotent has a repeated batch stored once, and gaps rejected", async () => {
    const topic = await createTopic();
    const ids = await client.ask(initProducerId, 4, {
      transactionalId: null,
      transactionTimeoutMs: 1000,
    });
    assert.deepEqual([ids.errorCode, ids.producerEpoch], [0, 0]);
    const { producerId } = ids;
    const send = (values: string[], baseSequence: number, producerEpoch = 0) =>
      produceTo(topic.name, batchOf(values, { producerId, producerEpoch, baseSequence }));
    assert.equal((await send(["a", "b"], 0)).baseOffset, 0);
    assert.equal((await send(["c"], 2)).baseOffset, 2);
    const again = await send(["a", "b"], 0);
    assert.deepEqual([again.errorCode, again.baseOffset], [0, 0]);
    assert.equal((await send(["e"], 4)).errorCode, ERROR_CODES.outOfOrderSequenceNumber);
    await stage.restart();
    client = await stage.connect();
    const afterRestart = await send(["c"], 2);
    assert.deepEqual([afterRestart.errorCode, afterRestart.baseOffset], [0, 2]);
    assert.equal((await send(["d"], 3)).baseOffset, 3);
    const others = await client.ask(initProducerId, 0, {
      transactionalId: null,
      transactionTimeoutMs: 1000,
    });
    assert.notEqual(others.producerId, producerId);
  });

  test("with transactions is rejected", async () => {
    const answer = await client.ask(initProducerId, 4, {
      transactionalId: "t",
      transactionTimeoutMs: 1000,
    });
    assert.equal(answer.errorCode, ERROR_CODES.transactionalIdAuthorizationFailed);
  });
});

describe("offsets are listed", () => {
  for (let version = 1; version <= 8; version++) {
    test(`by ListOffsets ${version}`, async () => {
      const { name } = await createTopic();
      await produceTo(name, batchOf(["a", "b"], {}, 5_000));
      await produceTo(name, batchOf(["c"], {}, 9_000));
      await produceTo(name, batchOf(["d"], {}, 7_000));
      const list = async (timestamp: number) => {
        const { topics } = await client.ask(listOffsets, version, {
          replicaId: -1,
          topics: [{ name, partitions: [{ partitionIndex: 0, timestamp }] }],
        });
        const { errorCode, offset, timestamp: found } = topics[0]!.partitions[0]!;
        return [errorCode, offset, found];
      };
      assert.deepEqual(await list(-1), [0, 4, -1]);
      assert.deepEqual(await list(-2), [0, 0, -1]);
      assert.deepEqual(await list(5_001), [0, 1, 5_001]);
      assert.deepEqual(await list(8_000), [0, 2, 9_000]);
      assert.deepEqual(await list(9_001), [0, -1, -1]);
      const unknown = [ERROR_CODES.unsupportedVersion, -1, -1];
      assert.deepEqual(await list(-3), version >= 7 ? [0, 2, 9_000] : unknown);
      assert.deepEqual(await list(-4), version >= 8 ? [0, 0, -1] : unknown);
    });
  }
});

function breakAt(bytes: Buffer, at: number): Buffer {
  return setByte(
    bytes,
    Math.min(at, bytes.length - 1),
    bytes[Math.min(at, bytes.length - 1)]! ^ 0xff,
  );
}

function setByte(bytes: Buffer, at: number, value: number): Buffer {
  bytes[at] = value;
  return bytes;
}
