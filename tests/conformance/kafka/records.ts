// Records and their offsets.
import assert from "node:assert/strict";
import { zstdCompressSync } from "node:zlib";
import { BATCH_HEADER_BYTES, encodeBatch, readBatchHeader, sealBatch } from "@platform/log/batch";
import { ERROR_CODES } from "../../../services/pulse/src/kafka/protocol/error-codes.ts";
import {
  deleteRecords,
  fetch,
  initProducerId,
  listOffsets,
  offsetForLeaderEpoch,
  produce,
} from "../../../services/pulse/src/kafka/protocol/messages/index.ts";
import { casesOf, type Case, type Scene } from "./case.ts";

const record = { key: null, value: Buffer.from("v"), headers: [], timestamp: 1 };

async function send(
  { client, version }: Scene,
  name: string,
  records: readonly Buffer[] | null,
  changes: { acks?: number; index?: number; transactionalId?: string } = {},
) {
  const { topics } = await client.ask(produce, version, {
    acks: changes.acks ?? -1,
    timeoutMs: 1000,
    ...(changes.transactionalId === undefined ? {} : { transactionalId: changes.transactionalId }),
    topics: [{ name, partitions: [{ index: changes.index ?? 0, records }] }],
  });
  return topics[0]!.partitions[0]!;
}

async function read(
  { client, version }: Scene,
  topic: { name: string; topicId: string },
  changes: { offset?: number; partition?: number; epoch?: number; sessionId?: number } = {},
) {
  const { errorCode, topics } = await client.ask(fetch, version, {
    maxWaitMs: 0,
    minBytes: 1,
    maxBytes: 1_000_000,
    isolationLevel: 1,
    ...(changes.sessionId === undefined ? {} : { sessionId: changes.sessionId, sessionEpoch: 1 }),
    topics: [
      {
        ...topic,
        partitions: [
          {
            partition: changes.partition ?? 0,
            fetchOffset: changes.offset ?? 0,
            currentLeaderEpoch: changes.epoch ?? -1,
            partitionMaxBytes: 1_000_000,
          },
        ],
      },
    ],
  });
  return { general: errorCode, ...topics[0]?.partitions[0] };
}

async function list(
  { client, version }: Scene,
  name: string,
  timestamp: number,
  changes: { partition?: number; epoch?: number } = {},
) {
  const partition = {
    partitionIndex: changes.partition ?? 0,
    currentLeaderEpoch: changes.epoch ?? -1,
    timestamp,
  };
  const body = { replicaId: -1, topics: [{ name, partitions: [partition] }] };
  const { topics } = await client.ask(listOffsets, version, body);
  return topics[0]!.partitions[0]!;
}

async function endOf(
  { client, version }: Scene,
  name: string,
  leaderEpoch: number,
  currentLeaderEpoch = -1,
) {
  const partitions = [{ partition: 0, currentLeaderEpoch, leaderEpoch }];
  const { topics } = await client.ask(offsetForLeaderEpoch, version, {
    topics: [{ name, partitions }],
  });
  return topics[0]!.partitions[0]!;
}

async function cut({ client, version }: Scene, name: string, offset: number) {
  const body = { topics: [{ name, partitions: [{ partitionIndex: 0, offset }] }], timeoutMs: 1000 };
  const { topics } = await client.ask(deleteRecords, version, body);
  return topics[0]!.partitions[0]!;
}

