// The memory of answers to Fetch is used again: answers that wait for slow readers keep their bytes.
import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { encodeBatch, isBatchIntact, readBatchHeader } from "@platform/log/batch";
import { fetch, metadata, produce } from "../../src/kafka/protocol/messages/index.ts";
import { readResponse } from "../../src/kafka/protocol/frame.ts";
import type { KafkaClient } from "./client.ts";
import { KafkaStage } from "./stage.ts";

const BATCHES = 8;
/** Some of them are more than the system takes for a reader that rests; read from files. */
const BATCH_BYTES = 3_000_000;
const VERSION = 11;

async function fill(client: KafkaClient): Promise<void> {
  await client.ask(metadata, 12, { topics: [{ name: "t" }] });
  for (let at = 0; at < BATCHES; at += 1) {
    const value = Buffer.alloc(BATCH_BYTES, at + 1);
    const batch = encodeBatch([{ key: null, value, headers: [], timestamp: 1 }]);
    const topics = [{ name: "t", partitions: [{ index: 0, records: [batch] }] }];
    await client.ask(produce, 9, { acks: -1, timeoutMs: 30_000, topics });
  }
}

function send(client: KafkaClient, fetchOffset: number): void {
  const partitions = [{ partition: 0, fetchOffset, partitionMaxBytes: BATCH_BYTES }];
  client.send(fetch, VERSION, {
    maxWaitMs: 0,
    minBytes: 1,
    maxBytes: 4_000_000,
    isolationLevel: 0,
    topics: [{ name: "t", partitions }],
  });
}

async function check(client: KafkaClient, offset: number): Promise<void> {
  const frame = await client.readFrame();
  const { body } = readResponse(frame!, fetch, VERSION);
  const bytes = body.topics[0]!.partitions[0]!.records!;
  assert.ok(isBatchIntact(bytes, 0), `the batch at ${offset}`);
  assert.equal(readBatchHeader(bytes, 0)!.baseOffset, offset);
  assert.equal(bytes.at(-2), offset + 1);
}

test("answers keep their bytes until they are sent, while others are read into used memory", async () => {
  await using stage = await KafkaStage.open();
  await fill(await stage.connect());
  const clients = await Promise.all(Array.from({ length: 6 }, () => stage.connect()));
  const slow = clients.slice(0, 3);
  for (const client of slow) {
    client.socket.pause();
    for (let offset = 0; offset < BATCHES; offset += 1) send(client, offset);
  }
  await Promise.all(
    clients.slice(3).map(async (client, index) => {
      for (let times = 0; times < 4 * BATCHES; times += 1) {
        const offset = (times * (index + 3)) % BATCHES;
        send(client, offset);
        await check(client, offset);
      }
    }),
  );
  await Promise.all(
    slow.map(async (client) => {
      client.socket.resume();
      for (let offset = 0; offset < BATCHES; offset += 1) {
        await check(client, offset);
        await sleep(1);
      }
    }),
  );
});
