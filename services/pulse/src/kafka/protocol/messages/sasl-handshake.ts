// SaslHandshake (key 17), versions 0–1: chooses a mechanism. Not flexible. After version 0 the
// mechanism's messages follow as bare frames, after version 1 in SaslAuthenticate.
import { array, int16, string, struct } from "../schema.ts";
import { defineMessage } from "../message.ts";

export const saslHandshake = defineMessage({
  name: "SaslHandshake",
  key: 17,
  versions: [0, 1],
  flexibleFrom: Infinity,
  request: struct({ mechanism: string }),
  response: struct({ errorCode: int16, mechanisms: array(string) }),
});