export const recordCases: readonly Case[] = [
  ...casesOf(
    "Produce",
    [
      [0, 2],
      "UNSUPPORTED_VERSION for message sets",
      async (scene) => {
        const { name } = await scene.createTopic();
        const { errorCode } = await send(scene, name, [encodeBatch([record])]);
        assert.equal(errorCode, ERROR_CODES.unsupportedVersion);
      },
    ],
    [
      [3, 11],
      "stores a batch and gives its base offset",
      async (scene) => {
        const { name } = await scene.createTopic();
        await scene.append(name, "a", "b");
        const answer = await send(scene, name, [encodeBatch([record])]);
        assert.deepEqual([answer.errorCode, answer.baseOffset], [0, 2]);
      },
    ],
    [
      [5, 11],
      "tells the log start offset",
      async (scene) => {
        const { name } = await scene.createTopic();
        assert.equal((await send(scene, name, [encodeBatch([record])])).logStartOffset, 0);
      },
    ],
    [
      [3, 11],
      "UNKNOWN_TOPIC_OR_PARTITION for a topic or partition that is not there",
      async (scene) => {
        const { name } = await scene.createTopic();
        const batch = encodeBatch([record]);
        for (const [topic, index] of [
          ["missing", 0],
          [name, 1],
          [name, -1],
        ] as const) {
          const { errorCode } = await send(scene, topic, [batch], { index });
          assert.equal(errorCode, ERROR_CODES.unknownTopicOrPartition);
        }
      },
    ],
    [
      [3, 11],
      "CORRUPT_MESSAGE for a wrong checksum",
      async (scene) => {
        const { name } = await scene.createTopic();
        const batch = encodeBatch([record]);
        batch[20]! ^= 1;
        assert.equal((await send(scene, name, [batch])).errorCode, ERROR_CODES.corruptMessage);
      },
    ],
    [
      [3, 11],
      "INVALID_RECORD for no batch or two of them",
      async (scene) => {
        const { name } = await scene.createTopic();
        const batch = encodeBatch([record]);
        for (const records of [null, [], [batch, batch]]) {
          assert.equal((await send(scene, name, records)).errorCode, ERROR_CODES.invalidRecord);
        }
      },
    ],
    [
      [3, 11],
      "MESSAGE_TOO_LARGE for a batch over the bound",
      async (scene) => {
        const { name } = await scene.createTopic();
        const value = Buffer.alloc(8 * 1024 * 1024);
        const { errorCode } = await send(scene, name, [encodeBatch([{ ...record, value }])]);
        assert.equal(errorCode, ERROR_CODES.messageTooLarge);
      },
    ],
    [
      [3, 11],
      "INVALID_REQUIRED_ACKS for acks but -1, 0 and 1",
      async (scene) => {
        const { name } = await scene.createTopic();
        for (const acks of [2, -2]) {
          const { errorCode } = await send(scene, name, [encodeBatch([record])], { acks });
          assert.equal(errorCode, ERROR_CODES.invalidRequiredAcks);
        }
      },
    ],
    [
      [3, 6],
      "UNSUPPORTED_COMPRESSION_TYPE for zstd",
      async (scene) => {
        const { name } = await scene.createTopic();
        const { errorCode } = await send(scene, name, [encodeBatch([record], { attributes: 4 })]);
        assert.equal(errorCode, ERROR_CODES.unsupportedCompressionType);
      },
    ],
    [
      [3, 11],
      "OUT_OF_ORDER_SEQUENCE_NUMBER for a gap, the same offset for a repetition",
      async (scene) => {
        const { name } = await scene.createTopic();
        const { producerId } = await scene.client.ask(initProducerId, 0, {
          transactionalId: null,
          transactionTimeoutMs: 1000,
        });
        const of = (baseSequence: number, producerEpoch = 0) =>
          send(scene, name, [encodeBatch([record], { producerId, producerEpoch, baseSequence })]);
        assert.equal((await of(0)).baseOffset, 0);
        assert.deepEqual([(await of(0)).baseOffset, (await of(1)).baseOffset], [0, 1]);
        assert.equal((await of(3)).errorCode, ERROR_CODES.outOfOrderSequenceNumber);
        assert.equal((await of(0, 1)).errorCode, 0);
        assert.equal((await of(2)).errorCode, ERROR_CODES.invalidProducerEpoch);
      },
    ],
    [
      [3, 11],
      "TRANSACTIONAL_ID_AUTHORIZATION_FAILED for a transaction",
      async (scene) => {
        const { name } = await scene.createTopic();
        const { errorCode } = await send(scene, name, [encodeBatch([record])], {
          transactionalId: "t",
        });
        assert.equal(errorCode, ERROR_CODES.transactionalIdAuthorizationFailed);
      },
    ],
  ),
  ...casesOf(
    "InitProducerId",
    [
      [0, 5],
      "gives an id that no other producer has, in epoch 0",
      async ({ client, version }) => {
        const body = { transactionalId: null, transactionTimeoutMs: 1000 };
        const one = await client.ask(initProducerId, version, body);
        const other = await client.ask(initProducerId, version, body);
        assert.deepEqual([one.errorCode, one.producerEpoch], [0, 0]);
        assert.notEqual(one.producerId, other.producerId);
      },
    ],
    [
      [0, 5],
      "TRANSACTIONAL_ID_AUTHORIZATION_FAILED for a transactional id",
      async ({ client, version }) => {
        const body = { transactionalId: "t", transactionTimeoutMs: 1000 };
        const { errorCode } = await client.ask(initProducerId, version, body);
        assert.equal(errorCode, ERROR_CODES.transactionalIdAuthorizationFailed);
      },
    ],
  ),
  ...casesOf(
    "Fetch",
    [
      [4, 16],
      "gives whole batches from the one that holds the offset on",
      async (scene) => {
        const topic = await scene.createTopic();
        await scene.append(topic.name, "a", "b");
        await scene.append(topic.name, "c");
        const found = await read(scene, topic, { offset: 1 });
        assert.deepEqual([found.errorCode, found.highWatermark, found.lastStableOffset], [0, 3, 3]);
        assert.equal(found.records!.readInt32BE(4), 0, "the base offset of the first batch");
      },
    ],
    [
      [4, 16],
      "gives nothing at the end, OFFSET_OUT_OF_RANGE past it",
      async (scene) => {
        const topic = await scene.createTopic();
        await scene.append(topic.name, "a");
        assert.equal((await read(scene, topic, { offset: 1 })).records?.length, 0);
        for (const offset of [2, -1]) {
          const { errorCode } = await read(scene, topic, { offset });
          assert.equal(errorCode, ERROR_CODES.offsetOutOfRange);
        }
      },
    ],
    [
      [4, 12],
      "UNKNOWN_TOPIC_OR_PARTITION for a topic or partition that is not there",
      async (scene) => {
        const topic = await scene.createTopic();
        const missing = await read(scene, { name: "missing", topicId: "" });
        assert.equal(missing.errorCode, ERROR_CODES.unknownTopicOrPartition);
        const { errorCode } = await read(scene, topic, { partition: 7 });
        assert.equal(errorCode, ERROR_CODES.unknownTopicOrPartition);
      },
    ],
    [
      [13, 16],
      "UNKNOWN_TOPIC_ID for an id that is not there",
      async (scene) => {
        const { errorCode } = await read(scene, { name: "", topicId: "ab".repeat(16) });
        assert.equal(errorCode, ERROR_CODES.unknownTopicId);
      },
    ],
    [
      [7, 16],
      "FETCH_SESSION_ID_NOT_FOUND for a session",
      async (scene) => {
        const topic = await scene.createTopic();
        const { general } = await read(scene, topic, { sessionId: 17 });
        assert.equal(general, ERROR_CODES.fetchSessionIdNotFound);
      },
    ],
    [
      [9, 16],
      "UNKNOWN_LEADER_EPOCH for an epoch that has not begun",
      async (scene) => {
        const topic = await scene.createTopic();
        const { errorCode } = await read(scene, topic, { epoch: 99 });
        assert.equal(errorCode, ERROR_CODES.unknownLeaderEpoch);
      },
    ],
    [
      [4, 9],
      "UNSUPPORTED_COMPRESSION_TYPE where the client cannot know zstd",
      async (scene) => {
        const topic = await scene.createTopic();
        const plain = encodeBatch([record]);
        const section = zstdCompressSync(plain.subarray(BATCH_HEADER_BYTES));
        const batch = Buffer.concat([plain.subarray(0, BATCH_HEADER_BYTES), section]);
        sealBatch(batch, { ...readBatchHeader(plain)!, attributes: 4 });
        const sent = await send({ ...scene, version: 9 }, topic.name, [batch]);
        assert.equal(sent.errorCode, 0);
        assert.equal((await read(scene, topic)).errorCode, ERROR_CODES.unsupportedCompressionType);
      },
    ],
  ),
  ...casesOf(
    "ListOffsets",
    [
      [1, 8],
      "gives the end (-1) and the beginning (-2)",
      async (scene) => {
        const { name } = await scene.createTopic();
        await scene.append(name, "a", "b");
        assert.equal((await list(scene, name, -1)).offset, 2);
        assert.equal((await list(scene, name, -2)).offset, 0);
      },
    ],
    [
      [1, 8],
      "gives the first record at or after a time, -1 if there is none",
      async (scene) => {
        const { name } = await scene.createTopic();
        await scene.append(name, "a", "b", "c");
        const found = await list(scene, name, 1_001);
        assert.deepEqual([found.offset, found.timestamp], [1, 2_000]);
        assert.deepEqual([(await list(scene, name, 3_001)).offset], [-1]);
      },
    ],
    [
      [7, 8],
      "gives the record with the largest time (-3)",
      async (scene) => {
        const { name } = await scene.createTopic();
        await scene.append(name, "a", "b", "c");
        await scene.append(name, "d");
        const found = await list(scene, name, -3);
        assert.deepEqual([found.offset, found.timestamp], [2, 3_000]);
      },
    ],
    [
      [1, 8],
      "UNKNOWN_TOPIC_OR_PARTITION for a topic or partition that is not there",
      async (scene) => {
        const { name } = await scene.createTopic();
        const missing = [
          await list(scene, "missing", -1),
          await list(scene, name, -1, { partition: 3 }),
        ];
        for (const { errorCode, offset } of missing) {
          assert.deepEqual([errorCode, offset], [ERROR_CODES.unknownTopicOrPartition, -1]);
        }
      },
    ],
    [
      [4, 8],
      "UNKNOWN_LEADER_EPOCH for an epoch that has not begun",
      async (scene) => {
        const { name } = await scene.createTopic();
        const { errorCode } = await list(scene, name, -1, { epoch: 99 });
        assert.equal(errorCode, ERROR_CODES.unknownLeaderEpoch);
      },
    ],
  ),
  ...casesOf(
    "OffsetForLeaderEpoch",
    [
      [2, 4],
      "gives the end of the current epoch",
      async (scene) => {
        const { name } = await scene.createTopic();
        await scene.append(name, "a", "b");
        const found = await endOf(scene, name, 0);
        assert.deepEqual([found.errorCode, found.leaderEpoch, found.endOffset], [0, 0, 2]);
      },
    ],
    [
      [2, 4],
      "gives -1 for an epoch that has not begun, UNKNOWN_LEADER_EPOCH if it is said to be current",
      async (scene) => {
        const { name } = await scene.createTopic();
        assert.equal((await endOf(scene, name, 99)).endOffset, -1);
        assert.equal((await endOf(scene, name, 0, 99)).errorCode, ERROR_CODES.unknownLeaderEpoch);
      },
    ],
    [
      [2, 4],
      "UNKNOWN_TOPIC_OR_PARTITION for a topic that is not there",
      async (scene) => {
        const { errorCode } = await endOf(scene, "missing", 0);
        assert.equal(errorCode, ERROR_CODES.unknownTopicOrPartition);
      },
    ],
  ),
  ...casesOf(
    "DeleteRecords",
    [
      [0, 2],
      "moves the beginning of a partition",
      async (scene) => {
        const topic = await scene.createTopic();
        await scene.append(topic.name, "a", "b", "c");
        const { errorCode, lowWatermark } = await cut(scene, topic.name, 2);
        assert.deepEqual([errorCode, lowWatermark], [0, 2]);
        const before = await read({ ...scene, version: 12 }, topic, { offset: 1 });
        assert.equal(before.errorCode, ERROR_CODES.offsetOutOfRange);
        assert.equal((await cut(scene, topic.name, -1)).lowWatermark, 3);
      },
    ],
    [
      [0, 2],
      "OFFSET_OUT_OF_RANGE past the end",
      async (scene) => {
        const { name } = await scene.createTopic();
        assert.equal((await cut(scene, name, 1)).errorCode, ERROR_CODES.offsetOutOfRange);
      },
    ],
    [
      [0, 2],
      "UNKNOWN_TOPIC_OR_PARTITION for a topic that is not there",
      async (scene) => {
        const { errorCode } = await cut(scene, "missing", 0);
        assert.equal(errorCode, ERROR_CODES.unknownTopicOrPartition);
      },
    ],
  ),
];
