// JoinGroup (key 11), versions 0–9: joins the next generation. Flexible from 6 on.
import {
  array,
  boolean,
  bytes,
  from,
  int16,
  int32,
  nullableString,
  string,
  struct,
} from "../schema.ts";
import { defineMessage } from "../message.ts";

export const joinGroup = defineMessage({
  name: "JoinGroup",
  key: 11,
  versions: [0, 9],
  flexibleFrom: 6,
  request: struct({
    groupId: string,
    sessionTimeoutMs: int32,
    rebalanceTimeoutMs: from(1, int32, -1),
    memberId: string,
    groupInstanceId: from(5, nullableString, null),
    protocolType: string,
    protocols: array(struct({ name: string, metadata: bytes })),
    reason: from(8, nullableString, null),
  }),
  response: struct({
    throttleTimeMs: from(2, int32, 0),
    errorCode: int16,
    generationId: int32,
    protocolType: from(7, nullableString, null),
    // Null is allowed from version 7 on only.
    protocolName: nullableString,
    leader: string,
    skipAssignment: from(9, boolean, false),
    memberId: string,
    members: array(
      struct({
        memberId: string,
        groupInstanceId: from(5, nullableString, null),
        metadata: bytes,
      }),
    ),
  }),
});
