// Produce (key 0), versions 0–11: appends record batches. Flexible from 9 on.
// Versions 0–2 carry the old message sets; they are listed because librdkafka uses version 0 to find out which
// compressions a broker supports, and are rejected.
import {
  array,
  from,
  int16,
  int32,
  int64,
  nullableString,
  records,
  string,
  struct,
  tagged,
} from "../schema.ts";
import { defineMessage, leaderIdAndEpoch, nodeEndpoint } from "../message.ts";

/** Produce. With acks 0 there is no response. */
export const produce = defineMessage({
  name: "Produce",
  key: 0,
  versions: [0, 11],
  flexibleFrom: 9,
  request: struct({
    transactionalId: from(3, nullableString, null),
    acks: int16,
    timeoutMs: int32,
    topics: array(struct({ name: string, partitions: array(struct({ index: int32, records })) })),
  }),
  response: struct({
    topics: array(
      struct({
        name: string,
        partitions: array(
          struct({
            index: int32,
            errorCode: int16,
            baseOffset: int64,
            logAppendTimeMs: from(2, int64, -1),
            logStartOffset: from(5, int64, -1),
            recordErrors: from(
              8,
              array(struct({ batchIndex: int32, batchIndexErrorMessage: nullableString })),
              [],
            ),
            errorMessage: from(8, nullableString, null),
            currentLeader: tagged(0, 10, leaderIdAndEpoch, null),
          }),
        ),
      }),
    ),
    throttleTimeMs: from(1, int32, 0),
    nodeEndpoints: tagged(0, 10, array(nodeEndpoint), null),
  }),
});
