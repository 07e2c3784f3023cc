// Batches of Kafka clients on topics that have a schema or a transform, and on those that have none.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { promisify } from "node:util";
import { gzip, zstdCompress } from "node:zlib";
import {
  BATCH_HEADER_BYTES,
  compressionOf,
  decodeBatch,
  encodeBatch,
  isBatchIntact,
  readBatchHeader,
  sealBatch,
  splitBatches,
  type BatchFields,
  type NewRecord,
} from "@platform/log/batch";
import { ERROR_CODES } from "../../src/kafka/protocol/error-codes.ts";
import { fetch, initProducerId, produce } from "../../src/kafka/protocol/messages/index.ts";
import type { Topic } from "../../src/topic/topics.ts";
import { lowerCaseGuest } from "../fixture/lower-case-guest.ts";
import type { KafkaClient } from "./client.ts";
import { KafkaStage } from "./stage.ts";

const gzipAsync = promisify<Buffer, Buffer>(gzip);
const zstdAsync = promisify<Buffer, Buffer>(zstdCompress);

let stage: KafkaStage;
let client: KafkaClient | undefined;
let topicCount = 0;

// By the first request: other files of this process may run for longer than a connection may be idle.
async function connected(): Promise<KafkaClient> {
  return (client ??= await stage.connect());
}

before(async () => {
  stage = await KafkaStage.open({ sync: { kind: "os" } });
});
after(() => stage[Symbol.asyncDispose]());

async function createTopic(
  kind: "plain" | "schema" | "transform",
  cleanupPolicy: "delete" | "compact" = "delete",
): Promise<Topic> {
  const name = `t${++topicCount}`;
  const topic = await stage.broker.topics.create("", name, { config: { cleanupPolicy } });
  if (kind === "schema") {
    await stage.shaping.schemas.register(topic, { amount: "number" }, "none");
  }
  if (kind === "transform") await stage.shaping.transforms.register(topic, lowerCaseGuest);
  return topic;
}

function recordOf(value: string | null, index = 0): NewRecord {
  return {
    key: Buffer.from(`k${index}`),
    value: value === null ? null : Buffer.from(value),
    headers: [{ key: "h", value: Buffer.from("v") }],
    timestamp: 1_000 + index,
  };
}

function batchOf(values: readonly (string | null)[], fields: BatchFields = {}): Buffer {
  return encodeBatch(
    values.map((value, index) => recordOf(value, index)),
    fields,
  );
}

async function compressed(batch: Buffer, code: number): Promise<Buffer> {
  const section = batch.subarray(BATCH_HEADER_BYTES);
  const packed = await (code === 1 ? gzipAsync(section) : zstdAsync(section));
  const bytes = Buffer.concat([batch.subarray(0, BATCH_HEADER_BYTES), packed]);
  sealBatch(bytes, { ...readBatchHeader(batch)!, attributes: code });
  return bytes;
}

function requestOf(topic: Topic, batch: Buffer) {
  return {
    acks: -1,
    timeoutMs: 30_000,
    topics: [{ name: topic.name, partitions: [{ index: 0, records: [Buffer.from(batch)] }] }],
  };
}

async function send(topic: Topic, batch: Buffer, version = 9) {
  const { topics } = await (await connected()).ask(produce, version, requestOf(topic, batch));
  return topics[0]!.partitions[0]!;
}

async function take(topic: Topic, offset = 0, bytesMax = 1_000_000): Promise<Buffer[]> {
  const partitions = [{ partition: 0, fetchOffset: offset, partitionMaxBytes: bytesMax }];
  const { topics } = await (
    await connected()
  ).ask(fetch, 12, {
    maxWaitMs: 0,
    minBytes: 1,
    maxBytes: bytesMax,
    isolationLevel: 0,
    topics: [{ name: topic.name, partitions }],
  });
  return [...splitBatches(topics[0]!.partitions[0]!.records!)];
}

async function takeValues(topic: Topic, offset = 0): Promise<[number, string | null][]> {
  const decoded = await Promise.all((await take(topic, offset)).map((batch) => decodeBatch(batch)));
  return decoded.flatMap(({ records }) =>
    records.map((one): [number, string | null] => [one.offset, one.value?.toString() ?? null]),
  );
}

async function takeDeadLetters(topic: Topic): Promise<Record<string, unknown>[]> {
  const box = stage.broker.topics.find("", `${topic.name}.dlq`);
  if (box === undefined) return [];
  return (await takeValues(box)).map(([, text]) => JSON.parse(text!) as Record<string, unknown>);
}

