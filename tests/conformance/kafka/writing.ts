// More cases of Produce and InitProducerId: formats, attributes, sequence numbers, acknowledgements.
import assert from "node:assert/strict";
import { gzipSync, zstdCompressSync } from "node:zlib";
import {
  BATCH_HEADER_BYTES,
  encodeBatch,
  readBatchHeader,
  sealBatch,
  type BatchFields,
} from "@platform/log/batch";
import { ERROR_CODES } from "../../../services/pulse/src/kafka/protocol/error-codes.ts";
import {
  alterConfigs,
  apiVersions,
  fetch,
  initProducerId,
  produce,
} from "../../../services/pulse/src/kafka/protocol/messages/index.ts";
import { casesOf, type Case, type Scene } from "./case.ts";

function batchOf(values: readonly string[], fields: BatchFields = {}): Buffer {
  const records = values.map((value) => ({
    key: null,
    value: Buffer.from(value),
    headers: [],
    timestamp: 1,
  }));
  return encodeBatch(records, fields);
}

/** A batch with a replaced section and a valid checksum. */
function batchAround(section: Buffer, attributes: number): Buffer {
  const plain = batchOf(["v"]);
  const bytes = Buffer.concat([plain.subarray(0, BATCH_HEADER_BYTES), section]);
  sealBatch(bytes, { ...readBatchHeader(plain)!, attributes });
  return bytes;
}

/** One literal of less than 61 bytes. */
function packSnappy(section: Buffer): Buffer {
  return Buffer.concat([Buffer.from([section.length, (section.length - 1) << 2]), section]);
}

/** A frame with one stored block. */
function packLz4(section: Buffer): Buffer {
  const head = Buffer.from([0x04, 0x22, 0x4d, 0x18, 0x60, 0x40, 0x82, section.length, 0, 0, 0x80]);
  return Buffer.concat([head, section, Buffer.alloc(4)]);
}

async function send({ client, version }: Scene, name: string, batch: Buffer, index = 0) {
  const { topics, throttleTimeMs } = await client.ask(produce, version, {
    acks: -1,
    timeoutMs: 1000,
    topics: [{ name, partitions: [{ index, records: [batch] }] }],
  });
  return { ...topics[0]!.partitions[0]!, throttleTimeMs };
}

async function readAll({ client }: Scene, name: string): Promise<Buffer> {
  const { topics } = await client.ask(fetch, 12, {
    maxWaitMs: 0,
    minBytes: 1,
    maxBytes: 1_000_000,
    isolationLevel: 0,
    topics: [
      { name, partitions: [{ partition: 0, fetchOffset: 0, partitionMaxBytes: 1_000_000 }] },
    ],
  });
  return topics[0]!.partitions[0]!.records!;
}

async function createProducer({ client }: Scene): Promise<number> {
  const body = { transactionalId: null, transactionTimeoutMs: 0 };
  return (await client.ask(initProducerId, 4, body)).producerId;
}

