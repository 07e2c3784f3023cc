// Heartbeat (key 12), versions 0–4: keeps a member alive. Flexible from 4 on.
import { from, int16, int32, nullableString, string, struct } from "../schema.ts";
import { defineMessage } from "../message.ts";

export const heartbeat = defineMessage({
  name: "Heartbeat",
  key: 12,
  versions: [0, 4],
  flexibleFrom: 4,
  request: struct({
    groupId: string,
    generationId: int32,
    memberId: string,
    groupInstanceId: from(3, nullableString, null),
  }),
  response: struct({ throttleTimeMs: from(1, int32, 0), errorCode: int16 }),
});
