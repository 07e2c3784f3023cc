// DeleteAcls (key 31), versions 1–3. Flexible from 2 on.
import { array, int16, int32, int8, nullableString, string, struct } from "../schema.ts";
import { defineMessage } from "../message.ts";

/** DeleteAcls. Null names, principals and hosts match all. */
export const deleteAcls = defineMessage({
  name: "DeleteAcls",
  key: 31,
  versions: [1, 3],
  flexibleFrom: 2,
  request: struct({
    filters: array(
      struct({
        resourceType: int8,
        resourceName: nullableString,
        patternType: int8,
        principal: nullableString,
        host: nullableString,
        operation: int8,
        permissionType: int8,
      }),
    ),
  }),
  response: struct({
    throttleTimeMs: int32,
    filterResults: array(
      struct({
        errorCode: int16,
        errorMessage: nullableString,
        matchingAcls: array(
          struct({
            errorCode: int16,
            errorMessage: nullableString,
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
    ),
  }),
});