describe("a topic with a schema", () => {
  test("stores conforming batches unchanged, compressed or not", async () => {
    const topic = await createTopic("schema");
    const plain = batchOf(['{"amount":1}', '{"amount":2}']);
    const packed = await compressed(batchOf(['{"amount":3}']), 1);
    assert.equal((await send(topic, plain)).errorCode, 0);
    assert.equal((await send(topic, packed)).errorCode, 0);
    const [first, second] = await take(topic);
    assert.deepEqual(first!.subarray(16), plain.subarray(16));
    assert.deepEqual(second!.subarray(16), packed.subarray(16));
  });

  test("rejects the whole batch and lists the violating records", async () => {
    const topic = await createTopic("schema");
    const batch = batchOf(['{"amount":1}', '{"amount":"two"}', "three", null]);
    const answer = await send(topic, await compressed(batch, 4));
    assert.equal(answer.errorCode, ERROR_CODES.invalidRecord);
    assert.equal(answer.baseOffset, -1);
    assert.deepEqual(
      answer.recordErrors.map(({ batchIndex }) => batchIndex),
      [1, 2, 3],
    );
    assert.match(answer.recordErrors[0]!.batchIndexErrorMessage!, /amount must be/);
    assert.equal((await send(topic, batch, 7)).errorCode, ERROR_CODES.invalidRecord);
    assert.deepEqual(await takeValues(topic), []);
  });

  test("accepts tombstones if it is compacted", async () => {
    const topic = await createTopic("schema", "compact");
    assert.equal((await send(topic, batchOf([null]))).errorCode, 0);
    assert.deepEqual(await takeValues(topic), [[0, null]]);
  });

  test("rejects malformed and too large batches without closing the connection", async () => {
    const topic = await createTopic("schema");
    const torn = batchOf(['{"amount":1}']);
    torn[BATCH_HEADER_BYTES] = 0x7f;
    sealBatch(torn, readBatchHeader(torn)!);
    assert.equal((await send(topic, torn)).errorCode, ERROR_CODES.corruptMessage);
    const bomb = await compressed(batchOf([" ".repeat(40 * 1024 * 1024)]), 1);
    assert.ok(bomb.length < 100_000);
    assert.equal((await send(topic, bomb)).errorCode, ERROR_CODES.messageTooLarge);
    assert.equal((await send(topic, batchOf(['{"amount":1}']))).errorCode, 0);
  });
});

