// ListOffsets, OffsetForLeaderEpoch, DeleteRecords.
import type { PartitionView } from "@platform/log";
import { toAnswer } from "../answer.ts";
import { epochAt, findTopic, leaderEpochOf, type KafkaBroker } from "../broker.ts";
import { ERROR_CODES, type ErrorCode } from "../protocol/error-codes.ts";
import {
  deleteRecords,
  listOffsets,
  LIST_OFFSETS_TIMESTAMPS,
  offsetForLeaderEpoch,
} from "../protocol/messages/index.ts";
import type { Read } from "../protocol/schema.ts";
import { requireRight } from "../server/access.ts";
import { route, type Route } from "../server/route.ts";
import { principalOf } from "../server/session.ts";

/** Creates the routes of offsets. */
export function createOffsetRoutes(broker: KafkaBroker): Route[] {
  return [
    route(
      listOffsets,
      requireRight("subscribe", refuseListing, async ({ topics }, { session, version }) => {
        const principal = principalOf(session);
        const answers = topics.map(async ({ name, partitions }) => {
          const stored = findTopic(broker.topics, principal, "subscribe", name)?.stored;
          const found = partitions.map((asked) =>
            listOne(broker, stored?.partitions[asked.partitionIndex], asked, version),
          );
          return { name, partitions: await Promise.all(found) };
        });
        return { topics: await Promise.all(answers) };
      }),
    ),

    route(
      offsetForLeaderEpoch,
      requireRight("subscribe", refuseEpochs, ({ topics }, { session }) => {
        const principal = principalOf(session);
        const answers = topics.map(({ name, partitions }) => {
          const stored = findTopic(broker.topics, principal, "subscribe", name)?.stored;
          return {
            name,
            partitions: partitions.map((asked) => ({
              partition: asked.partition,
              ...findEpochEnd(stored?.partitions[asked.partition], asked),
            })),
          };
        });
        return { throttleTimeMs: 0, topics: answers };
      }),
    ),

    route(
      deleteRecords,
      requireRight("manage", refuseDeletion, async ({ topics }, { session }) => {
        const principal = principalOf(session);
        const answers = topics.map(async ({ name, partitions }) => {
          const stored = findTopic(broker.topics, principal, "manage", name)?.stored;
          const deleted = partitions.map(async ({ partitionIndex, offset }) => ({
            partitionIndex,
            ...(await deleteBefore(broker, stored?.partitions[partitionIndex], offset)),
          }));
          return { name, partitions: await Promise.all(deleted) };
        });
        return { throttleTimeMs: 0, topics: await Promise.all(answers) };
      }),
    ),
  ];
}

function refuseListing({ topics }: Read<typeof listOffsets.request>) {
  return {
    topics: topics.map(({ name, partitions }) => ({
      name,
      partitions: partitions.map(({ partitionIndex }) => ({
        partitionIndex,
        errorCode: ERROR_CODES.topicAuthorizationFailed,
        ...NOTHING,
      })),
    })),
  };
}

function refuseEpochs({ topics }: Read<typeof offsetForLeaderEpoch.request>) {
  return {
    throttleTimeMs: 0,
    topics: topics.map(({ name, partitions }) => ({
      name,
      partitions: partitions.map(({ partition }) => ({
        partition,
        errorCode: ERROR_CODES.topicAuthorizationFailed,
        leaderEpoch: -1,
        endOffset: -1,
      })),
    })),
  };
}

function refuseDeletion({ topics }: Read<typeof deleteRecords.request>) {
  return {
    throttleTimeMs: 0,
    topics: topics.map(({ name, partitions }) => ({
      name,
      partitions: partitions.map(({ partitionIndex }) => ({
        partitionIndex,
        lowWatermark: -1,
        errorCode: ERROR_CODES.topicAuthorizationFailed,
      })),
    })),
  };
}

interface ListedOffset {
  errorCode: ErrorCode;
  timestamp: number;
  offset: number;
  leaderEpoch: number;
}

/** First version of each special timestamp. */
const TIMESTAMP_VERSIONS: ReadonlyMap<number, number> = new Map([
  [LIST_OFFSETS_TIMESTAMPS.latest, 0],
  [LIST_OFFSETS_TIMESTAMPS.earliest, 0],
  [LIST_OFFSETS_TIMESTAMPS.maxTimestamp, 7],
  [LIST_OFFSETS_TIMESTAMPS.earliestLocal, 8],
]);

const NOTHING = { timestamp: -1, offset: -1, leaderEpoch: -1 };

