// A conformance case: one observable behaviour of a request, in a range of its versions.
import type { KafkaClient } from "../../../services/pulse/test/kafka/client.ts";
import type { KafkaStage } from "../../../services/pulse/test/kafka/stage.ts";
import {
  createTopics,
  metadata,
  produce,
} from "../../../services/pulse/src/kafka/protocol/messages/index.ts";
import { encodeBatch } from "@platform/log/batch";

/** A connection to the server, and names that no other case uses. */
export interface Scene {
  client: KafkaClient;
  stage: KafkaStage;
  version: number;
  /** Returns an unused name. */
  createName: (prefix?: string) => string;
  /** Creates a topic. */
  createTopic: (partitions?: number) => Promise<{ name: string; topicId: string }>;
  /** Appends values to partition 0, with timestamps at intervals of 1 000; returns the base offset. */
  append(name: string, ...values: string[]): Promise<number>;
}

/** A case. It throws if the server does not behave as the title says. */
export interface Case {
  /** Name of the request, as in the protocol guide. */
  request: string;
  /** First and last version to which it applies. */
  versions: readonly [number, number];
  title: string;
  run(scene: Scene): Promise<void>;
}

/** Shorthand for the cases of a request. */
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

/** Creates the scene of a run. */
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
