// More cases of Fetch and ListOffsets: limits, waiting, sessions, isolation.
import assert from "node:assert/strict";
import { readBatchHeader } from "@platform/log/batch";
import { ERROR_CODES } from "../../../services/pulse/src/kafka/protocol/error-codes.ts";
import {
  deleteRecords,
  fetch,
  listOffsets,
} from "../../../services/pulse/src/kafka/protocol/messages/index.ts";
import { casesOf, type Case, type Scene } from "./case.ts";

interface Topic {
  name: string;
  topicId: string;
}

/** Limits of a Fetch. */
interface Bounds {
  maxBytes?: number;
  partitionMaxBytes?: number;
  minBytes?: number;
  maxWaitMs?: number;
  isolationLevel?: number;
  sessionId?: number;
  sessionEpoch?: number;
}

function requestOf(topics: readonly (Topic & { offset?: number })[], bounds: Bounds) {
  const { partitionMaxBytes = 1_000_000, ...rest } = bounds;
  return {
    maxWaitMs: 0,
    minBytes: 1,
    maxBytes: 1_000_000,
    isolationLevel: 0,
    ...rest,
    topics: topics.map(({ name, topicId, offset = 0 }) => ({
      name,
      topicId,
      partitions: [{ partition: 0, fetchOffset: offset, partitionMaxBytes }],
    })),
  };
}

async function read(
  { client, version }: Scene,
  topics: readonly (Topic & { offset?: number })[],
  bounds: Bounds = {},
) {
  const answer = await client.ask(fetch, version, requestOf(topics, bounds));
  return { ...answer, found: answer.topics.map(({ partitions }) => partitions[0]!) };
}

async function list(
  { client, version }: Scene,
  name: string,
  timestamp: number,
  isolationLevel = 0,
) {
  const partitions = [{ partitionIndex: 0, timestamp }];
  const body = { replicaId: -1, isolationLevel, topics: [{ name, partitions }] };
  return (await client.ask(listOffsets, version, body)).topics[0]!.partitions[0]!;
}

