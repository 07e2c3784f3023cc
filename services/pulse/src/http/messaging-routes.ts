// All operations of messaging over HTTP.
import { createScriptRoute } from "@platform/console";
import type { ApiRoute } from "@platform/kernel/http";
import type { Clock } from "@platform/kernel/time";
import { createColdError } from "../publish/publish-error.ts";
import { isColdError } from "../store/store.ts";
import type { Broker } from "../broker.ts";
import type { Offload } from "../offload/offload.ts";
import { createAccessRoutes } from "./access-api.ts";
import { createAcknowledgementRoutes } from "./acknowledgement-api.ts";
import { createAnomalyRoute } from "./anomalies-api.ts";
import { createBrowseRoutes } from "./browse-api.ts";
import { createConnectionsRoute, type ConnectionSources } from "./connections-api.ts";
import { createDeadLettersRoutes } from "./dead-letters-api.ts";
import { createEventStreamRoute, type EventStreamOptions } from "./event-stream.ts";
import { createEventRoutes } from "./events-api.ts";
import { EventCursors } from "./event-cursor.ts";
import { createGroupRoutes, type GroupRoutesOptions } from "./groups-api.ts";
import { createOffloadRoutes } from "./offload-api.ts";
import { createPublishRoutes } from "./publish-api.ts";
import type { MetadataQueries } from "../query/metadata-queries.ts";
import { createQueryRoute } from "./query-api.ts";
import { createReadingRoutes } from "./reading-api.ts";
import { createSocketRoutes } from "./socket-routes.ts";
import { createStatsRoute, type StatsReader } from "./stats-api.ts";
import { createTopicRoutes } from "./topics-api.ts";
import { createTransformRoutes } from "./transform-api.ts";
import { createTriageRoute } from "./triage-api.ts";
import { createUnbuiltRoutes } from "./unbuilt-api.ts";

/** Options of the routes. */
export interface MessagingRoutesOptions
  extends EventStreamOptions, Pick<GroupRoutesOptions, "describeConsumerGroup"> {
  broker: Broker;
  offload: Offload;
  readStats: StatsReader;
  queries: Pick<MetadataQueries, "run">;
  clock: Clock;
  connections: ConnectionSources;
}

export function createMessagingRoutes(options: MessagingRoutesOptions): ApiRoute[] {
  const { admission, broker, describeConsumerGroup } = options;
  const parts = { ...broker, groups: options.groups, admission };
  return [
    createScriptRoute({
      folder: "client",
      file: "pulse-client.js",
      summary: "The client for browsers, an ECMAScript module",
      tag: "Client",
      clock: options.clock,
    }),
    ...createPublishRoutes(broker.publisher, admission),
    createEventStreamRoute(options),
    ...createSocketRoutes(),
    ...createAccessRoutes(broker.topicRules),
    ...createTopicRoutes(parts),
    createAnomalyRoute(parts),
    ...[
      ...createTransformRoutes(parts),
      ...createReadingRoutes(parts),
      ...createBrowseRoutes(parts),
      ...createEventRoutes({
        ...parts,
        eventCursors: EventCursors.open(broker.store, broker.state),
      }),
      ...createDeadLettersRoutes(parts),
      createTriageRoute(parts),
      ...createGroupRoutes({ ...parts, describeConsumerGroup }),
      ...createAcknowledgementRoutes(parts),
    ].map(explainColdReads),
    createConnectionsRoute(options.connections),
    createStatsRoute(options.readStats, admission),
    explainColdReads(createQueryRoute(options.queries, admission)),
    ...createOffloadRoutes(options.offload),
    ...createUnbuiltRoutes(admission),
  ];
}

// Routes that read records, which only object storage may have.
function explainColdReads(route: ApiRoute): ApiRoute {
  const { handle } = route;
  if (route.isDirect === true) return route;
  return {
    ...route,
    handle: async (input) => {
      try {
        return await handle(input);
      } catch (error) {
        if (isColdError(error)) throw createColdError();
        throw error;
      }
    },
  };
}
