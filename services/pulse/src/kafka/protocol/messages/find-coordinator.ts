// FindCoordinator (key 10), versions 0–5: the broker of a group. Flexible from 3 on, several keys
// at once from 4 on.
import {
  array,
  between,
  from,
  int16,
  int32,
  int8,
  nullableString,
  string,
  struct,
  until,
} from "../schema.ts";
import { defineMessage } from "../message.ts";

/** FindCoordinator. Key type 0 is a group, 1 a transactional id. */
export const findCoordinator = defineMessage({
  name: "FindCoordinator",
  key: 10,
  versions: [0, 5],
  flexibleFrom: 3,
  request: struct({
    key: until(3, string, ""),
    keyType: from(1, int8, 0),
    coordinatorKeys: from(4, array(string), []),
  }),
  response: struct({
    throttleTimeMs: from(1, int32, 0),
    errorCode: until(3, int16, 0),
    errorMessage: between(1, 3, nullableString, null),
    nodeId: until(3, int32, -1),
    host: until(3, string, ""),
    port: until(3, int32, -1),
    coordinators: from(
      4,
      array(
        struct({
          key: string,
          nodeId: int32,
          host: string,
          port: int32,
          errorCode: int16,
          errorMessage: nullableString,
        }),
      ),
      [],
    ),
  }),
});
