// OffsetForLeaderEpoch (key 23), versions 2–4: the end of an epoch. Flexible from 4 on.
import { array, from, int16, int32, int64, string, struct } from "../schema.ts";
import { defineMessage } from "../message.ts";

export const offsetForLeaderEpoch = defineMessage({
  name: "OffsetForLeaderEpoch",
  key: 23,
  versions: [2, 4],
  flexibleFrom: 4,
  request: struct({
    replicaId: from(3, int32, -2),
    topics: array(
      struct({
        name: string,
        partitions: array(
          struct({ partition: int32, currentLeaderEpoch: int32, leaderEpoch: int32 }),
        ),
      }),
    ),
  }),
  response: struct({
    throttleTimeMs: int32,
    topics: array(
      struct({
        name: string,
        partitions: array(
          struct({ errorCode: int16, partition: int32, leaderEpoch: int32, endOffset: int64 }),
        ),
      }),
    ),
  }),
});
