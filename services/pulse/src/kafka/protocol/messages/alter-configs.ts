// AlterConfigs (key 33), versions 0–2: sets all settings of a resource. Flexible from 2 on.
import { array, boolean, int16, int32, int8, nullableString, string, struct } from "../schema.ts";
import { defineMessage } from "../message.ts";

/** AlterConfigs. Settings that are not named are reset to their defaults. */
export const alterConfigs = defineMessage({
  name: "AlterConfigs",
  key: 33,
  versions: [0, 2],
  flexibleFrom: 2,
  request: struct({
    resources: array(
      struct({
        resourceType: int8,
        resourceName: string,
        configs: array(struct({ name: string, value: nullableString })),
      }),
    ),
    validateOnly: boolean,
  }),
  response: struct({
    throttleTimeMs: int32,
    responses: array(
      struct({
        errorCode: int16,
        errorMessage: nullableString,
        resourceType: int8,
        resourceName: string,
      }),
    ),
  }),
});
