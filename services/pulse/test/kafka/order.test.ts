// Requests that a client sends without waiting take effect in the order in which they were sent, as in Kafka, which
// handles one request of a connection at a time (https://kafka.apache.org/protocol, "Network").
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { decodeBatch, encodeBatch, splitBatches } from "@platform/log/batch";
import { readResponse } from "../../src/kafka/protocol/frame.ts";
import type { WireMessage } from "../../src/kafka/protocol/message.ts";
import {
  createTopics,
  fetch,
  listOffsets,
  offsetCommit,
  offsetFetch,
  produce,
} from "../../src/kafka/protocol/messages/index.ts";
import { UUID_ZERO } from "../../src/kafka/protocol/schema.ts";
import type { KafkaClient } from "./client.ts";
import { KafkaStage } from "./stage.ts";

let stage: KafkaStage;

before(async () => {
  stage = await KafkaStage.open();
});
after(() => stage[Symbol.asyncDispose]());

/** Reads the next answer, which must be that of `message`. */
async function read<Q, QI, R, RI>(
  client: KafkaClient,
  message: WireMessage<Q, QI, R, RI>,
  version: number,
): Promise<R> {
  return readResponse((await client.readFrame())!, message, version).body;
}

function sendCreate(client: KafkaClient, name: string): void {
  const topic = { name, numPartitions: 1, replicationFactor: 1, assignments: [], configs: [] };
  client.send(createTopics, 7, { topics: [topic], timeoutMs: 1000, validateOnly: false });
}

function sendProduce(client: KafkaClient, name: string, value: string): void {
  const records = [
    encodeBatch([{ key: null, value: Buffer.from(value), headers: [], timestamp: 1000 }]),
  ];
  const topics = [{ name, partitions: [{ index: 0, records }] }];
  client.send(produce, 9, { acks: -1, timeoutMs: 1000, topics });
}

function sendFetch(client: KafkaClient, name: string, fetchOffset: number): void {
  const partitions = [{ partition: 0, fetchOffset, partitionMaxBytes: 1_000_000 }];
  client.send(fetch, 12, {
    maxWaitMs: 0,
    minBytes: 1,
    maxBytes: 1_000_000,
    isolationLevel: 0,
    topics: [{ name, topicId: UUID_ZERO, partitions }],
  });
}

test("a topic is created, written and read in one go", async () => {
  const client = await stage.connect();
  const name = "created-written-read";
  const values = Array.from({ length: 20 }, (_, index) => `value ${index}`);
  sendCreate(client, name);
  for (const value of values) sendProduce(client, name, value);
  // The last offset exists only once everything before has been written.
  sendFetch(client, name, values.length - 1);
  client.send(listOffsets, 6, {
    replicaId: -1,
    isolationLevel: 0,
    topics: [{ name, partitions: [{ partitionIndex: 0, timestamp: -1 }] }],
  });
  assert.equal((await read(client, createTopics, 7)).topics[0]!.errorCode, 0);
  for (const [index] of values.entries()) {
    const { topics } = await read(client, produce, 9);
    assert.deepEqual(
      [topics[0]!.partitions[0]!.errorCode, topics[0]!.partitions[0]!.baseOffset],
      [0, index],
    );
  }
  const fetched = (await read(client, fetch, 12)).topics[0]!.partitions[0]!;
  assert.equal(fetched.errorCode, 0);
  const found: string[] = [];
  for (const batch of splitBatches(fetched.records ?? Buffer.alloc(0))) {
    for (const { value } of (await decodeBatch(batch)).records) found.push(String(value));
  }
  assert.deepEqual(found, values.slice(-1));
  const latest = (await read(client, listOffsets, 6)).topics[0]!.partitions[0]!;
  assert.deepEqual([latest.errorCode, latest.offset], [0, values.length]);
});

test("the last of several commits counts, also for a request behind them", async () => {
  const client = await stage.connect();
  const name = "committed";
  sendCreate(client, name);
  assert.equal((await read(client, createTopics, 7)).topics[0]!.errorCode, 0);
  const offsets = Array.from({ length: 40 }, (_, index) => (index * 7) % 40);
  for (const committedOffset of offsets) {
    client.send(offsetCommit, 8, {
      groupId: "g",
      generationId: -1,
      memberId: "",
      groupInstanceId: null,
      topics: [
        { name, partitions: [{ partitionIndex: 0, committedOffset, committedMetadata: "" }] },
      ],
    });
  }
  client.send(offsetFetch, 7, {
    groupId: "g",
    topics: [{ name, partitionIndexes: [0] }],
    requireStable: false,
  });
  for (const _ of offsets) {
    assert.equal((await read(client, offsetCommit, 8)).topics[0]!.partitions[0]!.errorCode, 0);
  }
  const { topics } = await read(client, offsetFetch, 7);
  assert.equal(topics[0]!.partitions[0]!.committedOffset, offsets.at(-1));
});
