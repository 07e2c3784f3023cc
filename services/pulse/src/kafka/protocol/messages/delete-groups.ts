// DeleteGroups (key 42), versions 0–2: deletes empty groups. Flexible from 2 on.
import { array, int16, int32, string, struct } from "../schema.ts";
import { defineMessage } from "../message.ts";

export const deleteGroups = defineMessage({
  name: "DeleteGroups",
  key: 42,
  versions: [0, 2],
  flexibleFrom: 2,
  request: struct({ groupsNames: array(string) }),
  response: struct({
    throttleTimeMs: int32,
    results: array(struct({ groupId: string, errorCode: int16 })),
  }),
});
