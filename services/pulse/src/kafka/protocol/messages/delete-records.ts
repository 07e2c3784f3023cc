// DeleteRecords (key 21), versions 0–2: raises the log start offset. Flexible from 2 on.
import { array, int16, int32, int64, string, struct } from "../schema.ts";
import { defineMessage } from "../message.ts";

/** DeleteRecords. Offset -1 is the high watermark. */
export const deleteRecords = defineMessage({
  name: "DeleteRecords",
  key: 21,
  versions: [0, 2],
  flexibleFrom: 2,
  request: struct({
    topics: array(
      struct({
        name: string,
        partitions: array(struct({ partitionIndex: int32, offset: int64 })),
      }),
    ),
    timeoutMs: int32,
  }),
  response: struct({
    throttleTimeMs: int32,
    topics: array(
      struct({
        name: string,
        partitions: array(struct({ partitionIndex: int32, lowWatermark: int64, errorCode: int16 })),
      }),
    ),
  }),
});
