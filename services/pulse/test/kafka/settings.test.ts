// Settings of the broker as Kafka clients meet them: partitions, names, sizes, idle connections.
import assert from "node:assert/strict";
import { test } from "node:test";
import { encodeBatch } from "@platform/log/batch";
import { ERROR_CODES } from "../../src/kafka/protocol/error-codes.ts";
import {
  createTopics,
  describeConfigs,
  fetch,
  metadata,
  offsetCommit,
  produce,
} from "../../src/kafka/protocol/messages/index.ts";
import { startPulseHere } from "../fixture/pulse-here.ts";
import { KafkaClient } from "./client.ts";

const mebibyte = 1024 * 1024;

test("automatically created topics have partitions_default partitions, also in Kafka's tools", async (t) => {
  const pulse = await startPulseHere(t, { PLATFORM_PULSE_PARTITIONS_DEFAULT: "3" });
  await using client = await KafkaClient.connect(pulse.kafkaPort);
  const asked = await client.ask(metadata, 12, { topics: [{ name: "asked" }] });
  assert.equal(asked.topics[0]!.partitions.length, 3);
  const made = await client.ask(createTopics, 7, {
    topics: [
      { name: "made", numPartitions: -1, replicationFactor: -1, assignments: [], configs: [] },
    ],
    timeoutMs: 5_000,
    validateOnly: false,
  });
  assert.deepEqual([made.topics[0]!.errorCode, made.topics[0]!.numPartitions], [0, 3]);
  await pulse.publish({ topic: "published", payload: "x" });
  assert.equal((await pulse.get("/api/v1/topics/published")).body.partitions, 3);
  const { results } = await client.ask(describeConfigs, 4, {
    resources: [{ resourceType: 4, resourceName: "1", configurationKeys: ["num.partitions"] }],
    includeSynonyms: false,
    includeDocumentation: false,
  });
  assert.equal(results[0]!.configs[0]!.value, "3");
});

test("the broker does not start if partitions_default exceeds partitions_max", async (t) => {
  await assert.rejects(
    startPulseHere(t, {
      PLATFORM_PULSE_PARTITIONS_DEFAULT: "11",
      PLATFORM_PULSE_PARTITIONS_MAX: "10",
    }),
    /partitions_default is larger than partitions_max/,
  );
});

test("object storage is configured whole or not at all, and its token is never shown", async (t) => {
  const whole = {
    PLATFORM_PULSE_S3_ENDPOINT: "http://127.0.0.1:1",
    PLATFORM_PULSE_S3_BUCKET: "cold",
    PLATFORM_PULSE_S3_TOKEN: "key:secret-of-the-key",
  };
  for (const left of Object.keys(whole)) {
    const { [left as keyof typeof whole]: _left, ...rest } = whole;
    await assert.rejects(startPulseHere(t, rest), /one of them is missing/, left);
  }
  for (const [name, value] of [
    ["PLATFORM_PULSE_S3_ENDPOINT", "http://127.0.0.1:1/path"],
    ["PLATFORM_PULSE_S3_BUCKET", "Not_A_Bucket"],
    ["PLATFORM_PULSE_S3_TOKEN", "secret-without-a-colon"],
    ["PLATFORM_PULSE_S3_TOKEN", "key:secret-with\na-line"],
    ["PLATFORM_PULSE_S3_PREFIX", "without-a-slash"],
  ] as const) {
    await assert.rejects(startPulseHere(t, { ...whole, [name]: value }), (error: Error) => {
      assert.match(error.message, new RegExp(name));
      assert.ok(!error.message.includes("secret-"), error.message);
      return true;
    });
  }
});

test("names such as a..b are valid over Kafka and HTTP, . and .. are not", async (t) => {
  const pulse = await startPulseHere(t);
  await using client = await KafkaClient.connect(pulse.kafkaPort);
  const names = ["a..b", ".a", "a.", "..."];
  const { topics } = await client.ask(metadata, 12, {
    topics: [...names, ".", ".."].map((name) => ({ name })),
  });
  assert.deepEqual(
    topics.map(({ errorCode }) => errorCode),
    [0, 0, 0, 0, ERROR_CODES.invalidTopic, ERROR_CODES.invalidTopic],
  );
  for (const topic of names) {
    assert.equal((await pulse.publish({ topic, payload: topic })).status, 200);
    assert.equal((await pulse.get(`/api/v1/tail?topic=${topic}`)).body.count, 1);
  }
});

