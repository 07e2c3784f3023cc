// OffsetFetch (key 9), versions 1–9: committed offsets of a group. Flexible from 6 on, several groups
// from 8 on.
import {
  array,
  between,
  boolean,
  from,
  int16,
  int32,
  int64,
  nullableArray,
  nullableString,
  string,
  struct,
  until,
} from "../schema.ts";
import { defineMessage } from "../message.ts";

const askedTopic = struct({ name: string, partitionIndexes: array(int32) });
const foundTopic = struct({
  name: string,
  partitions: array(
    struct({
      partitionIndex: int32,
      committedOffset: int64,
      committedLeaderEpoch: from(5, int32, -1),
      metadata: nullableString,
      errorCode: int16,
    }),
  ),
});

/** OffsetFetch. Null topics request all, from version 2 on. */
export const offsetFetch = defineMessage({
  name: "OffsetFetch",
  key: 9,
  versions: [1, 9],
  flexibleFrom: 6,
  request: struct({
    groupId: until(7, string, ""),
    topics: until(7, nullableArray(askedTopic), []),
    groups: from(
      8,
      array(
        struct({
          groupId: string,
          memberId: from(9, nullableString, null),
          memberEpoch: from(9, int32, -1),
          topics: nullableArray(askedTopic),
        }),
      ),
      [],
    ),
    requireStable: from(7, boolean, false),
  }),
  response: struct({
    throttleTimeMs: from(3, int32, 0),
    topics: until(7, array(foundTopic), []),
    errorCode: between(2, 7, int16, 0),
    groups: from(
      8,
      array(struct({ groupId: string, topics: array(foundTopic), errorCode: int16 })),
      [],
    ),
  }),
});
