// InitProducerId (key 22), versions 0–5: allocates a producer id. Flexible from 2 on.
import { from, int16, int32, int64, nullableString, struct } from "../schema.ts";
import { defineMessage } from "../message.ts";

export const initProducerId = defineMessage({
  name: "InitProducerId",
  key: 22,
  versions: [0, 5],
  flexibleFrom: 2,
  request: struct({
    transactionalId: nullableString,
    transactionTimeoutMs: int32,
    producerId: from(3, int64, -1),
    producerEpoch: from(3, int16, -1),
  }),
  response: struct({
    throttleTimeMs: int32,
    errorCode: int16,
    producerId: int64,
    producerEpoch: int16,
  }),
});
