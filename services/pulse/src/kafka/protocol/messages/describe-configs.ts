// DescribeConfigs (key 32), versions 1–4. Flexible from 4 on.
import {
  array,
  boolean,
  from,
  int16,
  int32,
  int8,
  nullableArray,
  nullableString,
  string,
  struct,
} from "../schema.ts";
import { defineMessage } from "../message.ts";

/** DescribeConfigs. Null keys request all. */
export const describeConfigs = defineMessage({
  name: "DescribeConfigs",
  key: 32,
  versions: [1, 4],
  flexibleFrom: 4,
  request: struct({
    resources: array(
      struct({
        resourceType: int8,
        resourceName: string,
        configurationKeys: nullableArray(string),
      }),
    ),
    includeSynonyms: boolean,
    includeDocumentation: from(3, boolean, false),
  }),
  response: struct({
    throttleTimeMs: int32,
    results: array(
      struct({
        errorCode: int16,
        errorMessage: nullableString,
        resourceType: int8,
        resourceName: string,
        configs: array(
          struct({
            name: string,
            value: nullableString,
            readOnly: boolean,
            configSource: int8,
            isSensitive: boolean,
            synonyms: array(struct({ name: string, value: nullableString, source: int8 })),
            configType: from(3, int8, 0),
            documentation: from(3, nullableString, null),
          }),
        ),
      }),
    ),
  }),
});
