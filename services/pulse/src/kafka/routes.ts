// Every request that the Kafka face answers.
import { authenticationRoutes } from "./api/authentication.ts";
import { committedOffsetRoutes } from "./api/committed-offsets.ts";
import { configRoutes } from "./api/configs.ts";
import { fetchRoutes } from "./api/fetch.ts";
import { groupRoutes } from "./api/groups.ts";
import { metadataRoutes } from "./api/metadata.ts";
import { offsetRoutes } from "./api/offsets.ts";
import { produceRoutes } from "./api/produce.ts";
import { topicRoutes } from "./api/topics.ts";
import { versionsRoute } from "./api/versions.ts";
import type { KafkaBroker } from "./broker.ts";
import type { CredentialStore } from "./sasl/mechanism.ts";
import { buildRouteTable, type RouteTable } from "./server/route.ts";

/** The table of all routes. `fakeSaltKey`: 32 secret bytes that stay the same over restarts. */
export function createKafkaRoutes(
  broker: KafkaBroker,
  credentials: CredentialStore,
  fakeSaltKey: Buffer,
): RouteTable {
  const routes = [
    ...authenticationRoutes(credentials, fakeSaltKey),
    ...metadataRoutes(broker),
    ...produceRoutes(broker),
    ...fetchRoutes(broker),
    ...offsetRoutes(broker),
    ...groupRoutes(broker),
    ...committedOffsetRoutes(broker),
    ...topicRoutes(broker),
    ...configRoutes(broker),
  ];
  return buildRouteTable([...routes, versionsRoute(routes)]);
}
