// Starts the control plane's API with what it shows: metrics, live feeds, the stream of requests, certificates.
import { openService } from "@platform/chassis";
import type { HealthRegistry } from "@platform/kernel/health";
import type { Lifecycle } from "@platform/kernel/lifecycle";
import type { Logger } from "@platform/kernel/log";
import type { MetricRegistry } from "@platform/kernel/metrics";
import { every } from "@platform/kernel/time";
import { collectExpiry } from "@platform/kernel/tls";
import type { Tracer } from "@platform/kernel/trace";
import { type GateConfig, GATE_VERSION } from "../config/document.ts";
import { readBreakers } from "../resilience/breakers.ts";
import type { Canaries } from "../resilience/canaries.ts";
import type { HealthChecks } from "../resilience/health-checks.ts";
import { CertificateHealth } from "../control/certificate-health.ts";
import { Certificates } from "../control/certificates.ts";
import type { ListenerCertificate } from "../control/listener-certificate.ts";
import { MetricsStream } from "../telemetry/metrics-stream.ts";
import { RouteSeries } from "../telemetry/route-series.ts";
import { toUsd } from "../ai/price/price-table.ts";
import {
  readDay,
  readMonotonicMs,
  type LinkFigures,
  type SharedLinkState,
} from "../shared-state/index.ts";
import { createAccessLogStreams } from "./access-log-api.ts";
import { createGateApi, type GateApiOptions } from "./api.ts";
import { type ControlAddress, listenControl } from "./control-server.ts";
import { openOperation } from "./feeds.ts";
import type { WorkerPools } from "../worker/worker-pools.ts";
import { MetricsSockets } from "./metrics-socket.ts";
import { createWorkerGuard } from "./request.ts";

const METRICS_SOCKETS = { clientsMax: 32, waitingBytesMax: 262_144, missedMax: 30 };
const SERIES_SAMPLE_MS = 1000;

/** Options of {@link startApi}. */
export type StartApiOptions = Pick<
  GateApiOptions,
  | "access"
  | "ai"
  | "automatic"
  | "gitops"
  | "listSources"
  | "cache"
  | "controller"
  | "metrics"
  | "middleware"
  | "planner"
  | "signIn"
> & {
  config: GateConfig;
  log: Logger;
  lifecycle: Lifecycle;
  address: ControlAddress;
  pools: Pick<WorkerPools, "findSpans">;
  links: SharedLinkState;
  figures: LinkFigures;
  canaries: Canaries;
  checks: HealthChecks;
  certificate: ListenerCertificate;
};

/** The running API. */
export interface GateApi {
  readonly registry: MetricRegistry;
  readonly certificateHealth: CertificateHealth;
  readonly health: HealthRegistry;
  readonly tracer: Tracer;
  /** Sets the address of the console, to which `/ui/` leads. */
  setConsoleUrl(url: string | undefined): void;
  /** Starts the updates of metrics and feeds. The API is ready. */
  start(): void;
}

/** Listens at the address; the listener closes after the workers. */
export async function startApi(options: StartApiOptions): Promise<GateApi> {
  const { config, log, lifecycle, address, controller, figures, links, planner } = options;
  const { canaries, checks, metrics, pools } = options;
  const { secret } = address;
  const { otlp_endpoint } = config;
  const base = { name: "gate", version: GATE_VERSION, config: { otlp_endpoint } };
  const { spanCounts } = metrics;
  const service = openService({ ...base, log, lifecycle, spanCounts });
  const { metrics: registry, health, tracer, clock } = service;
  collectExpiry(registry, "the gateway", () => options.certificate.watch);
  for (const collector of [metrics, canaries.engine, checks, options.ai.figures])
    registry.collect(collector);
  const stream = openMetricsStream(options);
  const certificates = new Certificates(
    () => controller.state,
    (source, file) => options.certificate.findRenewal(source, file),
  );
  const certificateHealth = new CertificateHealth(certificates, clock);
  const readCost = (): number => readCostToday(options.ai.ledger);
  const operation = openOperation(service, stream, certificates, readCost, secret, pools);
  const { feeds } = operation;
  controller.onChange((title, actor) =>
    feeds.noteChange({ title, actor, href: "/ui/gateway/routes" }),
  );
  const series = new RouteSeries({ planner, links, figures, clock });
  startSampling(series, options);
  const sockets = new MetricsSockets({ stream, ...METRICS_SOCKETS });
  lifecycle.onDrain("sockets of metrics", () => sockets.close(), "streams");
  const guard = createWorkerGuard(secret);
  const accessLog = createAccessLogStreams(controller, { guard, logger: log });
  lifecycle.onDrain("stream of requests", () => accessLog.close(), "streams");
  let consoleUrl: string | undefined;
  const api = createGateApi({
    ...options,
    service,
    operation,
    canaries: canaries.engine,
    readCircuit: (link) => links.describeCircuit(link),
    readWeight: (link) => links.readWeight(link),
    stream,
    series,
    certificates,
    readConsoleUrl: () => consoleUrl,
  });
  await listenControl(service, address, api, { metrics: sockets, feeds, accessLog });
  return {
    registry,
    certificateHealth,
    health,
    tracer,
    setConsoleUrl: (url) => void (consoleUrl = url),
    start: () => {
      stream.start();
      service.setReady();
    },
  };
}

function openMetricsStream({
  links,
  planner,
  metrics,
  lifecycle,
  log,
  ai,
}: StartApiOptions): MetricsStream {
  const stream = new MetricsStream({
    readTotals: () => metrics.readTotals(),
    readConnections: () => metrics.readConnections(),
    readBreakers: () => readBreakers(planner.listSpecs(), links),
    readModels: () => ai.figures.readTotals(),
    readNow: () => new Date(),
    readMonotonicMs,
    onError: (error) => log.error("cannot publish live metrics", { error: String(error) }),
  });
  lifecycle.onDrain("live metrics", () => stream.stop());
  return stream;
}

// Reserved money counts: it is the most that may have been spent.
function readCostToday(ledger: StartApiOptions["ai"]["ledger"]): number {
  const spending = ledger.listSpending(readDay(Date.now()));
  return toUsd(spending.reduce((sum, { pico }) => sum + pico, 0n));
}

function startSampling(series: RouteSeries, { lifecycle, log }: StartApiOptions): void {
  const sampling = every(
    SERIES_SAMPLE_MS,
    () => series.sample(),
    (error) => log.error("cannot sample the routes", { error: String(error) }),
  );
  lifecycle.onDrain("series of routes", () => sampling.stop());
}
