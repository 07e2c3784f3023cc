// Sequence numbers of producers: whatever fails, every number is stored once and in order when its producer has sent it
// again.
import assert from "node:assert/strict";
import { test, type TestContext } from "node:test";
import { createIdSource } from "@platform/kernel/ids";
import { systemClock } from "@platform/kernel/time";
import { openLog } from "@platform/log";
import { Random, SimDisk } from "@platform/log/simulation";
import { GuestPool } from "@platform/wasm";
import { openBroker } from "../../src/broker.ts";
import { readRecords } from "../../src/store/read-records.ts";

const PRODUCERS = ["p", "q", "r"];
const NUMBERS = 12;
const RUNS = 8;

const limits = {
  topics_per_tenant_max: 10,
  partitions_max: 10,
  partitions_default: 1,
  backpressure_limit: 0,
  publish_rate: 0,
  publish_capacity: 1,
  message_bytes_max: 100_000,
  message_ids_max: 10_000,
  producers_max: 1_000,
  max_deliveries: 10,
  nack_backoff_ms: 1_000,
  nack_backoff_max_ms: 60_000,
  followed_topics_per_user_max: 100,
  followed_topics_per_tenant_max: 100,
  followed_topics_max: 100,
};

async function open(t: TestContext, seed: number) {
  const disk = new SimDisk(new Random(seed));
  const journal = await openLog({ disk });
  const guests = new GuestPool();
  const broker = await openBroker({
    journal,
    guests,
    limits,
    clock: systemClock,
    idSource: createIdSource(),
    onTransform: () => undefined,
    onError: () => undefined,
  });
  t.after(async () => {
    await broker.close();
    await journal.close();
    await guests.close();
  });
  return { disk, broker };
}

type Broker = Awaited<ReturnType<typeof open>>["broker"];

function toInput(producer: string, sequence: number, topic = "a") {
  const payload = Buffer.from(`${producer} ${sequence}`);
  return { topic, payload, producer: { id: producer, sequence } };
}

async function readStored({ topics, store }: Broker, names: readonly string[]): Promise<string[]> {
  const texts: string[] = [];
  for (const name of names) {
    const partition = topics.find("", name)?.stored.partitions[0];
    if (partition === undefined) continue;
    for await (const { value } of readRecords(store, partition, 0)) texts.push(String(value));
  }
  return texts;
}

test("a refused batch can be sent again, as often as it is refused", async (t) => {
  const { disk, broker } = await open(t, 1);
  const batch = [1, 2, 3].map((number) => ({ ...toInput("p", number), messageId: `m-${number}` }));
  const publish = () => broker.publisher.publish("", batch, { isRated: false });
  for (let count = 0; count < 2; count++) {
    disk.capacity = 0;
    await assert.rejects(publish(), { code: "insufficient_storage" });
    disk.capacity = Number.POSITIVE_INFINITY;
  }
  assert.deepEqual(
    (await publish()).map(({ kind }) => kind),
    ["stored", "stored", "stored"],
  );
  assert.deepEqual(
    (await publish()).map(({ kind }) => kind),
    ["duplicate", "duplicate", "duplicate"],
  );
  assert.deepEqual(await readStored(broker, ["a"]), ["p 1", "p 2", "p 3"]);
});

test("a later number of a producer is not stored if the one before it fails", async (t) => {
  const { disk, broker } = await open(t, 2);
  const publish = (number: number) =>
    broker.publisher.publish("", [toInput("p", number)], { isRated: false });
  await publish(1);
  disk.capacity = 0;
  const second = publish(2);
  const third = publish(3);
  await assert.rejects(second, { code: "insufficient_storage" });
  disk.capacity = Number.POSITIVE_INFINITY;
  await assert.rejects(third);
  for (const number of [2, 3]) assert.equal((await publish(number))[0]!.kind, "stored");
  assert.deepEqual(await readStored(broker, ["a"]), ["p 1", "p 2", "p 3"]);
});

test(`batches of interleaved producers and failures at any step: ${RUNS} runs`, async (t) => {
  const topics = ["a", "b"];
  for (let seed = 1; seed <= RUNS; seed++) {
    const { disk, broker } = await open(t, seed);
    for (const name of topics) await broker.topics.ensure("", name);
    const random = new Random(seed);
    const left = new Map(
      PRODUCERS.map((producer) => [producer, Array.from({ length: NUMBERS }, (_, at) => at + 1)]),
    );
    /** Sends the lowest numbers that were not acknowledged, in several calls at the same time. */
    const round = async (mayFail: boolean): Promise<void> => {
      const sending = new Map(Array.from(left, ([producer, numbers]) => [producer, [...numbers]]));
      const calls: { producer: string; sequence: number }[][] = [];
      for (let call = 0; call < 3; call++) {
        const batch: { producer: string; sequence: number }[] = [];
        for (let count = random.below(4); count >= 0; count--) {
          const producer = PRODUCERS[random.below(PRODUCERS.length)]!;
          const sequence = sending.get(producer)!.shift();
          if (sequence !== undefined) batch.push({ producer, sequence });
        }
        calls.push(batch);
      }
      if (mayFail && random.below(3) === 0) disk.capacity = 0;
      const outcomes = calls.map(async (batch) => {
        const inputs = batch.map(({ producer, sequence }) =>
          toInput(producer, sequence, topics[sequence % topics.length]),
        );
        await broker.publisher.publish("", inputs, { isRated: false });
        for (const { producer, sequence } of batch) {
          left.set(
            producer,
            left.get(producer)!.filter((number) => number !== sequence),
          );
        }
      });
      await Promise.resolve();
      if (mayFail && random.below(2) === 0) await new Promise(setImmediate);
      disk.capacity = Number.POSITIVE_INFINITY;
      await Promise.allSettled(outcomes);
    };
    for (let count = 0; count < 20; count++) await round(true);
    while (left.values().some((numbers) => numbers.length > 0)) await round(false);
    const stored = await readStored(broker, topics);
    const expected = PRODUCERS.flatMap((producer) =>
      Array.from({ length: NUMBERS }, (_, index) => `${producer} ${index + 1}`),
    );
    assert.deepEqual(stored.toSorted(), expected.toSorted(), `seed ${seed}`);
  }
});
