// SaslAuthenticate (key 36), versions 0–2: one message of the mechanism each way. Flexible from 2 on.
import { bytes, from, int16, int64, nullableString, struct } from "../schema.ts";
import { defineMessage } from "../message.ts";

export const saslAuthenticate = defineMessage({
  name: "SaslAuthenticate",
  key: 36,
  versions: [0, 2],
  flexibleFrom: 2,
  request: struct({ authBytes: bytes }),
  response: struct({
    errorCode: int16,
    errorMessage: nullableString,
    authBytes: bytes,
    sessionLifetimeMs: from(1, int64, 0),
  }),
});
