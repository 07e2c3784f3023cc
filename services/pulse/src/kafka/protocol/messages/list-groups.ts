// ListGroups (key 16), versions 0–5: all groups, by state from 4 on and by type from 5 on. Flexible
// from 3 on.
import { array, from, int16, int32, string, struct } from "../schema.ts";
import { defineMessage } from "../message.ts";

/** ListGroups. Empty filters match all groups. */
export const listGroups = defineMessage({
  name: "ListGroups",
  key: 16,
  versions: [0, 5],
  flexibleFrom: 3,
  request: struct({
    statesFilter: from(4, array(string), []),
    typesFilter: from(5, array(string), []),
  }),
  response: struct({
    throttleTimeMs: from(1, int32, 0),
    errorCode: int16,
    groups: array(
      struct({
        groupId: string,
        protocolType: string,
        groupState: from(4, string, ""),
        groupType: from(5, string, ""),
      }),
    ),
  }),
});
