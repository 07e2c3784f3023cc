// IncrementalAlterConfigs (key 44), versions 0–1: changes single settings (KIP-339). Flexible from 1 on.
import { array, boolean, int16, int32, int8, nullableString, string, struct } from "../schema.ts";
import { defineMessage } from "../message.ts";

/** Operations of IncrementalAlterConfigs. */
export const CONFIG_OPERATIONS = { set: 0, delete: 1, append: 2, subtract: 3 } as const;

export const incrementalAlterConfigs = defineMessage({
  name: "IncrementalAlterConfigs",
  key: 44,
  versions: [0, 1],
  flexibleFrom: 1,
  request: struct({
    resources: array(
      struct({
        resourceType: int8,
        resourceName: string,
        configs: array(struct({ name: string, configOperation: int8, value: nullableString })),
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
