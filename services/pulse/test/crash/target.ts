// A broker as the crash tests use it: within this process, or behind HTTP.
import { toMessage } from "../../src/message/message.ts";
import type { Broker } from "../../src/broker.ts";
import { readRecords } from "../../src/store/read-records.ts";
import type { RunningPulse } from "../fixture/running-pulse.ts";

/** A message as a client publishes it. */
export interface Planned {
  topic: string;
  payload: string;
  key?: string;
  message_id?: string;
  producer_id?: string;
  sequence_number?: number;
  delay_ms?: number;
  ttl_ms?: number;
}

/** The broker's answer for a message. */
export interface Placed {
  isDuplicate: boolean;
  partition?: number;
  offset?: number;
}

/** A stored message. */
export interface Found {
  topic: string;
  partition: number;
  offset: number;
  payload: string;
}

/** The broker under test. */
export interface Target {
  /** Makes a topic of two partitions. */
  create: (topic: string) => Promise<void>;
  /** Publishes all or nothing; rejects when it is not known what became of it. */
  publish: (messages: readonly Planned[]) => Promise<Placed[]>;
  commit: (group: string, topic: string, offset: number) => Promise<void>;
  committed: (group: string, topic: string) => Promise<number | undefined>;
  readAll: (topic: string) => Promise<Found[]>;
  /** Payloads of the dead letters of a topic. */
  readDeadLetters: (topic: string) => Promise<string[]>;
}

/** A broker in this process. */
export function targetBroker(broker: Broker): Target {
  const { publisher, topics, offsets, store, deadLetterQueue } = broker;
  return {
    create: async (name) => void (await topics.create("", name, { partitions: 2 })),
    publish: async (messages) => {
      const inputs = messages.map((message) => ({
        topic: message.topic,
        payload: Buffer.from(message.payload),
        key: message.key === undefined ? undefined : Buffer.from(message.key),
        messageId: message.message_id,
        delayMs: message.delay_ms,
        ttlMs: message.ttl_ms,
        producer:
          message.producer_id === undefined
            ? undefined
            : { id: message.producer_id, sequence: message.sequence_number! },
      }));
      const outcomes = await publisher.publish("", inputs, { isRated: false });
      return outcomes.map((outcome) =>
        outcome.kind === "stored"
          ? { isDuplicate: false, partition: outcome.partition, offset: outcome.offset }
          : { isDuplicate: outcome.kind === "duplicate" },
      );
    },
    commit: (group, name, offset) =>
      offsets.commit("", group, [{ topic: topics.get("", name), partition: 0, offset }]),
    committed: async (group, name) => {
      const topic = topics.find("", name);
      return topic === undefined ? undefined : offsets.find("", group, topic, 0)?.offset;
    },
    readAll: async (name) => {
      const found: Found[] = [];
      const topic = topics.find("", name);
      for (const partition of topic?.stored.partitions ?? []) {
        for await (const record of readRecords(store, partition, partition.logStart)) {
          const { offset, payload } = toMessage(topic!, partition.index, record);
          found.push({
            topic: name,
            partition: partition.index,
            offset,
            payload: String(payload),
          });
        }
      }
      return found;
    },
    readDeadLetters: async (name) => {
      const topic = topics.find("", name);
      if (topic === undefined) return [];
      return (await deadLetterQueue.list(topic, 1_000)).messages.map(
        (letter) => letter.original_payload,
      );
    },
  };
}

/** A broker in a process of its own, by its HTTP face. */
export function targetProcess(pulse: RunningPulse): Target {
  const expect = async (answer: ReturnType<RunningPulse["get"]>, ...statuses: number[]) => {
    const { status, body } = await answer;
    if (!statuses.includes(status)) throw new Error(`${status}: ${JSON.stringify(body)}`);
    return body;
  };
  return {
    create: (name) => expect(pulse.post("/api/v1/topics", { name, partitions: 2 }), 201),
    publish: async (messages) => {
      const { results } = await expect(pulse.post("/api/v1/publish/batch", { messages }), 200);
      return results.map(
        (result: { duplicate?: boolean; partition?: number; offset?: number }) => ({
          isDuplicate: result.duplicate === true,
          ...(result.offset === undefined
            ? {}
            : { partition: result.partition, offset: result.offset }),
        }),
      );
    },
    commit: (group, topic, offset) =>
      expect(pulse.post("/api/v1/offsets", { group, topic, offset }), 200),
    committed: async (group, topic) => {
      const { offsets } = await expect(pulse.get(`/api/v1/offsets?group=${group}`), 200);
      return offsets.find((item: { topic: string }) => item.topic === topic)?.offset;
    },
    readAll: async (topic) => {
      const body = await expect(pulse.get(`/api/v1/tail?topic=${topic}&n=1000`), 200, 404);
      return body.messages ?? [];
    },
    readDeadLetters: async (topic) => {
      const body = await expect(pulse.get(`/api/v1/topics/${topic}/dlq?limit=1000`), 200, 404);
      return (body.messages ?? []).map(
        (letter: { original_payload: string }) => letter.original_payload,
      );
    },
  };
}
