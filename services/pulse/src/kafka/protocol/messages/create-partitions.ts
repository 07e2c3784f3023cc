// CreatePartitions (key 37), versions 0–3. Flexible from 2 on.
import {
  array,
  boolean,
  int16,
  int32,
  nullableArray,
  nullableString,
  string,
  struct,
} from "../schema.ts";
import { defineMessage } from "../message.ts";

/** CreatePartitions. `count` is the new total. */
export const createPartitions = defineMessage({
  name: "CreatePartitions",
  key: 37,
  versions: [0, 3],
  flexibleFrom: 2,
  request: struct({
    topics: array(
      struct({
        name: string,
        count: int32,
        assignments: nullableArray(struct({ brokerIds: array(int32) })),
      }),
    ),
    timeoutMs: int32,
    validateOnly: boolean,
  }),
  response: struct({
    throttleTimeMs: int32,
    results: array(struct({ name: string, errorCode: int16, errorMessage: nullableString })),
  }),
});
