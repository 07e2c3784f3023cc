// CreateTopics (key 19), versions 2–7. Flexible from 5 on.
import {
  array,
  boolean,
  from,
  int16,
  int32,
  int8,
  nullableArray,
  nullableString,
  string,
  struct,
  tagged,
  uuid,
  UUID_ZERO,
} from "../schema.ts";
import { defineMessage } from "../message.ts";

/** CreateTopics. -1 partitions or replicas mean the broker's default, from version 4 on. */
export const createTopics = defineMessage({
  name: "CreateTopics",
  key: 19,
  versions: [2, 7],
  flexibleFrom: 5,
  request: struct({
    topics: array(
      struct({
        name: string,
        numPartitions: int32,
        replicationFactor: int16,
        assignments: array(struct({ partitionIndex: int32, brokerIds: array(int32) })),
        configs: array(struct({ name: string, value: nullableString })),
      }),
    ),
    timeoutMs: int32,
    validateOnly: boolean,
  }),
  response: struct({
    throttleTimeMs: int32,
    topics: array(
      struct({
        name: string,
        topicId: from(7, uuid, UUID_ZERO),
        errorCode: int16,
        errorMessage: nullableString,
        numPartitions: from(5, int32, -1),
        replicationFactor: from(5, int16, -1),
        configs: from(
          5,
          nullableArray(
            struct({
              name: string,
              value: nullableString,
              readOnly: boolean,
              configSource: int8,
              isSensitive: boolean,
            }),
          ),
          [],
        ),
        topicConfigErrorCode: tagged(0, 5, int16, 0),
      }),
    ),
  }),
});
