// Fetch (key 1), versions 4–16: record batches from an offset on. Flexible from 12 on; topics are
// named by their ids from 13 on.
import {
  array,
  from,
  int16,
  int32,
  int64,
  int8,
  nullableArray,
  nullableString,
  records,
  string,
  struct,
  tagged,
  until,
  uuid,
  UUID_ZERO,
} from "../schema.ts";
import { defineMessage, leaderIdAndEpoch, nodeEndpoint } from "../message.ts";

const epochEndOffset = struct({ epoch: int32, endOffset: int64 });
const snapshotId = struct({ endOffset: int64, epoch: int32 });
const replicaState = struct({ replicaId: int32, replicaEpoch: int64 });

export const fetch = defineMessage({
  name: "Fetch",
  key: 1,
  versions: [4, 16],
  flexibleFrom: 12,
  request: struct({
    replicaId: until(14, int32, -1),
    maxWaitMs: int32,
    minBytes: int32,
    maxBytes: int32,
    isolationLevel: int8,
    sessionId: from(7, int32, 0),
    sessionEpoch: from(7, int32, -1),
    topics: array(
      struct({
        name: until(12, string, ""),
        topicId: from(13, uuid, UUID_ZERO),
        partitions: array(
          struct({
            partition: int32,
            currentLeaderEpoch: from(9, int32, -1),
            fetchOffset: int64,
            lastFetchedEpoch: from(12, int32, -1),
            logStartOffset: from(5, int64, -1),
            partitionMaxBytes: int32,
          }),
        ),
      }),
    ),
    forgottenTopics: from(
      7,
      array(
        struct({
          name: until(12, string, ""),
          topicId: from(13, uuid, UUID_ZERO),
          partitions: array(int32),
        }),
      ),
      [],
    ),
    rackId: from(11, string, ""),
    clusterId: tagged(0, 12, nullableString, null),
    replicaState: tagged(1, 15, replicaState, null),
  }),
  response: struct({
    throttleTimeMs: int32,
    errorCode: from(7, int16, 0),
    sessionId: from(7, int32, 0),
    topics: array(
      struct({
        name: until(12, string, ""),
        topicId: from(13, uuid, UUID_ZERO),
        partitions: array(
          struct({
            partitionIndex: int32,
            errorCode: int16,
            highWatermark: int64,
            lastStableOffset: int64,
            logStartOffset: from(5, int64, -1),
            abortedTransactions: nullableArray(struct({ producerId: int64, firstOffset: int64 })),
            preferredReadReplica: from(11, int32, -1),
            records,
            divergingEpoch: tagged(0, 12, epochEndOffset, null),
            currentLeader: tagged(1, 12, leaderIdAndEpoch, null),
            snapshotId: tagged(2, 12, snapshotId, null),
          }),
        ),
      }),
    ),
    nodeEndpoints: tagged(0, 16, array(nodeEndpoint), null),
  }),
});
