import assert from "node:assert/strict";
import { test } from "node:test";
import { encodeBatch } from "@platform/log/batch";
import { produce } from "../../src/kafka/protocol/messages/index.ts";
import { assemble, shortenOrTrap } from "../fixture/transforms.ts";
import { startPulseHere, type PulseHere } from "../fixture/pulse-here.ts";
import { KafkaClient } from "../kafka/client.ts";

async function send(
  client: KafkaClient,
  topic: string,
  values: readonly string[],
  sequence?: number,
) {
  const records = values.map((text) => ({
    key: Buffer.from("k"),
    value: Buffer.from(text),
    headers: [],
    timestamp: Date.now(),
  }));
  const producer = { producerId: 7, producerEpoch: 0, baseSequence: sequence ?? 0 };
  const batch = encodeBatch(records, sequence === undefined ? {} : producer);
  const { topics } = await client.ask(produce, 9, {
    transactionalId: null,
    acks: -1,
    timeoutMs: 10_000,
    topics: [{ name: topic, partitions: [{ index: 0, records: [batch] }] }],
  });
  return topics[0]!.partitions[0]!;
}

async function readTail(pulse: PulseHere, topic: string): Promise<[number, string][]> {
  const { body } = await pulse.get(`/api/v1/tail?topic=${topic}&n=100`);
  return body.messages.map(({ offset, payload }: { offset: number; payload: string }) => [
    offset,
    payload,
  ]);
}

test("a Kafka batch with a record that violates the schema is rejected as a whole, naming the record", async (t) => {
  const pulse = await startPulseHere(t);
  await pulse.post("/api/v1/topics/s/schema", { n: "number" });
  await using client = await KafkaClient.connect(pulse.kafkaPort);
  const refused = await send(client, "s", ['{"n":1}', '{"n":"one"}', '{"n":3}']);
  assert.equal(refused.errorCode, 87);
  const [fault] = refused.recordErrors;
  assert.equal(fault!.batchIndex, 1);
  assert.match(String(fault!.batchIndexErrorMessage), /n must be of type number/);
  assert.deepEqual(await readTail(pulse, "s"), []);
  assert.equal((await send(client, "s", ['{"n":1}'])).errorCode, 0);
  assert.deepEqual(await readTail(pulse, "s"), [[0, '{"n":1}']]);
});

test("records of Kafka batches are transformed in order, and a failing one becomes one dead letter", async (t) => {
  const pulse = await startPulseHere(t);
  await pulse.get("/api/v1/topics/t/transform", {
    method: "POST",
    body: new Uint8Array(assemble(shortenOrTrap)),
  });
  await using client = await KafkaClient.connect(pulse.kafkaPort);
  const answers = await Promise.all([
    send(client, "t", ["ax", "!b", "cx"], 0),
    send(client, "t", ["dx"], 3),
    send(client, "t", ["!e"], 4),
    send(client, "t", ["fx"], 5),
  ]);
  assert.deepEqual(
    answers.map(({ errorCode, baseOffset }) => [errorCode, baseOffset]),
    [
      [0, 0],
      [0, 3],
      [0, 4],
      [0, 5],
    ],
  );
  const again = await send(client, "t", ["ax", "!b", "cx"], 0);
  assert.deepEqual([again.errorCode, again.baseOffset], [0, 0], "sent twice, stored once");
  const stored = [
    [0, "a"],
    [2, "c"],
    [3, "d"],
    [5, "f"],
  ];
  assert.deepEqual(await readTail(pulse, "t"), stored);
  await pulse.kill();
  await pulse.start();
  assert.deepEqual(await readTail(pulse, "t"), stored);
  const { body } = await pulse.get("/api/v1/topics/t/dlq");
  assert.deepEqual(
    body.messages.map((letter: { original_payload: string }) => letter.original_payload),
    ["!b", "!e"],
  );
  assert.match(body.messages[0].failure_reason, /^transform failed: trap/);
});
