// OffsetDelete (key 47), version 0: deletes committed offsets. Not flexible.
import { array, int16, int32, string, struct } from "../schema.ts";
import { defineMessage } from "../message.ts";

export const offsetDelete = defineMessage({
  name: "OffsetDelete",
  key: 47,
  versions: [0, 0],
  flexibleFrom: Infinity,
  request: struct({
    groupId: string,
    topics: array(struct({ name: string, partitions: array(struct({ partitionIndex: int32 })) })),
  }),
  response: struct({
    errorCode: int16,
    throttleTimeMs: int32,
    topics: array(
      struct({
        name: string,
        partitions: array(struct({ partitionIndex: int32, errorCode: int16 })),
      }),
    ),
  }),
});
