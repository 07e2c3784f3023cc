// The largest message and the bounds of timestamps of Kafka producers, in batches of any compression.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { setImmediate as nextTurn } from "node:timers/promises";
import { gzipSync, zstdCompressSync } from "node:zlib";
import {
  BATCH_HEADER_BYTES,
  COMPRESSIONS,
  encodeBatch,
  readBatchHeader,
  sealBatch,
  type Compression,
  type NewRecord,
} from "@platform/log/batch";
import { ERROR_CODES } from "../../src/kafka/protocol/error-codes.ts";
import {
  createTopics,
  describeConfigs,
  incrementalAlterConfigs,
  initProducerId,
  metadata,
  produce,
} from "../../src/kafka/protocol/messages/index.ts";
import type { KafkaClient } from "./client.ts";
import { mebibyte } from "./requests.ts";
import { KafkaStage } from "./stage.ts";

const MESSAGE_BYTES_MAX = mebibyte;

let stage: KafkaStage;
let client: KafkaClient;

before(async () => {
  stage = await KafkaStage.open({
    sync: { kind: "os" },
    messageBytesMax: MESSAGE_BYTES_MAX,
  });
  client = await stage.connect();
  await client.ask(metadata, 12, { topics: [{ name: "t" }, { name: "other" }] });
});
after(() => stage[Symbol.asyncDispose]());

/** Snappy without compression: elements are literals. */
function packSnappy(section: Buffer): Buffer {
  const parts = [varint(section.length)];
  for (let at = 0; at < section.length; at += 65_536) {
    const part = section.subarray(at, at + 65_536);
    const head = Buffer.from([61 << 2, 0, 0]);
    head.writeUInt16LE(part.length - 1, 1);
    parts.push(head, part);
  }
  return Buffer.concat(parts);
}

function varint(value: number): Buffer {
  const bytes: number[] = [];
  let rest = value;
  for (; rest >= 128; rest = Math.floor(rest / 128)) bytes.push((rest % 128) | 128);
  return Buffer.from([...bytes, rest]);
}

/** The framing of snappy-java, in blocks of 32 KiB. */
function packXerial(section: Buffer): Buffer {
  const parts: Buffer[] = [
    Buffer.from([0x82, 0x53, 0x4e, 0x41, 0x50, 0x50, 0x59, 0, 0, 0, 0, 1, 0, 0, 0, 1]),
  ];
  for (let at = 0; at < section.length; at += 32_768) {
    const block = packSnappy(section.subarray(at, at + 32_768));
    const length = Buffer.alloc(4);
    length.writeUInt32BE(block.length);
    parts.push(length, block);
  }
  return Buffer.concat(parts);
}

/** An LZ4 frame of stored blocks of 64 KiB. */
function packLz4(section: Buffer): Buffer {
  const parts: Buffer[] = [Buffer.from([0x04, 0x22, 0x4d, 0x18, 0x60, 0x40, 0x82])];
  for (let at = 0; at < section.length; at += 65_536) {
    const block = section.subarray(at, at + 65_536);
    const length = Buffer.alloc(4);
    length.writeUInt32LE((block.length | 0x80000000) >>> 0);
    parts.push(length, block);
  }
  return Buffer.concat([...parts, Buffer.alloc(4)]);
}

const packers: Record<string, [Compression, (section: Buffer) => Buffer]> = {
  none: ["none", (section) => section],
  gzip: ["gzip", (section) => gzipSync(section)],
  snappy: ["snappy", packSnappy],
  "snappy of snappy-java": ["snappy", packXerial],
  lz4: ["lz4", packLz4],
  zstd: ["zstd", (section) => zstdCompressSync(section)],
};

function pack(batch: Buffer, name: string): Buffer {
  const [compression, compress] = packers[name]!;
  const bytes = Buffer.concat([
    batch.subarray(0, BATCH_HEADER_BYTES),
    compress(batch.subarray(BATCH_HEADER_BYTES)),
  ]);
  const attributes = COMPRESSIONS.indexOf(compression);
  sealBatch(bytes, { ...readBatchHeader(batch)!, attributes });
  return bytes;
}

function recordOf(bytes: number, changes: Partial<NewRecord> = {}): NewRecord {
  return { key: null, value: Buffer.alloc(bytes, 65), headers: [], timestamp: 1, ...changes };
}

async function writeAll(partitions: { name: string; batch: Buffer }[]) {
  const { topics } = await client.ask(produce, 9, {
    acks: -1,
    timeoutMs: 30_000,
    topics: partitions.map(({ name, batch }) => ({
      name,
      partitions: [{ index: 0, records: [batch] }],
    })),
  });
  return topics.map(({ partitions: [answer] }) => answer!);
}

