// Starts the control plane's API with what it shows: metrics, live feeds, the stream of requests, certificates.
import { HealthRegistry } from "@platform/kernel/health";
import type { Lifecycle } from "@platform/kernel/lifecycle";
import { createProcessCollector, MetricRegistry } from "@platform/kernel/metrics";
import { every, systemClock } from "@platform/kernel/time";
import { GATE_VERSION } from "../config/document.ts";
import { readBreakers } from "../resilience/breakers.ts";
import { Certificates } from "../control/certificates.ts";
import { MetricsStream } from "../telemetry/metrics-stream.ts";
import { RouteSeries } from "../telemetry/route-series.ts";
import { readMonotonicMs, type LinkFigures, type SharedLinkState } from "../shared-state/index.ts";
import { createAccessLogStreams } from "./access-log-api.ts";
import { createGateApi, type GateApiOptions } from "./api.ts";
import { type ControlAddress, listenControl } from "./control-server.ts";
import { createFeeds } from "./feeds.ts";
import { MetricsSockets } from "./metrics-socket.ts";
import { createWorkerGuard } from "./request.ts";

const METRICS_SOCKETS = { clientsMax: 32, waitingBytesMax: 262_144, missedMax: 30 };
const TRACES_FLUSH_MS = 1000;
const SERIES_SAMPLE_MS = 1000;

/** Options of {@link startApi}. */
export type StartApiOptions = Pick<
  GateApiOptions,
  | "access"
  | "cache"
  | "canaries"
  | "controller"
  | "logger"
  | "metrics"
  | "planner"
  | "readConsoleUrl"
  | "signIn"
  | "tracer"
> & {
  address: ControlAddress;
  links: SharedLinkState;
  figures: LinkFigures;
  /** Further collectors of `/metrics`. */
  collectors: readonly Parameters<MetricRegistry["collect"]>[0][];
  lifecycle: Pick<Lifecycle, "onDrain">;
};

/** The running API. */
export interface GateApi {
  registry: MetricRegistry;
  health: HealthRegistry;
  /** Adds a change to the live feed. */
  noteChange: ReturnType<typeof createFeeds>["noteChange"];
  /** Starts the updates of metrics and feeds. */
  start: () => void;
  /** Closes all WebSockets, before the workers that they lead through are drained. */
  closeStreams: () => Promise<void>;
}

/** Listens at the address; the listener closes after the workers. */
export async function startApi(options: StartApiOptions): Promise<GateApi> {
  const { address, controller, figures, links, lifecycle, logger, metrics, planner, tracer } =
    options;
  const { secret } = address;
  const registry = new MetricRegistry();
  const processCollector = createProcessCollector({ service: "gate", version: GATE_VERSION });
  for (const collector of [processCollector, metrics, ...options.collectors]) {
    registry.collect(collector);
  }
  const health = new HealthRegistry({ service: "gate", version: GATE_VERSION });
  const stream = new MetricsStream({
    readTotals: () => metrics.readTotals(),
    readConnections: () => metrics.readConnections(),
    readBreakers: () => readBreakers(planner.listSpecs(), links),
    readNow: () => new Date(),
    readMonotonicMs,
    onError: (error) => logger.error("cannot publish live metrics", { error: String(error) }),
  });
  const sockets = new MetricsSockets({ stream, ...METRICS_SOCKETS });
  const certificates = new Certificates(() => controller.state);
  const feeds = createFeeds({ stream, registry, health, log: logger, certificates, secret });
  const series = new RouteSeries({ planner, links, figures, clock: systemClock });
  const sampling = every(
    SERIES_SAMPLE_MS,
    () => series.sample(),
    (error) => logger.error("cannot sample the routes", { error: String(error) }),
  );
  const accessLog = createAccessLogStreams(controller, {
    guard: createWorkerGuard(secret),
    logger,
  });
  const api = createGateApi({
    ...options,
    readCircuit: (link) => links.describeCircuit(link),
    readWeight: (link) => links.readWeight(link),
    stream,
    series,
    certificates,
    feedRoutes: feeds.createRoutes(),
    registry,
    health,
    clock: systemClock,
    secret,
  });
  const listener = await listenControl(address, api, { metrics: sockets, feeds, accessLog });
  lifecycle.onDrain("control plane", async () => {
    stream.stop();
    await sampling.stop();
    processCollector.close();
    await listener.close(0);
    await tracer.shutdown(TRACES_FLUSH_MS);
  });
  return {
    registry,
    health,
    noteChange: (change) => feeds.noteChange(change),
    start: () => {
      stream.start();
      feeds.start();
    },
    closeStreams: async () => {
      sockets.close();
      await Promise.all([feeds.close(), accessLog.close()]);
    },
  };
}
