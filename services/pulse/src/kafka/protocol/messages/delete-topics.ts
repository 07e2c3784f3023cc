// DeleteTopics (key 20), versions 1–6. Flexible from 4 on, by name or by id from 6 on.
import {
  array,
  from,
  int16,
  int32,
  nullableString,
  string,
  struct,
  until,
  uuid,
  UUID_ZERO,
} from "../schema.ts";
import { defineMessage } from "../message.ts";

export const deleteTopics = defineMessage({
  name: "DeleteTopics",
  key: 20,
  versions: [1, 6],
  flexibleFrom: 4,
  request: struct({
    topics: from(6, array(struct({ name: nullableString, topicId: uuid })), []),
    topicNames: until(5, array(string), []),
    timeoutMs: int32,
  }),
  response: struct({
    throttleTimeMs: int32,
    topics: array(
      struct({
        name: nullableString,
        topicId: from(6, uuid, UUID_ZERO),
        errorCode: int16,
        errorMessage: from(5, nullableString, null),
      }),
    ),
  }),
});
