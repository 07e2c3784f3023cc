// The admin feeds of the relay, on its own listener.
import { IncomingMessage } from "node:http";
import { Method } from "@platform/http1";
import {
  AdminFeeds,
  CONSOLE_LIVE_PATH,
  LIVE_PATH,
  type Figure,
  type LineStreams,
} from "@platform/kernel/feeds";
import type { HealthRegistry } from "@platform/kernel/health";
import { mapLegacyPath } from "@platform/kernel/http";
import type { Logger } from "@platform/kernel/log";
import { sumSeries, type MetricRegistry } from "@platform/kernel/metrics";
import type { Clock } from "@platform/kernel/time";
import type { CapturedRequest } from "../capture/captured-request.ts";
import { VERSION } from "../config.ts";
import type { RelayGuard } from "../identity.ts";
import { RELAY_METRICS, type RelayGauges } from "../metrics.ts";
import { answerProblem } from "../relay/connect.ts";
import type { RelayExchange } from "../relay/request-state.ts";

/** Options of {@link createFeeds}. */
export interface FeedsOptions {
  registry: MetricRegistry;
  gauges: RelayGauges;
  health: HealthRegistry;
  guard: RelayGuard;
  clock: Clock;
  logger: Logger;
}

/** Creates the feeds. The scope `tunnel:read`, or the rights of an operator, are required. */
export function createFeeds({ registry, gauges, ...options }: FeedsOptions): AdminFeeds {
  return new AdminFeeds({
    ...options,
    service: "tunnel",
    version: VERSION,
    registry,
    // Public requests are counted by the relay itself.
    requests: undefined,
    figures: createFigures(registry, gauges),
  });
}

/** The streams of the relay's own API. */
interface RelayStreams {
  feeds: AdminFeeds;
  requests: LineStreams<CapturedRequest>;
}

/** Handles an upgrade request to one of the streams; false for other requests. */
export function acceptStream({ feeds, requests }: RelayStreams, exchange: RelayExchange): boolean {
  const { head } = exchange;
  if (!head.upgrade || head.methodId !== Method.GET) return false;
  const path = mapLegacyPath(head.pathString());
  if (path === LIVE_PATH || path === CONSOLE_LIVE_PATH) accept(feeds, exchange, LIVE_PATH);
  else if (requests.hasPath(path)) accept(requests, exchange, path);
  else return false;
  return true;
}

// The caller is admitted before the socket leaves the server.
function accept(
  stream: Pick<AdminFeeds, "admit" | "acceptAdmitted">,
  exchange: RelayExchange,
  path: string,
): void {
  const { sequence, head, connection } = exchange;
  const isOver = (): boolean => exchange.sequence !== sequence || exchange.aborted;
  const headers = new Headers([...head.fields.lowerEntries()]);
  const peer = { kind: "tcp", address: connection.remoteAddress } as const;
  const guarded = { headers, method: "GET", path, peer };
  const query = head.bytes.toString("latin1", head.pathEnd, head.targetEnd);
  stream
    .admit(guarded)
    .then(() => {
      if (isOver()) return;
      const { socket, rest } = exchange.takeSocket(null);
      const request = new IncomingMessage(socket);
      Object.assign(request, {
        method: "GET",
        url: `${path}${query}`,
        headers: Object.fromEntries(headers),
      });
      stream.acceptAdmitted(request, socket, rest, guarded);
    })
    .catch((error: unknown) => {
      if (!isOver()) answerProblem(exchange, error);
    });
}

function createFigures(registry: MetricRegistry, gauges: RelayGauges): Figure[] {
  const counter = (name: string, unit: string, title: string, metric: string, label?: string) => ({
    name,
    unit,
    title,
    kind: "counter" as const,
    read: () =>
      sumSeries(registry.find(metric), (labels) =>
        labels.every(([, value]) => label === undefined || value === label),
      ),
  });
  const gauge = (name: string, unit: string, title: string, read: () => number) => ({
    name,
    unit,
    title,
    kind: "gauge" as const,
    read,
  });
  const { proxied, errors, bytes } = RELAY_METRICS;
  return [
    counter("requests", "1/s", "Public requests answered by local services", proxied),
    counter("errors", "1/s", "Public requests answered with an error of the relay", errors),
    counter("bytes_in", "bytes/s", "Bytes to local services", bytes, "in"),
    counter("bytes_out", "bytes/s", "Bytes from local services", bytes, "out"),
    gauge("clients", "", "Connected clients", () => gauges.countClients()),
    gauge("tunnels", "", "Tunnels with a connected client", () => gauges.countTunnels()),
    gauge("streams", "", "Open streams", () => gauges.countStreams()),
    gauge("held", "bytes", "Received bytes not yet accepted by public clients", () =>
      gauges.heldBytes(),
    ),
  ];
}
