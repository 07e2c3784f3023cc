// Idempotent producers of real clients while the broker is killed and started again: what was acknowledged is there
// once, in order. PLATFORM_KAFKA_KILLS=100 makes it long.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { after, before, describe, test } from "node:test";
import { findFreePort } from "@platform/kernel/testing";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import * as platformatic from "@platformatic/kafka";
import { Kafka, logLevel } from "kafkajs";
import { startPulseProcess, type PulseProcess } from "../../fixture/pulse-process.ts";
import { programs } from "./programs.ts";

const kills = Number(process.env["PLATFORM_KAFKA_KILLS"] ?? 3);
// The client's own default gives up on connections after about 9 s, which is too early on a busy machine.
const RETRY = { retries: 100, initialRetryTime: 50, maxRetryTime: 500 };
const patienceMs = 60_000;
const confluentScript = fileURLToPath(new URL("confluent-kafka.py", import.meta.url));

/** Writes numbers from 0 on to partition 0 of a topic until it is stopped; gives those that were acknowledged. */
interface Stream {
  stop(): Promise<number[]>;
}

let pulse: PulseProcess;
let servers: string;
const endings: (() => unknown)[] = [];

before(async () => {
  // The same port after each start, as clients know it by that.
  const port = await findFreePort();
  servers = `127.0.0.1:${port}`;
  pulse = await startPulseProcess(
    { after: (done) => endings.push(done) },
    { PLATFORM_PULSE_KAFKA_ADDR: servers },
  );
});
after(async () => {
  for (const done of endings) await done();
});

function startConfluent(topic: string): Stream {
  const child = spawn("/usr/bin/python3", [confluentScript, "stream", servers, topic], {
    stdio: ["pipe", "pipe", "inherit"],
  });
  let output = "";
  child.stdout.on("data", (bytes) => (output += String(bytes)));
  const closed = once(child, "close");
  return {
    async stop() {
      child.stdin.end();
      await closed;
      const { acknowledged, failed, left } = JSON.parse(output) as {
        acknowledged: number[];
        failed: string[];
        left: number;
      };
      assert.deepEqual([failed, left], [[], 0]);
      return acknowledged;
    },
  };
}

/** Sends tens of numbers one after another; the client itself tries again. */
function startLoop(send: (values: string[]) => Promise<unknown>, close: () => unknown): Stream {
  const acknowledged: number[] = [];
  const stopping = new AbortController();
  const done = (async () => {
    for (let next = 0; !stopping.signal.aborted; next += 10) {
      const numbers = Array.from({ length: 10 }, (_, at) => next + at);
      await send(numbers.map(String));
      acknowledged.push(...numbers);
      await sleep(5);
    }
    await close();
  })();
  // Looked at when it is stopped.
  done.catch(() => undefined);
  return {
    async stop() {
      stopping.abort();
      await done;
      return acknowledged;
    },
  };
}

async function startKafkajs(topic: string): Promise<Stream> {
  const kafka = new Kafka({ brokers: [servers], logLevel: logLevel.NOTHING, retry: RETRY });
  const producer = kafka.producer({ idempotent: true, retry: RETRY });
  await producer.connect();
  return startLoop(
    (values) => producer.send({ topic, messages: values.map((value) => ({ value })) }),
    () => producer.disconnect(),
  );
}

function startPlatformatic(topic: string): Promise<Stream> {
  const producer = new platformatic.Producer({
    clientId: "kill",
    bootstrapBrokers: [servers],
    serializers: platformatic.stringSerializers,
    idempotent: true,
    retries: 200,
    retryDelay: 100,
  });
  return Promise.resolve(
    startLoop(
      (values) =>
        producer.send({
          acks: platformatic.ProduceAcks.ALL,
          messages: values.map((value) => ({ topic, value })),
        }),
      () => producer.close(),
    ),
  );
}

const streams: Record<string, (topic: string) => Stream | Promise<Stream>> = {
  "confluent-kafka": startConfluent,
  kafkajs: startKafkajs,
  "@platformatic/kafka": startPlatformatic,
};

