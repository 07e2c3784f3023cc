// CreateAcls (key 30), versions 1–3. Flexible from 2 on.
import { array, int16, int32, int8, nullableString, string, struct } from "../schema.ts";
import { defineMessage } from "../message.ts";

export const createAcls = defineMessage({
  name: "CreateAcls",
  key: 30,
  versions: [1, 3],
  flexibleFrom: 2,
  request: struct({
    creations: array(
      struct({
        resourceType: int8,
        resourceName: string,
        patternType: int8,
        principal: string,
        host: string,
        operation: int8,
        permissionType: int8,
      }),
    ),
  }),
  response: struct({
    throttleTimeMs: int32,
    results: array(struct({ errorCode: int16, errorMessage: nullableString })),
  }),
});
