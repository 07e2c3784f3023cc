// The relay's API: all routes, with its feeds and the streams of captured requests.
import type { Service } from "@platform/chassis";
import { takeDatabaseSnapshot } from "@platform/kernel/database-backup";
import type { AdminFeeds, LineStreams } from "@platform/kernel/feeds";
import type { Api } from "@platform/kernel/http";
import type { CapturedRequest } from "../capture/captured-request.ts";
import type { RelayConfig } from "../config.ts";
import { requireOpening } from "../identity.ts";
import { Replayer } from "../relay/replay.ts";
import { createThrottledGuard } from "../relay/throttled-guard.ts";
import { createCertificateRoutes } from "../http/certificate-routes.ts";
import { createConnectRoute } from "../http/connect-route.ts";
import { describeConsole } from "../http/console.ts";
import { createFigures } from "../http/figures.ts";
import { createRequestRoutes } from "../http/request-routes.ts";
import { createRequestStreams } from "../http/request-stream.ts";
import { createShareRoutes } from "../http/share-routes.ts";
import { createSubjectRoutes } from "../http/subject-routes.ts";
import { createTunnelRoutes } from "../http/tunnel-routes.ts";
import type { Callers } from "./callers.ts";
import type { Clients } from "./clients.ts";
import { hasName, type Names } from "./names.ts";

/** The API and its WebSockets. */
export interface RelayApi {
  readonly api: Api;
  readonly feeds: AdminFeeds;
  readonly requests: LineStreams<CapturedRequest>;
}

export function createRelayApi(
  config: RelayConfig,
  service: Service,
  { store, domains, subjects, links, urls, state, database }: Names,
  { hub, capture, gauges }: Clients,
  { guard, throttles, trusted }: Callers,
): RelayApi {
  const { clock, log: logger, tracer, lifecycle } = service;
  const formatUrl = urls.format.bind(urls);
  const operation = service.openOperation({
    guard: createThrottledGuard({ guard, throttles }, trusted),
    console: describeConsole(config),
    figures: createFigures(service.metrics, gauges),
    // Public requests are counted by the relay itself.
    requests: undefined,
    backup: {
      dataFormat: state.dataFormat,
      takeSnapshot: () => takeDatabaseSnapshot(state, database),
    },
  });
  const { guard: apiGuard, feeds } = operation;
  const requests = createRequestStreams({ store, capture, clock, guard: apiGuard, logger });
  lifecycle.onDrain("streams of requests", () => requests.close(), "streams");
  const responseTimeoutMs = config.response_timeout_ms;
  const replayer = new Replayer({ hub, capture, clock, tracer, responseTimeoutMs });
  const api = service.createApi({
    title: "Tunnel",
    operation,
    routes: [
      ...createTunnelRoutes({
        store,
        domains,
        subjects,
        requireOpening: (caller) => requireOpening(caller, config),
        formatUrl,
        isConnected: (id) => hub.find(id) !== undefined,
        onRemoved: ({ id }) => {
          hub.dropTunnel(id);
          capture.forget(id);
          links.forget(id);
        },
      }),
      createConnectRoute(),
      ...createRequestRoutes({ store, capture, replayer, clock, formatUrl }),
      ...createShareRoutes({ store, links, clock, formatUrl }),
      ...createCertificateRoutes((name) => hasName(config.domain, { store, domains }, name)),
      ...createSubjectRoutes({
        subjects,
        onCutOff: (subject, reason) => hub.dropSubject(subject, reason),
      }),
    ],
  });
  return { api, feeds, requests };
}
