// ApiVersions: the supported requests and versions.
import { ERROR_CODES } from "../protocol/error-codes.ts";
import { apiVersions } from "../protocol/messages/index.ts";
import { allow } from "../server/access.ts";
import { route, type Route } from "../server/route.ts";

const SOFTWARE_NAME = /^[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?$/;

/** Creates the route of ApiVersions over `routes`, including itself. */
export function createVersionsRoute(routes: readonly Route[]): Route {
  const known = [...routes.map(({ message }) => message), apiVersions];
  const apiKeys = known
    .map(({ key, versions: [minVersion, maxVersion] }) => ({ apiKey: key, minVersion, maxVersion }))
    .sort((one, other) => one.apiKey - other.apiKey);
  return route(
    apiVersions,
    allow("public", ({ clientSoftwareName, clientSoftwareVersion }, { version }) => {
      const isNamed =
        SOFTWARE_NAME.test(clientSoftwareName) && SOFTWARE_NAME.test(clientSoftwareVersion);
      // KIP-511: both are required from version 3 on.
      if (version >= 3 && !isNamed) return { errorCode: ERROR_CODES.invalidRequest, apiKeys: [] };
      return { errorCode: ERROR_CODES.none, apiKeys };
    }),
  );
}