describe("a topic with a transform", () => {
  for (const [name, code] of [
    ["uncompressed", 0],
    ["gzip", 1],
    ["zstd", 4],
  ] as const) {
    test(`stores the transformed values of ${name} batches, and nothing else changes`, async () => {
      const topic = await createTopic("transform");
      const plain = batchOf(["ABC", "done already", "DEF"], { attributes: 0 });
      const answer = await send(topic, code === 0 ? plain : await compressed(plain, code));
      assert.equal(answer.errorCode, 0);
      const [stored] = await take(topic);
      assert.ok(isBatchIntact(stored!));
      const { header, records } = await decodeBatch(stored!);
      assert.equal(compressionOf(header.attributes), code === 0 ? "none" : name);
      const expected = (await decodeBatch(plain)).records;
      assert.deepEqual(
        records,
        expected.map((record) => ({
          ...record,
          value: Buffer.from(record.value!.toString().toLowerCase()),
        })),
      );
    });
  }

  test("stores an unchanged batch as it was sent", async () => {
    const topic = await createTopic("transform");
    const packed = await compressed(batchOf(["abc"]), 4);
    await send(topic, packed);
    assert.deepEqual((await take(topic))[0]!.subarray(16), packed.subarray(16));
  });

  test("turns failing records into unchanged dead letters and leaves a gap", async () => {
    const topic = await createTopic("transform");
    const answer = await send(topic, batchOf(["A", "!trap", "B", "?loop"]));
    assert.deepEqual([answer.errorCode, answer.baseOffset], [0, 0]);
    assert.equal((await send(topic, batchOf(["C"]))).baseOffset, 4);
    assert.deepEqual(await takeValues(topic), [
      [0, "a"],
      [2, "b"],
      [4, "c"],
    ]);
    const letters = await takeDeadLetters(topic);
    assert.deepEqual(
      letters.map(({ original_payload: payload, source_topic: source }) => [payload, source]),
      [
        ["!trap", topic.name],
        ["?loop", topic.name],
      ],
    );
    assert.match(String(letters[1]!["failure_reason"]), /time-limit/);
    const { counts } = stage.broker.producer;
    assert.ok(counts.deadLettered >= 2);
  });

  test("writes one dead letter for a batch that an idempotent producer repeats", async () => {
    const topic = await createTopic("transform");
    const { producerId } = await (
      await connected()
    ).ask(initProducerId, 4, {
      transactionalId: null,
      transactionTimeoutMs: 0,
    });
    const fields = { producerId, producerEpoch: 0 };
    const first = batchOf(["!one", "TWO", "!three"], { ...fields, baseSequence: 0 });
    const [once, twice] = await Promise.all([send(topic, first), send(topic, first)]);
    assert.deepEqual([once.baseOffset, twice.baseOffset], [0, 0]);
    const all = batchOf(["!four"], { ...fields, baseSequence: 3 });
    assert.equal((await send(topic, all)).baseOffset, 3);
    assert.equal((await send(topic, all)).baseOffset, 3);
    const gap = await send(topic, batchOf(["x"], { ...fields, baseSequence: 9 }));
    assert.equal(gap.errorCode, ERROR_CODES.outOfOrderSequenceNumber);
    assert.equal(
      (await send(topic, batchOf(["FIVE"], { ...fields, baseSequence: 4 }))).errorCode,
      0,
    );
    assert.deepEqual(await takeValues(topic), [
      [1, "two"],
      [4, "five"],
    ]);
    assert.equal((await takeDeadLetters(topic)).length, 3);
  });

  test("keeps the order of pipelined batches, also if it is deleted meanwhile", async () => {
    const topic = await createTopic("transform");
    const count = 30;
    const sender = await connected();
    for (let index = 0; index < count; index++) {
      sender.send(produce, 9, requestOf(topic, batchOf([`V${index}`])));
    }
    await stage.shaping.transforms.clear(topic);
    for (let index = 0; index < count; index++) await sender.readFrame();
    const values = (await takeValues(topic)).map(([, value]) => value!.toLowerCase());
    assert.deepEqual(
      values,
      Array.from({ length: count }, (_, index) => `v${index}`),
    );
  });

  test("a reader with a small limit gets past empty batches", async () => {
    const topic = await createTopic("transform");
    await send(topic, batchOf(["A"]));
    await send(topic, batchOf(["!lost"]));
    await send(topic, batchOf(["!lost"]));
    await send(topic, batchOf(["B".repeat(10_000)]));
    const [found] = await take(topic, 1, 200);
    assert.equal(readBatchHeader(found!)!.baseOffset, 3);
    assert.equal(readBatchHeader(found!)!.recordCount, 1);
  });

  test("survives a restart with its gaps", async () => {
    const topic = await createTopic("transform");
    await send(topic, batchOf(["A", "!lost"]));
    await send(topic, batchOf(["!lost"]));
    await stage.restart();
    client = undefined;
    const again = stage.broker.topics.get("", topic.name);
    assert.equal((await send(again, batchOf(["B"]))).baseOffset, 3);
    assert.deepEqual(await takeValues(again), [
      [0, "a"],
      [3, "b"],
    ]);
  });
});

test("other topics store batches unchanged; malformed and transactional ones are rejected individually", async () => {
  const topic = await createTopic("plain");
  const good = batchOf(["one", "two"]);
  const broken = batchOf(["broken"]);
  broken[broken.length - 1]! ^= 1;
  const { producer } = stage.broker;
  const outcomes = await producer.produce(
    [
      { topic, partition: 0, batch: Buffer.from(good) },
      { topic, partition: 0, batch: broken },
      { topic, partition: 0, batch: batchOf(["t"], { attributes: 0x10 }) },
      { topic, partition: 5, batch: Buffer.from(good) },
      { topic, partition: 0, batch: batchOf(["x".repeat(9 * 1024 * 1024)]) },
      { topic, partition: 0, batch: Buffer.from(good) },
    ],
    1_000,
  );
  const kinds = outcomes.map((outcome) =>
    outcome.kind === "refused" ? outcome.error.code : outcome.kind,
  );
  const [wrong, far, large] = ["invalid-batch", "unknown-topic", "too-large"];
  assert.deepEqual(kinds, ["stored", wrong, "transactional", far, large, "stored"]);
  const stored = await take(topic, 2);
  assert.deepEqual(stored[0]!.subarray(17), good.subarray(17));
});
