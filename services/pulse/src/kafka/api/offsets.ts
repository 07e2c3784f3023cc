// ListOffsets, OffsetForLeaderEpoch, DeleteRecords: where partitions begin, end and change hands.
import type { PartitionView } from "@platform/log";
import { toAnswer } from "../answer.ts";
import { epochAt, findTopic, leaderEpochOf, type KafkaBroker } from "../broker.ts";
import { errorCodes, type ErrorCode } from "../protocol/error-codes.ts";
import {
  deleteRecords,
  listOffsets,
  listOffsetsTimestamps,
  offsetForLeaderEpoch,
} from "../protocol/messages/index.ts";
import { route, type Route } from "../server/route.ts";
import { principalOf } from "../server/session.ts";

/** The routes about offsets of the log. */
export function offsetRoutes(broker: KafkaBroker): Route[] {
  return [
    route(listOffsets, async ({ topics }, { session, version }) => {
      const { tenant } = principalOf(session);
      const answers = topics.map(async ({ name, partitions }) => {
        const stored = findTopic(broker.topics, tenant, name)?.stored;
        const found = partitions.map((asked) =>
          listOne(broker, stored?.partitions[asked.partitionIndex], asked, version),
        );
        return { name, partitions: await Promise.all(found) };
      });
      return { topics: await Promise.all(answers) };
    }),

    route(offsetForLeaderEpoch, ({ topics }, { session }) => {
      const { tenant } = principalOf(session);
      const answers = topics.map(({ name, partitions }) => {
        const stored = findTopic(broker.topics, tenant, name)?.stored;
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

    route(deleteRecords, async ({ topics }, { session }) => {
      const { tenant } = principalOf(session);
      const answers = topics.map(async ({ name, partitions }) => {
        const stored = findTopic(broker.topics, tenant, name)?.stored;
        const deleted = partitions.map(async ({ partitionIndex, offset }) => ({
          partitionIndex,
          ...(await deleteBefore(broker, stored?.partitions[partitionIndex], offset)),
        }));
        return { name, partitions: await Promise.all(deleted) };
      });
      return { throttleTimeMs: 0, topics: await Promise.all(answers) };
    }),
  ];
}

type ListedOffset = {
  errorCode: ErrorCode;
  timestamp: number;
  offset: number;
  leaderEpoch: number;
};

/** From which version on each timestamp with a meaning of its own may be asked for. */
const timestampVersions: ReadonlyMap<number, number> = new Map([
  [listOffsetsTimestamps.latest, 0],
  [listOffsetsTimestamps.earliest, 0],
  [listOffsetsTimestamps.maxTimestamp, 7],
  [listOffsetsTimestamps.earliestLocal, 8],
]);

const nothing = { timestamp: -1, offset: -1, leaderEpoch: -1 };

async function listOne(
  broker: KafkaBroker,
  view: PartitionView | undefined,
  asked: { partitionIndex: number; currentLeaderEpoch: number; timestamp: number },
  version: number,
) {
  const { partitionIndex, timestamp } = asked;
  const errorCode = checkEpoch(view, asked.currentLeaderEpoch);
  if (view === undefined || errorCode !== errorCodes.none) {
    return { partitionIndex, errorCode, ...nothing };
  }
  if (timestamp < 0 && version < (timestampVersions.get(timestamp) ?? Number.POSITIVE_INFINITY)) {
    return { partitionIndex, errorCode: errorCodes.unsupportedVersion, ...nothing };
  }
  try {
    return { partitionIndex, ...(await findOffset(broker, view, timestamp)) };
  } catch (error) {
    return { partitionIndex, errorCode: toAnswer(error).errorCode, ...nothing };
  }
}

async function findOffset(
  broker: KafkaBroker,
  view: PartitionView,
  timestamp: number,
): Promise<ListedOffset> {
  const errorCode = errorCodes.none;
  switch (timestamp) {
    case listOffsetsTimestamps.latest: {
      const leaderEpoch = leaderEpochOf(view);
      return { errorCode, timestamp: -1, offset: view.durableEnd, leaderEpoch };
    }
    case listOffsetsTimestamps.earliest:
    case listOffsetsTimestamps.earliestLocal: {
      const leaderEpoch = epochAt(view, view.logStart);
      return { errorCode, timestamp: -1, offset: view.logStart, leaderEpoch };
    }
    case listOffsetsTimestamps.maxTimestamp: {
      const found = await findLatestTime(broker, view);
      return { errorCode, ...(found ?? nothing) };
    }
    default: {
      const found = await broker.store.log.findTimestamp(view, timestamp);
      if (found === undefined) return { errorCode, ...nothing };
      return { errorCode, ...found, leaderEpoch: epochAt(view, found.offset) };
    }
  }
}

/** The record with the largest timestamp: the log finds the first one at or after a time, so that is closed in on. */
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

/** Whether the client's idea of the leader's epoch is right; -1 says that it has none (KIP-320). */
function checkEpoch(view: PartitionView | undefined, currentLeaderEpoch: number): ErrorCode {
  if (view === undefined) return errorCodes.unknownTopicOrPartition;
  const epoch = leaderEpochOf(view);
  if (currentLeaderEpoch < 0 || currentLeaderEpoch === epoch) return errorCodes.none;
  return currentLeaderEpoch < epoch ? errorCodes.fencedLeaderEpoch : errorCodes.unknownLeaderEpoch;
}

/** The end of the last epoch up to the one that is asked for. */
function findEpochEnd(
  view: PartitionView | undefined,
  asked: { currentLeaderEpoch: number; leaderEpoch: number },
) {
  const none = { leaderEpoch: -1, endOffset: -1 };
  const errorCode = checkEpoch(view, asked.currentLeaderEpoch);
  if (view === undefined || errorCode !== errorCodes.none) return { errorCode, ...none };
  const epochs = view.epochs.length > 0 ? view.epochs : [{ epoch: 0, startOffset: 0 }];
  const index = epochs.findLastIndex(({ epoch }) => epoch <= asked.leaderEpoch);
  if (index < 0 || asked.leaderEpoch > leaderEpochOf(view)) return { errorCode, ...none };
  const endOffset = epochs[index + 1]?.startOffset ?? view.durableEnd;
  return { errorCode, leaderEpoch: epochs[index]!.epoch, endOffset };
}

async function deleteBefore(broker: KafkaBroker, view: PartitionView | undefined, offset: number) {
  if (view === undefined) {
    return { lowWatermark: -1, errorCode: errorCodes.unknownTopicOrPartition };
  }
  try {
    const lowWatermark = await broker.store.log.deleteRecords(view, offset);
    return { lowWatermark, errorCode: errorCodes.none };
  } catch (error) {
    return { lowWatermark: -1, errorCode: toAnswer(error).errorCode };
  }
}
