// Against kafkajs' own encoders: its requests are read and written again byte for byte.
import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { describe, test } from "node:test";
import {
  readRequestBody,
  readRequestHeader,
  writeRequest,
} from "../../../src/kafka/protocol/frame.ts";
import { Reader } from "../../../src/kafka/protocol/reader.ts";
import { allMessages, toWritten, versionsOf } from "./arbitrary.ts";

interface Encoded {
  buffer: Buffer;
}
interface Api {
  versions: string[];
  protocol(of: { version: number }): (options: unknown) => { request: unknown };
}

const require = createRequire(import.meta.url);
const frameRequest = require("kafkajs/src/protocol/request") as (options: {
  correlationId: number;
  clientId: string;
  request: unknown;
}) => Promise<Encoded>;

const member = { groupId: "g", memberId: "m", groupInstanceId: "i" };
const records = { messages: [{ key: Buffer.from("k"), value: Buffer.from("v"), timestamp: 17 }] };
const partitionOffset = { partition: 1, offset: "17" };

/** Input of kafkajs' requests. */
const options: Record<string, unknown> = {
  produce: {
    acks: -1,
    timeout: 30_000,
    compression: 0,
    producerId: 7,
    producerEpoch: 0,
    topicData: [{ topic: "one", partitions: [{ partition: 2, firstSequence: 0, ...records }] }],
  },
  fetch: {
    replicaId: -1,
    maxWaitTime: 500,
    minBytes: 1,
    maxBytes: 1000,
    rackId: "rack",
    topics: [{ topic: "one", partitions: [{ partition: 1, fetchOffset: 17, maxBytes: 5 }] }],
  },
  listOffsets: { topics: [{ topic: "one", partitions: [{ partition: 1, timestamp: "-1" }] }] },
  metadata: { topics: ["one", "two"], allowAutoTopicCreation: true },
  offsetCommit: {
    ...member,
    groupGenerationId: 3,
    topics: [{ topic: "one", partitions: [{ ...partitionOffset, metadata: "meta" }] }],
  },
  offsetFetch: { groupId: "g", topics: [{ topic: "one", partitions: [{ partition: 1 }] }] },
  findCoordinator: { groupId: "g" },
  joinGroup: {
    ...member,
    sessionTimeout: 10_000,
    rebalanceTimeout: 60_000,
    protocolType: "consumer",
    groupProtocols: [{ name: "range", metadata: Buffer.from("bytes") }],
  },
  heartbeat: { ...member, groupGenerationId: 3 },
  leaveGroup: member,
  syncGroup: {
    ...member,
    generationId: 3,
    groupAssignment: [{ memberId: "m", memberAssignment: Buffer.from("bytes") }],
  },
  describeGroups: { groupIds: ["g", "h"] },
  listGroups: undefined,
  saslHandshake: { mechanism: "PLAIN" },
  // It leaves the length to its mechanisms.
  saslAuthenticate: { authBytes: Buffer.from("\0\0\0\u0005bytes") },
  apiVersions: undefined,
  createTopics: {
    topics: [
      {
        topic: "one",
        numPartitions: 3,
        replicationFactor: 1,
        replicaAssignment: [{ partition: 0, replicas: [1] }],
        configEntries: [{ name: "cleanup.policy", value: "compact" }],
      },
    ],
    validateOnly: true,
    timeout: 3000,
  },
  deleteTopics: { topics: ["one"], timeout: 3000 },
  deleteRecords: { topics: [{ topic: "one", partitions: [partitionOffset] }], timeout: 3000 },
  initProducerId: { transactionalId: null },
  describeConfigs: {
    resources: [{ type: 2, name: "one", configNames: ["a"] }],
    includeSynonyms: true,
  },
  alterConfigs: {
    resources: [{ type: 2, name: "one", configEntries: [{ name: "a", value: "b" }] }],
    validateOnly: true,
  },
  createPartitions: {
    topicPartitions: [{ topic: "one", count: 4, assignments: [[1, 2]] }],
    validateOnly: true,
    timeout: 3000,
  },
  deleteGroups: ["g", "h"],
};

describe("requests of kafkajs", () => {
  for (const [name, given] of Object.entries(options)) {
    const api = require(`kafkajs/src/protocol/requests/${name}`) as Api;
    const message = allMessages.find((one) => one.name.toLowerCase() === name.toLowerCase())!;
    for (const version of versionsOf(message)) {
      if (!api.versions.includes(String(version))) continue;
      test(`${message.name} ${version} is parsed and encoded to the same bytes`, async () => {
        const { request } = api.protocol({ version })(given);
        const encoded = await frameRequest({ correlationId: 5, clientId: "c", request });
        const reader = new Reader(encoded.buffer.subarray(4));
        const header = readRequestHeader(reader);
        assert.deepEqual([header.apiKey, header.apiVersion], [message.key, version]);
        const body = readRequestBody(reader, message, version);
        const written = writeRequest(message, header, toWritten(message.request.shape, body));
        assert.equal(Buffer.concat(written).toString("hex"), encoded.buffer.toString("hex"));
      });
    }
  }
});
