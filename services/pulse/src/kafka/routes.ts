// All requests of the Kafka server.
import { createAclRoutes } from "./api/acls.ts";
import { createAuthenticationRoutes } from "./api/authentication.ts";
import { createCommittedOffsetRoutes } from "./api/committed-offsets.ts";
import { createConfigRoutes } from "./api/configs.ts";
import { createFetchRoutes } from "./api/fetch.ts";
import { createGroupRoutes } from "./api/groups.ts";
import { createMetadataRoutes } from "./api/metadata.ts";
import { createOffsetRoutes } from "./api/offsets.ts";
import { createProduceRoutes } from "./api/produce.ts";
import { createTopicRoutes } from "./api/topics.ts";
import { createVersionsRoute } from "./api/versions.ts";
import type { KafkaBroker } from "./broker.ts";
import type { CredentialStore } from "./sasl/mechanism.ts";
import { buildRouteTable, type RouteTable } from "./server/route.ts";

/** Creates the route table. `fakeSaltKey`: 32 secret bytes that stay the same over restarts. */
export function createKafkaRoutes(
  broker: KafkaBroker,
  credentials: CredentialStore,
  fakeSaltKey: Buffer,
): RouteTable {
  const routes = [
    ...createAuthenticationRoutes(credentials, fakeSaltKey),
    ...createMetadataRoutes(broker),
    ...createProduceRoutes(broker),
    ...createFetchRoutes(broker),
    ...createOffsetRoutes(broker),
    ...createGroupRoutes(broker),
    ...createCommittedOffsetRoutes(broker),
    ...createTopicRoutes(broker),
    ...createConfigRoutes(broker),
    ...createAclRoutes(broker),
  ];
  return buildRouteTable([...routes, createVersionsRoute(routes)]);
}
