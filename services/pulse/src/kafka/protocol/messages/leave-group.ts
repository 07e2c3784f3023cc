// LeaveGroup (key 13), versions 0–5: removes members. Flexible from 4 on, several members from 3 on.
import { array, from, int16, int32, nullableString, string, struct, until } from "../schema.ts";
import { defineMessage } from "../message.ts";

export const leaveGroup = defineMessage({
  name: "LeaveGroup",
  key: 13,
  versions: [0, 5],
  flexibleFrom: 4,
  request: struct({
    groupId: string,
    memberId: until(2, string, ""),
    members: from(
      3,
      array(
        struct({
          memberId: string,
          groupInstanceId: nullableString,
          reason: from(5, nullableString, null),
        }),
      ),
      [],
    ),
  }),
  response: struct({
    throttleTimeMs: from(1, int32, 0),
    errorCode: int16,
    members: from(
      3,
      array(struct({ memberId: string, groupInstanceId: nullableString, errorCode: int16 })),
      [],
    ),
  }),
});