async function listOne(
  broker: KafkaBroker,
  view: PartitionView | undefined,
  asked: { partitionIndex: number; currentLeaderEpoch: number; timestamp: number },
  version: number,
) {
  const { partitionIndex, timestamp } = asked;
  const errorCode = checkEpoch(view, asked.currentLeaderEpoch);
  if (view === undefined || errorCode !== ERROR_CODES.none) {
    return { partitionIndex, errorCode, ...NOTHING };
  }
  if (timestamp < 0 && version < (TIMESTAMP_VERSIONS.get(timestamp) ?? Number.POSITIVE_INFINITY)) {
    return { partitionIndex, errorCode: ERROR_CODES.unsupportedVersion, ...NOTHING };
  }
  try {
    return { partitionIndex, ...(await findOffset(broker, view, timestamp)) };
  } catch (error) {
    return { partitionIndex, errorCode: toAnswer(error).errorCode, ...NOTHING };
  }
}

async function findOffset(
  broker: KafkaBroker,
  view: PartitionView,
  timestamp: number,
): Promise<ListedOffset> {
  const errorCode = ERROR_CODES.none;
  switch (timestamp) {
    case LIST_OFFSETS_TIMESTAMPS.latest: {
      const leaderEpoch = leaderEpochOf(view);
      return { errorCode, timestamp: -1, offset: view.durableEnd, leaderEpoch };
    }
    case LIST_OFFSETS_TIMESTAMPS.earliest:
    case LIST_OFFSETS_TIMESTAMPS.earliestLocal: {
      const leaderEpoch = epochAt(view, view.logStart);
      return { errorCode, timestamp: -1, offset: view.logStart, leaderEpoch };
    }
    case LIST_OFFSETS_TIMESTAMPS.maxTimestamp: {
      const found = await findLatestTime(broker, view);
      return { errorCode, ...(found ?? NOTHING) };
    }
    default: {
      const found = await broker.store.log.findTimestamp(view, timestamp);
      if (found === undefined) return { errorCode, ...NOTHING };
      return { errorCode, ...found, leaderEpoch: epochAt(view, found.offset) };
    }
  }
}

/** Finds the record with the largest timestamp by bisection, since the log finds the first record at or after a time. */
async function findLatestTime(broker: KafkaBroker, view: PartitionView) {
  let best = await broker.store.log.findTimestamp(view, 0);
  if (best === undefined) return undefined;
  let tooLate = Number.MAX_SAFE_INTEGER;
  while (tooLate - best.timestamp > 1) {
    const middle: number = best.timestamp + Math.ceil((tooLate - best.timestamp) / 2);
    const found = await broker.store.log.findTimestamp(view, middle);
    if (found === undefined) tooLate = middle;
    else best = found;
  }
  return { ...best, leaderEpoch: epochAt(view, best.offset) };
}

/** Checks the client's leader epoch; -1 means that it sent none (KIP-320). */
function checkEpoch(view: PartitionView | undefined, currentLeaderEpoch: number): ErrorCode {
  if (view === undefined) return ERROR_CODES.unknownTopicOrPartition;
  const epoch = leaderEpochOf(view);
  if (currentLeaderEpoch < 0 || currentLeaderEpoch === epoch) return ERROR_CODES.none;
  return currentLeaderEpoch < epoch
    ? ERROR_CODES.fencedLeaderEpoch
    : ERROR_CODES.unknownLeaderEpoch;
}

/** The end of the last epoch up to the requested one. */
function findEpochEnd(
  view: PartitionView | undefined,
  asked: { currentLeaderEpoch: number; leaderEpoch: number },
) {
  const none = { leaderEpoch: -1, endOffset: -1 };
  const errorCode = checkEpoch(view, asked.currentLeaderEpoch);
  if (view === undefined || errorCode !== ERROR_CODES.none) return { errorCode, ...none };
  const epochs = view.epochs.length > 0 ? view.epochs : [{ epoch: 0, startOffset: 0 }];
  const index = epochs.findLastIndex(({ epoch }) => epoch <= asked.leaderEpoch);
  if (index < 0 || asked.leaderEpoch > leaderEpochOf(view)) return { errorCode, ...none };
  const endOffset = epochs[index + 1]?.startOffset ?? view.durableEnd;
  return { errorCode, leaderEpoch: epochs[index]!.epoch, endOffset };
}

async function deleteBefore(broker: KafkaBroker, view: PartitionView | undefined, offset: number) {
  if (view === undefined) {
    return { lowWatermark: -1, errorCode: ERROR_CODES.unknownTopicOrPartition };
  }
  try {
    const lowWatermark = await broker.store.log.deleteRecords(view, offset);
    return { lowWatermark, errorCode: ERROR_CODES.none };
  } catch (error) {
    return { lowWatermark: -1, errorCode: toAnswer(error).errorCode };
  }
}
