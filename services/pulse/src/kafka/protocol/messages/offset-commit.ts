// OffsetCommit (key 8), versions 2–9: a group's next offsets. Flexible from 8 on.
import {
  array,
  between,
  from,
  int16,
  int32,
  int64,
  nullableString,
  string,
  struct,
} from "../schema.ts";
import { defineMessage } from "../message.ts";

export const offsetCommit = defineMessage({
  name: "OffsetCommit",
  key: 8,
  versions: [2, 9],
  flexibleFrom: 8,
  request: struct({
    groupId: string,
    generationId: int32,
    memberId: string,
    groupInstanceId: from(7, nullableString, null),
    retentionTimeMs: between(2, 4, int64, -1),
    topics: array(
      struct({
        name: string,
        partitions: array(
          struct({
            partitionIndex: int32,
            committedOffset: int64,
            committedLeaderEpoch: from(6, int32, -1),
            committedMetadata: nullableString,
          }),
        ),
      }),
    ),
  }),
  response: struct({
    throttleTimeMs: from(3, int32, 0),
    topics: array(
      struct({
        name: string,
        partitions: array(struct({ partitionIndex: int32, errorCode: int16 })),
      }),
    ),
  }),
});