async function write(name: string, records: NewRecord[], packer = "none") {
  const [answer] = await writeAll([{ name, batch: pack(encodeBatch(records), packer) }]);
  return answer!;
}

describe("the largest message", () => {
  for (const packer of Object.keys(packers)) {
    test(`binds each record of a batch, compression ${packer}`, async () => {
      const largest = recordOf(MESSAGE_BYTES_MAX - 10, {
        key: Buffer.from("key"),
        // Five bytes in UTF-8.
        headers: [{ key: "ü€", value: Buffer.from("vv") }],
      });
      const stored = await write("t", [recordOf(5), largest, largest], packer);
      assert.equal(stored.errorCode, 0);
      const larger = { ...largest, value: Buffer.alloc(largest.value!.length + 1, 65) };
      const refused = await write("t", [recordOf(5), largest, larger], packer);
      assert.equal(refused.errorCode, ERROR_CODES.messageTooLarge);
      assert.equal(refused.baseOffset, -1);
      assert.deepEqual(
        refused.recordErrors.map(({ batchIndex }) => batchIndex),
        [2],
      );
    });
  }

  test("is exact for a record with many headers", async () => {
    const headers = Array.from({ length: 50_000 }, () => ({ key: "k", value: null }));
    const rest = MESSAGE_BYTES_MAX - headers.length;
    assert.equal((await write("t", [recordOf(rest, { headers })])).errorCode, 0);
    const refused = await write("t", [recordOf(rest + 1, { headers })]);
    assert.equal(refused.errorCode, ERROR_CODES.messageTooLarge);
  });

  test("refuses the batch of one partition only", async () => {
    const large = pack(encodeBatch([recordOf(6 * mebibyte)]), "gzip");
    const answers = await writeAll([
      { name: "t", batch: large },
      { name: "other", batch: encodeBatch([recordOf(1)]) },
    ]);
    assert.deepEqual(
      answers.map(({ errorCode }) => errorCode),
      [ERROR_CODES.messageTooLarge, 0],
    );
  });

  test("refuses batches that decompress to more than a reader decompresses", async () => {
    const records = Array.from({ length: 70 }, () => recordOf(mebibyte));
    const { errorCode } = await write("t", records, "zstd");
    assert.equal(errorCode, ERROR_CODES.messageTooLarge);
  });

  test("compressed and uncompressed batches of a pipeline keep their order", async () => {
    const { producerId, producerEpoch } = await client.ask(initProducerId, 4, {
      transactionalId: null,
      transactionTimeoutMs: 1_000,
      producerId: -1,
      producerEpoch: -1,
    });
    const answers = await Promise.all(
      Array.from({ length: 40 }, async (_, index) => {
        // Expensive ones between cheap ones; a batch out of turn is an error of the sequence.
        const bytes = index % 4 === 0 ? mebibyte : 10;
        const records = [recordOf(bytes), recordOf(bytes)];
        const plain = encodeBatch(records, { producerId, producerEpoch, baseSequence: index * 2 });
        const packer = Object.keys(packers)[index % 6]!;
        return (await writeAll([{ name: "other", batch: pack(plain, packer) }]))[0]!;
      }),
    );
    const first = answers[0]!.baseOffset;
    for (const [index, { errorCode, baseOffset }] of answers.entries()) {
      assert.deepEqual({ errorCode, baseOffset }, { errorCode: 0, baseOffset: first + index * 2 });
    }
  });
});

test("a long decompression of snappy lets other work run", async () => {
  // Copies of 64 bytes each: 3 MiB of them yield 60 MiB.
  const count = 980_000;
  const elements = Buffer.alloc(count * 3);
  for (let at = 0; at < elements.length; at += 3) elements.writeUIntLE(0x0001fe, at, 3);
  const section = Buffer.concat([varint(1 + count * 64), Buffer.from([0, 65]), elements]);
  const head = encodeBatch([recordOf(1)]);
  const batch = Buffer.concat([head.subarray(0, BATCH_HEADER_BYTES), section]);
  sealBatch(batch, { ...readBatchHeader(head)!, attributes: COMPRESSIONS.indexOf("snappy") });
  let turns = 0;
  const done = new AbortController();
  const answer = writeAll([{ name: "t", batch }]).finally(() => done.abort());
  for (; !done.signal.aborted; turns++) await nextTurn();
  assert.notEqual((await answer)[0]!.errorCode, 0);
  assert.ok(turns > 60, `${turns} turns of the event loop`);
});

