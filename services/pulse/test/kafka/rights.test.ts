// Rights of Kafka clients that authenticate with a token: each request without its right gets Kafka's authorization error.
import assert from "node:assert/strict";
import { test, type TestContext } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { Kafka, logLevel } from "kafkajs";
import { ERROR_CODES } from "../../src/kafka/protocol/error-codes.ts";
import {
  alterConfigs,
  createPartitions,
  createTopics,
  deleteGroups,
  deleteRecords,
  deleteTopics,
  fetch,
  heartbeat,
  incrementalAlterConfigs,
  initProducerId,
  joinGroup,
  leaveGroup,
  listOffsets,
  metadata,
  offsetCommit,
  offsetDelete,
  offsetFetch,
  offsetForLeaderEpoch,
  produce,
  saslAuthenticate,
  saslHandshake,
  syncGroup,
} from "../../src/kafka/protocol/messages/index.ts";
import type { WireMessage } from "../../src/kafka/protocol/message.ts";
import { startPulseProcess } from "../fixture/pulse-process.ts";
import { makeToken, startFeed } from "../fixture/tokens.ts";
import { KafkaClient } from "./client.ts";

const { topicAuthorizationFailed: TOPIC, groupAuthorizationFailed: GROUP } = ERROR_CODES;

async function start(t: TestContext) {
  const feed = await startFeed(t);
  const pulse = await startPulseProcess(t, { ...feed.env, PLATFORM_PULSE_ANONYMOUS: "never" });
  const headers = { authorization: `Bearer ${makeToken({ scope: "pulse:publish" })}` };
  await pulse.post("/api/v1/publish", { topic: "a", payload: "x" }, headers);
  return { pulse, feed };
}

async function authenticate(port: number, claims: Record<string, unknown>) {
  const client = await KafkaClient.connect(port);
  await client.ask(saslHandshake, 1, { mechanism: "PLAIN" });
  const authBytes = Buffer.from(`\0anyone\0${makeToken(claims)}`);
  const { errorCode } = await client.ask(saslAuthenticate, 2, { authBytes });
  return { client, errorCode };
}

/** All error codes in an answer. */
function listCodes(answer: unknown): number[] {
  if (typeof answer !== "object" || answer === null) return [];
  return Object.entries(answer).flatMap(([name, value]) =>
    name === "errorCode" ? [value as number] : listCodes(value),
  );
}

// oxlint-disable-next-line typescript/no-explicit-any -- a table of different messages
type AnyMessage = WireMessage<any, any, any, any>;
const group = { groupId: "g", generationId: 1, memberId: "m" };
const partition = { partitionIndex: 0, partition: 0, index: 0 };
const requests: [
  message: AnyMessage,
  version: number,
  body: object,
  right: string,
  code: number,
][] = [
  [
    produce,
    9,
    {
      transactionalId: null,
      acks: -1,
      timeoutMs: 1_000,
      topics: [{ name: "a", partitions: [{ index: 0, records: Buffer.alloc(0) }] }],
    },
    "publish",
    TOPIC,
  ],
  [
    initProducerId,
    4,
    { transactionalId: null, transactionTimeoutMs: 1 },
    "publish",
    ERROR_CODES.clusterAuthorizationFailed,
  ],
  [
    fetch,
    11,
    {
      maxWaitMs: 0,
      minBytes: 0,
      maxBytes: 1_000,
      isolationLevel: 0,
      topics: [
        { name: "a", partitions: [{ partition: 0, fetchOffset: 0, partitionMaxBytes: 1_000 }] },
      ],
    },
    "subscribe",
    TOPIC,
  ],
  [
    listOffsets,
    6,
    { topics: [{ name: "a", partitions: [{ ...partition, timestamp: -1 }] }] },
    "subscribe",
    TOPIC,
  ],
  [
    offsetForLeaderEpoch,
    3,
    { topics: [{ name: "a", partitions: [{ partition: 0, leaderEpoch: 0 }] }] },
    "subscribe",
    TOPIC,
  ],
  [
    deleteRecords,
    2,
    { topics: [{ name: "a", partitions: [{ partitionIndex: 0, offset: 0 }] }], timeoutMs: 1_000 },
    "manage",
    TOPIC,
  ],
  [
    joinGroup,
    5,
    {
      groupId: "g",
      sessionTimeoutMs: 10_000,
      rebalanceTimeoutMs: 1_000,
      memberId: "",
      protocolType: "consumer",
      protocols: [{ name: "range", metadata: Buffer.alloc(0) }],
    },
    "subscribe",
    GROUP,
  ],
  [syncGroup, 3, { ...group, assignments: [] }, "subscribe", GROUP],
  [heartbeat, 3, group, "subscribe", GROUP],
  [leaveGroup, 2, { groupId: "g", memberId: "m" }, "subscribe", GROUP],
  [
    offsetCommit,
    7,
    {
      ...group,
      topics: [
        {
          name: "a",
          partitions: [{ partitionIndex: 0, committedOffset: 0, committedMetadata: "" }],
        },
      ],
    },
    "subscribe",
    GROUP,
  ],
  [
    offsetFetch,
    7,
    { groupId: "g", topics: [{ name: "a", partitionIndexes: [0] }] },
    "subscribe",
    GROUP,
  ],
  [offsetFetch, 8, { groups: [{ groupId: "g", topics: null }] }, "subscribe", GROUP],
  [
    offsetDelete,
    0,
    { groupId: "g", topics: [{ name: "a", partitions: [{ partitionIndex: 0 }] }] },
    "manage",
    GROUP,
  ],
  [deleteGroups, 2, { groupsNames: ["g"] }, "manage", GROUP],
  [
    createTopics,
    5,
    {
      topics: [{ name: "b", numPartitions: 1, replicationFactor: 1, assignments: [], configs: [] }],
      timeoutMs: 1_000,
      validateOnly: false,
    },
    "manage",
    TOPIC,
  ],
  [deleteTopics, 5, { topicNames: ["a"], timeoutMs: 1_000 }, "manage", TOPIC],
  [
    createPartitions,
    3,
    {
      topics: [{ name: "a", count: 2, assignments: null }],
      timeoutMs: 1_000,
      validateOnly: false,
    },
    "manage",
    TOPIC,
  ],
  [
    alterConfigs,
    2,
    { resources: [{ resourceType: 2, resourceName: "a", configs: [] }], validateOnly: true },
    "manage",
    TOPIC,
  ],
  [
    incrementalAlterConfigs,
    1,
    { resources: [{ resourceType: 2, resourceName: "a", configs: [] }], validateOnly: true },
    "manage",
    TOPIC,
  ],
];