describe(`while the broker is killed ${kills} times`, () => {
  const topicOf = (client: string) => client.replaceAll(/[^a-z]/g, "-");
  const acknowledged = new Map<string, number[]>();
  const failures = new Map<string, unknown>();
  const consumed = new Map<string, Set<number>>();

  before(async () => {
    const running = new Map<string, Stream>();
    for (const [client, start] of Object.entries(streams)) {
      if (isMissing(client)) continue;
      await pulse.post("/api/v1/topics", { name: topicOf(client) });
      consumed.set(topicOf(client), new Set());
      running.set(client, await start(topicOf(client)));
    }
    const consumer = await startConsumer(consumed);
    for (let kill = 0; kill < kills; kill++) {
      await sleep(800);
      await pulse.kill();
      await sleep(50);
      await pulse.start();
    }
    await sleep(800);
    for (const [client, stream] of running) {
      try {
        acknowledged.set(client, await stream.stop());
      } catch (error) {
        failures.set(client, error);
      }
    }
    await consumer.stop(() =>
      [...acknowledged].every(
        ([client, numbers]) => consumed.get(topicOf(client))!.size >= numbers.length,
      ),
    );
  });

  for (const client of Object.keys(streams)) {
    test(`what ${client} stored is there once and in order`, async (t) => {
      if (isMissing(client)) {
        assert.notEqual(process.env["PLATFORM_TEST_PEERS"], "required");
        t.skip("Debian package python3-confluent-kafka is not installed");
        return;
      }
      assert.equal(failures.get(client), undefined);
      const numbers = acknowledged.get(client)!;
      assert.ok(numbers.length > 0);
      const stored = await readStored(topicOf(client));
      t.diagnostic(`${numbers.length} acknowledged, ${stored.length} stored`);
      // Messages in flight when it was stopped may exist as well, after all others.
      assert.deepEqual(
        stored,
        stored.map((_, index) => index),
      );
      assert.ok(stored.length > Math.max(...numbers));
    });

    test(`a group that read all the time has got every one of ${client}`, (t) => {
      if (isMissing(client)) return t.skip("Debian package python3-confluent-kafka is missing");
      const seen = consumed.get(topicOf(client))!;
      const missing = (acknowledged.get(client) ?? []).filter((number) => !seen.has(number));
      assert.deepEqual(missing, []);
    });
  }
});

function isMissing(client: string): boolean {
  const program = programs.find(({ name }) => name === client);
  return program !== undefined && program.readVersion() === undefined;
}

/** A kafkajs consumer of a group that goes on over all kills. */
async function startConsumer(consumed: ReadonlyMap<string, Set<number>>) {
  const kafka = new Kafka({ brokers: [servers], logLevel: logLevel.NOTHING, retry: RETRY });
  const consumer = kafka.consumer({
    groupId: "readers",
    sessionTimeout: 6_000,
    maxWaitTimeInMs: 200,
    retry: RETRY,
  });
  await consumer.connect();
  await consumer.subscribe({ topics: [...consumed.keys()], fromBeginning: true });
  await consumer.run({
    eachMessage: async ({ topic, message }) =>
      void consumed.get(topic)!.add(Number(String(message.value))),
  });
  return {
    async stop(isDone: () => boolean): Promise<void> {
      const endMs = performance.now() + patienceMs;
      while (!isDone() && performance.now() < endMs) await sleep(50);
      await consumer.disconnect();
    },
  };
}

async function readStored(topic: string): Promise<number[]> {
  const kafka = new Kafka({ brokers: [servers], logLevel: logLevel.NOTHING });
  const admin = kafka.admin();
  await admin.connect();
  const [end] = await admin.fetchTopicOffsets(topic);
  await admin.disconnect();
  const consumer = kafka.consumer({ groupId: `judge of ${topic}`, maxWaitTimeInMs: 100 });
  const stored: number[] = [];
  const done = Promise.withResolvers<void>();
  await consumer.connect();
  await consumer.subscribe({ topics: [topic], fromBeginning: true });
  await consumer.run({
    eachMessage: async ({ message }) => {
      stored.push(Number(String(message.value)));
      if (Number(message.offset) === Number(end!.high) - 1) done.resolve();
    },
  });
  await Promise.race([done.promise, sleep(patienceMs, undefined, { ref: false })]);
  await consumer.disconnect();
  return stored;
}