describe("settings", () => {
  const topicResource = (resourceName: string) => ({ resourceType: 2, resourceName });

  async function readSettings(resource: { resourceType: number; resourceName: string }) {
    const { results } = await client.ask(describeConfigs, 4, {
      resources: [{ ...resource, configurationKeys: null }],
      includeSynonyms: false,
      includeDocumentation: false,
    });
    return new Map(results[0]!.configs.map(({ name, value }) => [name, value]));
  }

  async function set(name: string, entries: Record<string, string>): Promise<number> {
    const configs = Object.entries(entries).map(([key, value]) => ({
      name: key,
      configOperation: 0,
      value,
    }));
    const { responses } = await client.ask(incrementalAlterConfigs, 1, {
      resources: [{ ...topicResource(name), configs }],
      validateOnly: false,
    });
    return responses[0]!.errorCode;
  }

  async function create(name: string, entries: Record<string, string>): Promise<number> {
    const { topics } = await client.ask(createTopics, 7, {
      topics: [
        {
          name,
          numPartitions: 1,
          replicationFactor: 1,
          assignments: [],
          configs: Object.entries(entries).map(([key, value]) => ({ name: key, value })),
        },
      ],
      timeoutMs: 1_000,
      validateOnly: false,
    });
    return topics[0]!.errorCode;
  }

  test("topics and the broker show the largest message, and no topic may have a larger one", async () => {
    const text = String(MESSAGE_BYTES_MAX);
    assert.equal((await readSettings(topicResource("t"))).get("max.message.bytes"), text);
    const broker = await readSettings({ resourceType: 4, resourceName: "1" });
    assert.equal(broker.get("message.max.bytes"), text);
    const larger = { "max.message.bytes": String(MESSAGE_BYTES_MAX + 1) };
    assert.equal(await set("t", larger), ERROR_CODES.invalidConfig);
    assert.equal(await create("larger", larger), ERROR_CODES.invalidConfig);
    assert.equal(await set("t", { "max.message.bytes": text }), 0);
  });

  test("a value of before a lower limit is shown as the limit", async () => {
    await stage.broker.topics.create("", "former");
    const topic = stage.broker.topics.get("", "former");
    await stage.broker.settings.change(topic, { "max.message.bytes": "5000000" });
    const shown = await readSettings(topicResource("former"));
    assert.equal(shown.get("max.message.bytes"), String(MESSAGE_BYTES_MAX));
  });

  const hourMs = 3_600_000;
  const ways: [string, Record<string, string>, [before: boolean, after: boolean]][] = [
    ["before", { "message.timestamp.before.max.ms": "3600000" }, [false, true]],
    ["after", { "message.timestamp.after.max.ms": "3600000" }, [true, false]],
    ["difference", { "message.timestamp.difference.max.ms": "3600000" }, [false, false]],
    [
      "the newer settings before difference",
      {
        "message.timestamp.difference.max.ms": "3600000",
        "message.timestamp.before.max.ms": "99999999999",
      },
      [true, false],
    ],
  ];
  for (const [index, [title, entries, isAccepted]] of ways.entries()) {
    test(`timestamps of records are bounded: ${title}`, async () => {
      const name = `times-${index}`;
      assert.equal(await create(name, entries), 0);
      const shown = await readSettings(topicResource(name));
      for (const [key, value] of Object.entries(entries)) assert.equal(shown.get(key), value);
      const now = Date.now();
      for (const packer of ["none", "gzip", "snappy", "lz4"]) {
        const codes = [];
        for (const timestamp of [now - 2 * hourMs, now + 2 * hourMs, now, -1]) {
          const records = [recordOf(1, { timestamp: now }), recordOf(1, { timestamp })];
          codes.push((await write(name, records, packer)).errorCode);
        }
        const expected = [...isAccepted, true, true].map((each) =>
          each ? 0 : ERROR_CODES.invalidTimestamp,
        );
        assert.deepEqual(codes, expected, packer);
      }
    });
  }

  test("bounds of timestamps also apply after a change, and their default is no bound", async () => {
    assert.equal(await create("changed", {}), 0);
    const longAgo = [recordOf(1, { timestamp: 1 })];
    assert.equal((await write("changed", longAgo)).errorCode, 0);
    assert.equal(await set("changed", { "message.timestamp.before.max.ms": "1000" }), 0);
    assert.equal((await write("changed", longAgo)).errorCode, ERROR_CODES.invalidTimestamp);
    const maximum = { "message.timestamp.before.max.ms": "9223372036854775807" };
    assert.equal(await set("changed", maximum), 0);
    assert.equal((await write("changed", longAgo)).errorCode, 0);
    const negative = { "message.timestamp.after.max.ms": "-1" };
    assert.equal(await set("changed", negative), ERROR_CODES.invalidConfig);
  });
});