export const readingCases: readonly Case[] = [
  ...casesOf(
    "Fetch",
    [
      [4, 16],
      "gives a first batch that is larger than every bound whole, and nothing else",
      async (scene) => {
        const [one, other] = [await scene.createTopic(), await scene.createTopic()];
        for (const { name } of [one, other]) await scene.append(name, "x".repeat(5_000));
        const { found } = await read(scene, [one, other], { maxBytes: 100, partitionMaxBytes: 50 });
        assert.equal(found[0]!.records!.length, readBatchHeader(found[0]!.records!)!.bytes);
        assert.equal(found[1]!.records?.length ?? 0, 0);
        assert.equal(found[1]!.errorCode, 0);
      },
    ],
    [
      [4, 16],
      "keeps to the bound of a partition, and of the answer, in whole batches",
      async (scene) => {
        const [one, other] = [await scene.createTopic(), await scene.createTopic()];
        for (const { name } of [one, other]) {
          for (let index = 0; index < 4; index++) await scene.append(name, "x".repeat(1_000));
        }
        const of = (found: { records: Buffer | null }) => found.records?.length ?? 0;
        const byPartition = await read(scene, [one, other], { partitionMaxBytes: 2_500 });
        for (const found of byPartition.found) assert.ok(of(found) > 1_000 && of(found) <= 2_500);
        const byAnswer = await read(scene, [one, other], { maxBytes: 5_500 });
        const total = of(byAnswer.found[0]!) + of(byAnswer.found[1]!);
        assert.ok(of(byAnswer.found[0]!) > 4_000 && total <= 5_500, `${total} bytes`);
      },
    ],
    [
      [4, 16],
      "waits for the least bytes, and no longer than it may",
      async (scene) => {
        const topic = await scene.createTopic();
        const client = await scene.stage.connect();
        const waiting = read({ ...scene, client }, [topic], { maxWaitMs: 60_000 });
        await scene.append(topic.name, "late");
        assert.ok((await waiting).found[0]!.records!.length > 0);
        const small = await read(scene, [topic], { minBytes: 1_000_000, maxWaitMs: 20 });
        assert.equal(small.found[0]!.errorCode, 0);
        const none = await read(scene, [{ ...topic, offset: 1 }], { maxWaitMs: 20 });
        assert.equal(none.found[0]!.records?.length ?? 0, 0);
      },
    ],
    [
      [4, 16],
      "tells an error at once, whatever it may wait for",
      async (scene) => {
        const [topic, other] = [await scene.createTopic(), await scene.createTopic()];
        const wished = [topic, { ...other, offset: 99 }];
        const { found } = await read(scene, wished, { maxWaitMs: 60_000, minBytes: 1_000 });
        assert.deepEqual(
          found.map(({ errorCode }) => errorCode),
          [0, ERROR_CODES.offsetOutOfRange],
        );
      },
    ],
    [
      [4, 16],
      "gives the same in both isolation levels: all that is durable is stable, nothing is aborted",
      async (scene) => {
        const topic = await scene.createTopic();
        await scene.append(topic.name, "a", "b");
        for (const isolationLevel of [0, 1]) {
          const { found, throttleTimeMs } = await read(scene, [topic], { isolationLevel });
          const { highWatermark, lastStableOffset, abortedTransactions } = found[0]!;
          assert.deepEqual([highWatermark, lastStableOffset, throttleTimeMs], [2, 2, 0]);
          assert.equal(abortedTransactions?.length ?? 0, 0);
        }
      },
    ],
    [
      [5, 16],
      "tells where the partition begins",
      async (scene) => {
        const topic = await scene.createTopic();
        await scene.append(topic.name, "a", "b", "c");
        const partitions = [{ partitionIndex: 0, offset: 2 }];
        const body = { topics: [{ name: topic.name, partitions }], timeoutMs: 1000 };
        await scene.client.ask(deleteRecords, 2, body);
        const { found } = await read(scene, [{ ...topic, offset: 2 }]);
        assert.equal(found[0]!.logStartOffset, 2);
        const before = await read(scene, [{ ...topic, offset: 1 }]);
        assert.equal(before.found[0]!.errorCode, ERROR_CODES.offsetOutOfRange);
        assert.equal(before.found[0]!.logStartOffset, 2);
      },
    ],
    [
      [7, 16],
      "makes no session for a client that would like one: its id stays 0",
      async (scene) => {
        const topic = await scene.createTopic();
        await scene.append(topic.name, "a");
        for (const sessionEpoch of [0, -1]) {
          const answer = await read(scene, [topic], { sessionId: 0, sessionEpoch });
          assert.deepEqual([answer.errorCode, answer.sessionId], [0, 0]);
          assert.ok(answer.found[0]!.records!.length > 0);
        }
      },
    ],
  ),
  ...casesOf(
    "ListOffsets",
    [
      [1, 8],
      "UNSUPPORTED_VERSION for times whose meaning the version does not have yet, or nobody knows",
      async (scene) => {
        const { name } = await scene.createTopic();
        await scene.append(name, "a");
        const { version } = scene;
        for (const [timestamp, from] of [
          [-3, 7],
          [-4, 8],
          [-5, 99],
          [-99, 99],
        ] as const) {
          const expected = version >= from ? ERROR_CODES.none : ERROR_CODES.unsupportedVersion;
          assert.equal((await list(scene, name, timestamp)).errorCode, expected, `${timestamp}`);
        }
      },
    ],
    [
      [8, 8],
      "gives the beginning for what is on the broker's own disk (-4)",
      async (scene) => {
        const { name } = await scene.createTopic();
        await scene.append(name, "a");
        assert.equal((await list(scene, name, -4)).offset, 0);
      },
    ],
    [
      [2, 8],
      "gives the same end in both isolation levels",
      async (scene) => {
        const { name } = await scene.createTopic();
        await scene.append(name, "a", "b");
        for (const level of [0, 1]) assert.equal((await list(scene, name, -1, level)).offset, 2);
      },
    ],
    [
      [1, 8],
      "gives nothing by time in a partition that is empty",
      async (scene) => {
        const { name } = await scene.createTopic();
        const { errorCode, offset, timestamp } = await list(scene, name, 0);
        assert.deepEqual([errorCode, offset, timestamp], [0, -1, -1]);
      },
    ],
  ),
];
