// ApiVersions (key 18), versions 0–4: the supported requests. Flexible from 3 on.
// Its response header is always version 0, so that a client of any age can read it (KIP-511).
import { array, boolean, from, int16, int32, int64, string, struct, tagged } from "../schema.ts";
import { defineMessage } from "../message.ts";

const supportedFeature = struct({ name: string, minVersion: int16, maxVersion: int16 });
const finalizedFeature = struct({ name: string, maxVersionLevel: int16, minVersionLevel: int16 });

export const apiVersions = defineMessage({
  name: "ApiVersions",
  key: 18,
  versions: [0, 4],
  flexibleFrom: 3,
  request: struct({
    clientSoftwareName: from(3, string, ""),
    clientSoftwareVersion: from(3, string, ""),
  }),
  response: struct({
    errorCode: int16,
    apiKeys: array(struct({ apiKey: int16, minVersion: int16, maxVersion: int16 })),
    throttleTimeMs: from(1, int32, 0),
    supportedFeatures: tagged(0, 3, array(supportedFeature), null),
    finalizedFeaturesEpoch: tagged(1, 3, int64, -1),
    finalizedFeatures: tagged(2, 3, array(finalizedFeature), null),
    zkMigrationReady: tagged(3, 3, boolean, false),
  }),
});