test("a batch of 10 MiB is stored and read back, a larger one is rejected", async (t) => {
  const pulse = await startPulseHere(t);
  await using client = await KafkaClient.connect(pulse.kafkaPort);
  await client.ask(metadata, 12, { topics: [{ name: "large" }] });
  const batchOf = (lastBytes: number) =>
    encodeBatch(
      [...Array.from({ length: 10 }, () => mebibyte - 64), lastBytes].map((bytes) => ({
        key: null,
        value: Buffer.alloc(bytes, 1),
        headers: [],
        timestamp: 1,
      })),
    );
  const overhead = batchOf(300).length - 300;
  const write = async (bytes: number) => {
    const records = [batchOf(bytes - overhead)];
    assert.equal(records[0]!.length, bytes);
    const { topics } = await client.ask(produce, 9, {
      acks: -1,
      timeoutMs: 30_000,
      topics: [{ name: "large", partitions: [{ index: 0, records }] }],
    });
    return topics[0]!.partitions[0]!.errorCode;
  };
  assert.equal(await write(10 * mebibyte), 0);
  assert.equal(await write(10 * mebibyte + 1), ERROR_CODES.messageTooLarge);
  const partitions = [{ partition: 0, fetchOffset: 0, partitionMaxBytes: mebibyte }];
  const { topics } = await client.ask(fetch, 11, {
    maxWaitMs: 0,
    minBytes: 1,
    maxBytes: mebibyte,
    isolationLevel: 0,
    topics: [{ name: "large", partitions }],
  });
  assert.equal(topics[0]!.partitions[0]!.records!.length, 10 * mebibyte);
});

test("a batch over HTTP may have 10 MiB, also if it becomes dead letters", async (t) => {
  const pulse = await startPulseHere(t);
  const payload = "x".repeat(1_000_000);
  const messages = Array.from({ length: 10 }, () => ({ topic: "large", payload, ttl_ms: 1 }));
  const body = { messages };
  assert.ok(JSON.stringify(body).length > 10_000_000);
  const { status } = await pulse.post("/api/v1/publish/batch", body);
  assert.equal(status, 200);
  const deadline = performance.now() + 30_000;
  for (let total = 0; total < 10;) {
    ({ total } = (await pulse.get("/api/v1/topics/large/dlq?limit=1")).body);
    assert.ok(performance.now() < deadline, `${total} of 10 expired`);
  }
  assert.equal((await pulse.publish({ topic: "other", payload: "goes on" })).status, 200);
});

test("an idle connection is closed after kafka_idle_timeout_ms, and connections of one address are limited", async (t) => {
  const pulse = await startPulseHere(t, {
    PLATFORM_PULSE_KAFKA_IDLE_TIMEOUT_MS: "1000",
    PLATFORM_PULSE_KAFKA_CONNECTIONS_PER_ADDRESS_MAX: "1",
  });
  const idle = await KafkaClient.connect(pulse.kafkaPort);
  const second = await KafkaClient.connect(pulse.kafkaPort);
  assert.equal(await second.readFrame(), undefined);
  assert.equal(await idle.readFrame(), undefined);
  assert.match(
    String((await pulse.get("/metrics")).body),
    /^platform_pulse_kafka_refused_connections_total 1$/m,
  );
  await waitForRoom(pulse.kafkaPort);
});

// The client may see the end of the idle connection before the broker has forgotten it.
async function waitForRoom(port: number): Promise<void> {
  const deadline = performance.now() + 10_000;
  for (;;) {
    await using next = await KafkaClient.connect(port);
    const answer = await next.ask(metadata, 12, { topics: [] }).catch(() => undefined);
    if (answer?.brokers.length === 1) return;
    assert.ok(performance.now() < deadline, "the connection of this address is not counted down");
  }
}

test("after a commit without an offset the lag is the whole partition", async (t) => {
  const pulse = await startPulseHere(t);
  await using client = await KafkaClient.connect(pulse.kafkaPort);
  for (const payload of ["a", "b"]) await pulse.publish({ topic: "t", payload });
  const partition = { partitionIndex: 0, committedOffset: -1, committedMetadata: "note" };
  const { topics } = await client.ask(offsetCommit, 8, {
    groupId: "g",
    generationId: -1,
    memberId: "",
    groupInstanceId: null,
    topics: [{ name: "t", partitions: [partition] }],
  });
  assert.equal(topics[0]!.partitions[0]!.errorCode, 0);
  const { body } = await pulse.get("/api/v1/consumers/lag?group=g");
  assert.deepEqual([body.groups[0].committed_offset, body.groups[0].lag], [-1, 2]);
});