export const writingCases: readonly Case[] = [
  ...casesOf(
    "Produce",
    [
      [3, 11],
      "INVALID_RECORD for message formats 0 and 1",
      async (scene) => {
        const { name } = await scene.createTopic();
        for (const magic of [0, 1]) {
          const messageSet = Buffer.alloc(40);
          messageSet.writeInt32BE(messageSet.length - 12, 8);
          messageSet[16] = magic;
          const { errorCode } = await send(scene, name, messageSet);
          assert.equal(errorCode, ERROR_CODES.invalidRecord);
        }
      },
    ],
    [
      [3, 11],
      "INVALID_RECORD for a count that is not the last offset delta plus one, or is not positive",
      async (scene) => {
        const { name } = await scene.createTopic();
        for (const change of [{ recordCount: 3 }, { recordCount: 0 }, { lastOffsetDelta: 5 }]) {
          const batch = batchOf(["a", "b"]);
          sealBatch(batch, { ...readBatchHeader(batch)!, ...change });
          assert.equal((await send(scene, name, batch)).errorCode, ERROR_CODES.invalidRecord);
        }
      },
    ],
    [
      [3, 11],
      "CORRUPT_MESSAGE for a length that lies",
      async (scene) => {
        const { name } = await scene.createTopic();
        const batch = batchOf(["a"]);
        batch.writeInt32BE(batch.length, 8);
        assert.equal((await send(scene, name, batch)).errorCode, ERROR_CODES.corruptMessage);
        const short = batchOf(["a"]).subarray(0, 30);
        assert.equal((await send(scene, name, short)).errorCode, ERROR_CODES.corruptMessage);
      },
    ],
    [
      [3, 11],
      "INVALID_TIMESTAMP for times that only a broker may set",
      async (scene) => {
        const { name } = await scene.createTopic();
        const { errorCode } = await send(scene, name, batchOf(["a"], { attributes: 8 }));
        assert.equal(errorCode, ERROR_CODES.invalidTimestamp);
      },
    ],
    [
      [3, 11],
      "TRANSACTIONAL_ID_AUTHORIZATION_FAILED for transactional and control batches",
      async (scene) => {
        const { name } = await scene.createTopic();
        for (const attributes of [0x10, 0x20, 0x30]) {
          const { errorCode } = await send(scene, name, batchOf(["a"], { attributes }));
          assert.equal(errorCode, ERROR_CODES.transactionalIdAuthorizationFailed);
        }
      },
    ],
    [
      [3, 11],
      "UNSUPPORTED_COMPRESSION_TYPE for the numbers that stand for none",
      async (scene) => {
        const { name } = await scene.createTopic();
        for (const attributes of [5, 6, 7]) {
          const { errorCode } = await send(scene, name, batchOf(["a"], { attributes }));
          assert.equal(errorCode, ERROR_CODES.unsupportedCompressionType);
        }
      },
    ],
    [
      [7, 11],
      "keeps batches of gzip, snappy, lz4 and zstd byte for byte, only base offset and epoch are the broker's",
      async (scene) => {
        const { name } = await scene.createTopic();
        const section = batchOf(["v"]).subarray(BATCH_HEADER_BYTES);
        const batches = [
          batchAround(gzipSync(section), 1),
          batchAround(packSnappy(section), 2),
          batchAround(packLz4(section), 3),
          batchAround(zstdCompressSync(section), 4),
        ];
        for (const [index, batch] of batches.entries()) {
          const answer = await send(scene, name, Buffer.from(batch));
          assert.deepEqual([answer.errorCode, answer.baseOffset], [0, index]);
        }
        let at = 0;
        const stored = await readAll(scene, name);
        for (const batch of batches) {
          assert.deepEqual(stored.subarray(at + 16, at + batch.length), batch.subarray(16));
          at += batch.length;
        }
      },
    ],
    [
      [3, 11],
      "keeps the times that the client gave, and tells no time of its own",
      async (scene) => {
        const { name } = await scene.createTopic();
        const answer = await send(scene, name, batchOf(["a"]));
        assert.equal(answer.logAppendTimeMs, -1);
        assert.equal(answer.throttleTimeMs, 0);
        assert.equal(readBatchHeader(await readAll(scene, name))!.maxTimestamp, 1);
      },
    ],
    [
      [3, 11],
      "answers each partition of a request for itself",
      async (scene) => {
        const { name } = await scene.createTopic(2);
        const bad = batchOf(["bad"]);
        bad[20]! ^= 1;
        const { topics } = await scene.client.ask(produce, scene.version, {
          acks: -1,
          timeoutMs: 1000,
          topics: [
            {
              name,
              partitions: [
                { index: 0, records: [batchOf(["good"])] },
                { index: 1, records: [bad] },
                { index: 2, records: [batchOf(["nowhere"])] },
              ],
            },
          ],
        });
        assert.deepEqual(
          topics[0]!.partitions.map(({ errorCode }) => errorCode),
          [0, ERROR_CODES.corruptMessage, ERROR_CODES.unknownTopicOrPartition],
        );
      },
    ],
    [
      [3, 11],
      "answers nothing for acks 0, and closes the connection if it fails",
      async (scene) => {
        const { client, version } = scene;
        const { name } = await scene.createTopic();
        const body = (index: number) => ({
          acks: 0,
          timeoutMs: 1000,
          topics: [{ name, partitions: [{ index, records: [batchOf(["a"])] }] }],
        });
        client.send(produce, version, body(0));
        assert.equal((await client.ask(apiVersions, 0, {})).errorCode, 0);
        assert.equal(readBatchHeader(await readAll(scene, name))!.recordCount, 1);
        client.send(produce, version, body(9));
        assert.equal(await client.readFrame(), undefined);
      },
    ],
    [
      [8, 11],
      "INVALID_RECORD with the places of the records that do not fit the topic's schema",
      async (scene) => {
        const { name } = await scene.createTopic();
        const topic = scene.stage.broker.topics.get("", name);
        await scene.stage.shaping.schemas.register(topic, { amount: "number" }, "none");
        const answer = await send(scene, name, batchOf(['{"amount":1}', "x"]));
        assert.equal(answer.errorCode, ERROR_CODES.invalidRecord);
        assert.deepEqual(
          answer.recordErrors.map(({ batchIndex }) => batchIndex),
          [1],
        );
        assert.ok(answer.errorMessage!.length > 0);
      },
    ],
    [
      [3, 11],
      "INVALID_RECORD for records without a key in a compacted topic, from version 8 on with their places",
      async (scene) => {
        const { name } = await scene.createTopic();
        const topic = scene.stage.broker.topics.get("", name);
        await scene.stage.broker.topics.configure(topic, { cleanupPolicy: "compact" });
        const record = { value: Buffer.from("v"), headers: [], timestamp: 1 };
        const keyed = { ...record, key: Buffer.from("k") };
        const batch = encodeBatch([keyed, { ...record, key: null }]);
        const answer = await send(scene, name, batch);
        assert.equal(answer.errorCode, ERROR_CODES.invalidRecord);
        assert.deepEqual(
          answer.recordErrors.map(({ batchIndex }) => batchIndex),
          scene.version >= 8 ? [1] : [],
        );
        assert.equal((await send(scene, name, encodeBatch([keyed]))).errorCode, 0);
      },
    ],
    [
      [3, 11],
      "MESSAGE_TOO_LARGE for a batch over the topic's max.message.bytes, until that is taken back",
      async (scene) => {
        const { name } = await scene.createTopic();
        const change = async (value: string | null) => {
          const configs = [{ name: "max.message.bytes", value }];
          const resources = [{ resourceType: 2, resourceName: name, configs }];
          const body = { resources, validateOnly: false };
          const { responses } = await scene.client.ask(alterConfigs, 2, body);
          return responses[0]!.errorCode;
        };
        assert.equal(await change("100000000"), ERROR_CODES.invalidConfig, "over the broker's");
        const large = batchOf(["x".repeat(2_000)]);
        assert.equal(await change("1000"), 0);
        assert.equal((await send(scene, name, large)).errorCode, ERROR_CODES.messageTooLarge);
        assert.equal((await send(scene, name, batchOf(["x"]))).errorCode, 0);
        assert.equal(await change(null), 0);
        assert.equal((await send(scene, name, large)).errorCode, 0);
      },
    ],
    [
      [3, 11],
      "INVALID_PRODUCER_EPOCH for an older epoch, OUT_OF_ORDER_SEQUENCE_NUMBER for a new one that does not begin at 0",
      async (scene) => {
        const { name } = await scene.createTopic();
        const producerId = await createProducer(scene);
        const write = async (producerEpoch: number, baseSequence: number) => {
          const batch = batchOf(["v"], { producerId, producerEpoch, baseSequence });
          return (await send(scene, name, batch)).errorCode;
        };
        assert.equal(await write(0, 0), 0);
        assert.equal(await write(1, 1), ERROR_CODES.outOfOrderSequenceNumber);
        assert.equal(await write(1, 0), 0);
        assert.equal(await write(0, 1), ERROR_CODES.invalidProducerEpoch);
      },
    ],
    [
      [3, 11],
      "knows the last five batches of a producer, OUT_OF_ORDER_SEQUENCE_NUMBER for older ones",
      async (scene) => {
        const { name } = await scene.createTopic();
        const producerId = await createProducer(scene);
        const write = (baseSequence: number) =>
          send(scene, name, batchOf(["v"], { producerId, producerEpoch: 0, baseSequence }));
        for (let sequence = 0; sequence < 7; sequence++) await write(sequence);
        for (let sequence = 2; sequence < 7; sequence++) {
          const { errorCode, baseOffset } = await write(sequence);
          assert.deepEqual([errorCode, baseOffset], [0, sequence]);
        }
        assert.equal((await write(1)).errorCode, ERROR_CODES.outOfOrderSequenceNumber);
        assert.equal((await write(7)).baseOffset, 7);
      },
    ],
  ),
  ...casesOf("InitProducerId", [
    [3, 5],
    "gives a new id to a producer that wants a new epoch",
    async ({ client, version }) => {
      const body = { transactionalId: null, transactionTimeoutMs: 0 };
      const { producerId } = await client.ask(initProducerId, version, body);
      const known = { ...body, producerId, producerEpoch: 0 };
      const again = await client.ask(initProducerId, version, known);
      assert.equal(again.errorCode, 0);
      assert.ok(again.producerId > producerId);
      assert.equal(again.producerEpoch, 0);
    },
  ]),
];
