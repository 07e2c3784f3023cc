// SyncGroup (key 14), versions 0–5: distributes assignments. Flexible
// from 4 on.
import { array, bytes, from, int16, int32, nullableString, string, struct } from "../schema.ts";
import { defineMessage } from "../message.ts";

export const syncGroup = defineMessage({
  name: "SyncGroup",
  key: 14,
  versions: [0, 5],
  flexibleFrom: 4,
  request: struct({
    groupId: string,
    generationId: int32,
    memberId: string,
    groupInstanceId: from(3, nullableString, null),
    protocolType: from(5, nullableString, null),
    protocolName: from(5, nullableString, null),
    assignments: array(struct({ memberId: string, assignment: bytes })),
  }),
  response: struct({
    throttleTimeMs: from(1, int32, 0),
    errorCode: int16,
    protocolType: from(5, nullableString, null),
    protocolName: from(5, nullableString, null),
    assignment: bytes,
  }),
});
