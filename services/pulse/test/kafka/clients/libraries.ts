// Kafka clients that are npm packages.
import { readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import * as platformatic from "@platformatic/kafka";
import { CompressionTypes, Kafka, logLevel } from "kafkajs";
import type { Codec, RealKafkaClient } from "./client.ts";

const waitMs = 30_000;

function readPackageVersion(name: string): string {
  const url = new URL(`../../../../../node_modules/${name}/package.json`, import.meta.url);
  return (JSON.parse(readFileSync(url, "utf8")) as { version: string }).version;
}

/** Waits until as many values are there as wanted, and a little longer for what may not come. */
async function collect(values: readonly string[], count: number): Promise<void> {
  const endMs = performance.now() + waitMs;
  while (values.length < count && performance.now() < endMs) await sleep(20);
  await sleep(200);
}

const kafkajs: RealKafkaClient = {
  name: "kafkajs",
  codecs: ["none", "gzip"],
  readVersion: () => readPackageVersion("kafkajs"),
  async produce(servers, topic, codec, count, prefix) {
    const kafka = new Kafka({ brokers: [servers], logLevel: logLevel.NOTHING });
    const producer = kafka.producer({ idempotent: true });
    await producer.connect();
    await producer.send({
      topic,
      acks: -1,
      compression: codec === "gzip" ? CompressionTypes.GZIP : CompressionTypes.None,
      messages: Array.from({ length: count }, (_, number) => ({
        key: `k${number}`,
        value: `${prefix}${number}`,
      })),
    });
    await producer.disconnect();
  },
  async consume(servers, topic, group, count) {
    const kafka = new Kafka({ brokers: [servers], logLevel: logLevel.NOTHING });
    const consumer = kafka.consumer({
      groupId: group,
      sessionTimeout: 10_000,
      maxWaitTimeInMs: 300,
    });
    const values: string[] = [];
    await consumer.connect();
    await consumer.subscribe({ topics: [topic], fromBeginning: true });
    await consumer.run({
      eachMessage: async ({ message }) => void values.push(message.value!.toString()),
    });
    await collect(values, count);
    await consumer.disconnect();
    return values;
  },
};

const platformaticKafka: RealKafkaClient = {
  name: "@platformatic/kafka",
  codecs: ["none", "gzip", "snappy", "lz4", "zstd"],
  readVersion: () => readPackageVersion("@platformatic/kafka"),
  async produce(servers, topic, codec: Codec, count, prefix) {
    const producer = new platformatic.Producer({
      clientId: "test",
      bootstrapBrokers: [servers],
      serializers: platformatic.stringSerializers,
      autocreateTopics: true,
    });
    await producer.send({
      acks: platformatic.ProduceAcks.ALL,
      compression: codec,
      messages: Array.from({ length: count }, (_, number) => ({
        topic,
        key: `k${number}`,
        value: `${prefix}${number}`,
      })),
    });
    await producer.close();
  },
  async consume(servers, topic, group, count) {
    const consumer = new platformatic.Consumer({
      clientId: "test",
      groupId: group,
      bootstrapBrokers: [servers],
      deserializers: platformatic.stringDeserializers,
    });
    const stream = await consumer.consume({
      topics: [topic],
      mode: platformatic.MessagesStreamModes.COMMITTED,
      fallbackMode: platformatic.MessagesStreamFallbackModes.EARLIEST,
      autocommit: 50,
      sessionTimeout: 10_000,
    });
    const values: string[] = [];
    stream.on("data", ({ value }: { value: string }) => void values.push(value));
    await collect(values, count);
    await stream.close();
    await consumer.close();
    return values;
  },
};

/** The libraries. */
export const libraries: readonly RealKafkaClient[] = [kafkajs, platformaticKafka];
