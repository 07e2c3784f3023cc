// ListOffsets (key 2), versions 1–8: offsets by time. Flexible from 6 on.
import { array, from, int16, int32, int64, int8, string, struct } from "../schema.ts";
import { defineMessage } from "../message.ts";

/** Special timestamps. */
export const LIST_OFFSETS_TIMESTAMPS = {
  /** The offset after the last record. */
  latest: -1,
  /** The first readable offset. */
  earliest: -2,
  /** The record with the largest timestamp (KIP-734). */
  maxTimestamp: -3,
  /** The first offset on the broker's own disk (KIP-405). */
  earliestLocal: -4,
} as const;

export const listOffsets = defineMessage({
  name: "ListOffsets",
  key: 2,
  versions: [1, 8],
  flexibleFrom: 6,
  request: struct({
    replicaId: int32,
    isolationLevel: from(2, int8, 0),
    topics: array(
      struct({
        name: string,
        partitions: array(
          struct({
            partitionIndex: int32,
            currentLeaderEpoch: from(4, int32, -1),
            timestamp: int64,
          }),
        ),
      }),
    ),
  }),
  response: struct({
    throttleTimeMs: from(2, int32, 0),
    topics: array(
      struct({
        name: string,
        partitions: array(
          struct({
            partitionIndex: int32,
            errorCode: int16,
            timestamp: int64,
            offset: int64,
            leaderEpoch: from(4, int32, -1),
          }),
        ),
      }),
    ),
  }),
});