test("each request requires its right", async (t) => {
  const { pulse } = await start(t);
  const others = {
    publish: "subscribe manage",
    subscribe: "publish manage",
    manage: "publish subscribe",
  };
  for (const [message, version, body, right, code] of requests) {
    const name = `${message.name} ${version}`;
    const scope = others[right as keyof typeof others].replaceAll(/\w+/g, "pulse:$&");
    const { client } = await authenticate(pulse.kafkaPort, { scope });
    const refused = listCodes(await client.ask(message, version, body));
    assert.ok(refused.includes(code), `${name} without pulse:${right}: ${refused.join()}`);
    assert.ok(
      refused.every((found) => found === code || found === 0),
      `${name}: ${refused.join()}`,
    );
    await client[Symbol.asyncDispose]();
    const holder = await authenticate(pulse.kafkaPort, { scope: `pulse:${right}` });
    const allowed = listCodes(await holder.client.ask(message, version, body));
    assert.ok(!allowed.includes(code), `${name} with pulse:${right}: ${allowed.join()}`);
    await holder.client[Symbol.asyncDispose]();
    if (message === deleteTopics) {
      const headers = { authorization: `Bearer ${makeToken({ scope: "pulse:publish" })}` };
      await pulse.post("/api/v1/publish", { topic: "a", payload: "x" }, headers);
    }
  }
});

test("a token without a scope of messaging cannot authenticate; any of them sees the topics", async (t) => {
  const { pulse } = await start(t);
  const none = await authenticate(pulse.kafkaPort, { scope: "vault:read" });
  assert.equal(none.errorCode, ERROR_CODES.saslAuthenticationFailed);
  const { client } = await authenticate(pulse.kafkaPort, { scope: "pulse:manage" });
  const { topics } = await client.ask(metadata, 12, { topics: null });
  assert.deepEqual(
    topics.map(({ name }) => name),
    ["a"],
  );
  await client[Symbol.asyncDispose]();
});

test("the connection of a revoked session closes within 2 s, and only that one", async (t) => {
  const { pulse, feed } = await start(t);
  const scope = "pulse:subscribe";
  const ended = await authenticate(pulse.kafkaPort, { scope, sid: "s1" });
  const kept = await authenticate(pulse.kafkaPort, { scope, sid: "s2" });
  const startedMs = performance.now();
  feed.revoke("s1");
  while (!ended.client.isClosed && performance.now() - startedMs < 20_000) await sleep(20);
  assert.ok(ended.client.isClosed);
  assert.ok(!kept.client.isClosed);
  await kept.client.ask(metadata, 12, { topics: null });
  await kept.client[Symbol.asyncDispose]();
  const again = await authenticate(pulse.kafkaPort, { scope, sid: "s1" });
  assert.equal(again.errorCode, ERROR_CODES.saslAuthenticationFailed);
});

test("kafkajs publishes and reads with tokens of the right scope and reports the missing one", async (t) => {
  const { pulse } = await start(t);
  const connect = (scope: string) =>
    new Kafka({
      brokers: [`127.0.0.1:${pulse.kafkaPort}`],
      sasl: { mechanism: "plain", username: "app", password: makeToken({ scope }) },
      ssl: false,
      logLevel: logLevel.NOTHING,
      retry: { retries: 0 },
    });
  const producer = connect("pulse:publish").producer();
  await producer.connect();
  await producer.send({ topic: "a", messages: [{ value: "by kafkajs" }] });
  await producer.disconnect();
  const stranger = connect("pulse:subscribe").producer();
  await stranger.connect();
  await assert.rejects(
    stranger.send({ topic: "a", messages: [{ value: "x" }] }),
    /not authorized|authoriz/i,
  );
  await stranger.disconnect();
  const admin = connect("pulse:publish").admin();
  await admin.connect();
  await assert.rejects(admin.createTopics({ topics: [{ topic: "new" }] }));
  await admin.disconnect();
});
