// A conformance case: one observable behaviour of a request, in a range of its versions.
import type { KafkaClient } from "../../../services/pulse/test/kafka/client.ts";
import type { KafkaStage } from "../../../services/pulse/test/kafka/stage.ts";
import {
  createTopics,
  metadata,
  produce,
} from "../../../services/pulse/src/kafka/protocol/messages/index.ts";
import { encodeBatch } from "../../../packages/log/src/batch/index.ts";

/** A connection to a broker, and names that no other case uses. */
export interface Scene {
  client: KafkaClient;
  stage: KafkaStage;
  version: number;
  /** A name that is not taken. */
  createName: (prefix?: string) => string;
  /** Makes a topic. */
  createTopic: (partitions?: number) => Promise<{ name: string; topicId: string }>;
  /** Appends values to partition 0, each with the timestamp 1 000 more than the one before; gives the base offset. */
  append(name: string, ...values: string[]): Promise<number>;
}

/** One case. It throws where the broker does not do what the title says. */
export interface Case {
  /** The request, as the protocol guide writes it. */
  request: string;
  /** First and last version in which it holds. */
  versions: readonly [number, number];
  title: string;
  run(scene: Scene): Promise<void>;
}

/** Writes cases of one request shortly. */
export function casesOf(
  request: string,
  ...cases: readonly [
    versions: readonly [number, number],
    title: string,
    run: (scene: Scene) => Promise<void>,
  ][]
): Case[] {
  return cases.map(([versions, title, run]) => ({ request, versions, title, run }));
}

/** The scene of one run. */
export function setScene(
  stage: KafkaStage,
  client: KafkaClient,
  version: number,
  createName: (prefix?: string) => string,
): Scene {
  return {
    client,
    stage,
    version,
    createName,
    async createTopic(partitions = 1) {
      const name = createName("topic");
      const topic = {
        name,
        numPartitions: partitions,
        replicationFactor: 1,
        assignments: [],
        configs: [],
      };
      const body = { topics: [topic], timeoutMs: 1000, validateOnly: false };
      const { topics } = await client.ask(createTopics, 7, body);
      return { name, topicId: topics[0]!.topicId };
    },
    async append(name, ...values) {
      await client.ask(metadata, 12, { topics: [{ name }] });
      const records = [
        encodeBatch(
          values.map((value, index) => ({
            key: null,
            value: Buffer.from(value),
            headers: [],
            timestamp: 1_000 * (index + 1),
          })),
        ),
      ];
      const { topics } = await client.ask(produce, 9, {
        acks: -1,
        timeoutMs: 1000,
        topics: [{ name, partitions: [{ index: 0, records }] }],
      });
      return topics[0]!.partitions[0]!.baseOffset;
    },
  };
}
