// Starts the relay.
import {
  createEngine,
  createServer,
  type Engine,
  type Server,
  type ServerTls,
} from "@platform/http1";
import { clearDatabaseCopies } from "@platform/kernel/backup";
import { HealthRegistry } from "@platform/kernel/health";
import { createApi } from "@platform/kernel/http";
import { followRevocations } from "@platform/kernel/identity";
import { createIdSource } from "@platform/kernel/ids";
import { explainListenError, type Lifecycle } from "@platform/kernel/lifecycle";
import type { Logger } from "@platform/kernel/log";
import { createProcessCollector, MetricRegistry } from "@platform/kernel/metrics";
import { AddressSet } from "@platform/kernel/network";
import { every, sweepEvery, systemClock, type Clock } from "@platform/kernel/time";
import { type Certificates, CertificateWatch, pickCertificateFiles } from "@platform/kernel/tls";
import {
  createOtlpExporter,
  createSpanCounts,
  createTracer,
  type SpanExporter,
} from "@platform/kernel/trace";
import { CaptureStore } from "./capture/capture-store.ts";
import { VERSION, type RelayConfig } from "./config.ts";
import { openRelayDatabase } from "./database/open.ts";
import { loadSecret } from "./database/secrets.ts";
import { migrateAll } from "./database/schema.ts";
import { describeState } from "./database/state.ts";
import { GoAwayCode } from "./frame/format.ts";
import { ReceiveBudget } from "./frame/receive-budget.ts";
import { createRelayBackupRoute } from "./http/backup-route.ts";
import { createConsole } from "./http/console.ts";
import { acceptStream, createFeeds } from "./http/feeds.ts";
import { createApiHandler } from "./http/serve-api.ts";
import { createConnectRoute } from "./http/connect-route.ts";
import { createRequestRoutes } from "./http/request-routes.ts";
import { createRequestStreams } from "./http/request-stream.ts";
import { createShareRoutes } from "./http/share-routes.ts";
import { createSubjectRoutes } from "./http/subject-routes.ts";
import { createTunnelRoutes } from "./http/tunnel-routes.ts";
import { createRelayGuard, requireOpening } from "./identity.ts";
import { createRelayMetrics, type RelayGauges } from "./metrics.ts";
import { CustomDomains, type CustomDomainsOptions } from "./name/custom-domains.ts";
import { isDomain } from "./name/hosts.ts";
import { PublicUrls } from "./name/public-urls.ts";
import { Subjects } from "./name/subjects.ts";
import { TunnelStore } from "./name/tunnel-store.ts";
import { Access } from "./relay/access.ts";
import { answerProblem, Connector } from "./relay/connect.ts";
import { Forwarder } from "./relay/forwarder.ts";
import { Hub } from "./relay/hub.ts";
import { Replayer } from "./relay/replay.ts";
import { RequestHandler } from "./relay/request-handler.ts";
import { RequestState, type RelayExchange } from "./relay/request-state.ts";
import { ShareAccess } from "./relay/share-access.ts";
import { createThrottles } from "./relay/throttle.ts";
import { createThrottledGuard } from "./relay/throttled-guard.ts";
import { ShareLinks } from "./share/share-links.ts";

/** Options of {@link startRelay}. */
export interface RelayOptions {
  config: RelayConfig;
  log: Logger;
  lifecycle: Pick<Lifecycle, "onDrain" | "onReload" | "reportListener" | "stopping">;
  clock?: Clock;
  /** Looks up TXT records; tests pass their own. */
  lookUpTxt?: CustomDomainsOptions["lookUp"];
}

/** A running relay. */
export interface Relay {
  /** The actual port. */
  readonly port: number;
}

const SWEEP_MS = 1_000;
const STORE_SWEEP_MS = 600_000;
const TRACES_FLUSH_MS = 1_000;
/** Event streams and WebSockets are ended after this part of the drain. */
const STREAMS_DRAIN_MS = 2_000;

/** Starts the relay; when this resolves, it accepts clients and requests. */
export async function startRelay(options: RelayOptions): Promise<Relay> {
  const { config, log, lifecycle, clock = systemClock } = options;
  const ids = createIdSource({ clock });
  const { data_dir: dataDir, database_url: url } = config;
  const database = openRelayDatabase({ url, dataDir, log });
  lifecycle.onDrain("database", () => database.close());
  await migrateAll(database, clock.now());
  const state = describeState(config);
  await clearDatabaseCopies(state);
  const telemetry = createTelemetry(config, log);
  const { health, registry, spans } = telemetry;
  health.addCheck("database", () => database.check());
  lifecycle.onDrain("telemetry", telemetry.close);

  const { domain } = config;
  const store = new TunnelStore({
    database,
    clock,
    ids,
    namesPerSubjectMax: config.names_per_subject_max,
    retentionMs: config.name_retention_ms,
    tcpPorts: config.tcp_ports,
  });
  const secret = await loadSecret(database, "domain-proofs");
  const domains = new CustomDomains({
    database,
    clock,
    secret,
    domain,
    ...(options.lookUpTxt === undefined ? {} : { lookUp: options.lookUpTxt }),
  });
  const subjects = new Subjects(database, clock);
  const links = new ShareLinks({
    database,
    clock,
    ids,
    secret: await loadSecret(database, "share-links"),
  });
  await Promise.all([store.load(), domains.load(), subjects.load(), links.load()]);
  const capture = new CaptureStore({
    requestsMax: config.max_ring_buffer,
    bytesMax: config.capture_bytes_max,
  });

  const hub = new Hub(clock);
  const budget = new ReceiveBudget();
  const gauges: RelayGauges = {
    countClients: () => hub.clients,
    countTunnels: () => hub.tunnels,
    countStreams: () => hub.streams,
    countCaptured: () => capture.size,
    heldBytes: () => budget.heldBytes,
  };
  const metrics = createRelayMetrics(registry, gauges);
  const followed = followRevocations({ config, clock, log, metrics: registry });
  lifecycle.onDrain("revocations", () => followed.stop());
  health.addWarning("revocations", followed.describe);
  const guard = createRelayGuard(config, followed.revocations, clock, log);
  const throttles = createThrottles(clock);
  const urls = new PublicUrls(config);
  const formatUrl = urls.format.bind(urls);
  const replayer = new Replayer({
    hub,
    capture,
    clock,
    tracer: telemetry.tracer,
    responseTimeoutMs: config.response_timeout_ms,
  });
  const trusted = new AddressSet(config.trusted_proxies);
  const throttled = createThrottledGuard({ guard, throttles }, trusted);
  const webConsole = createConsole({ config, guard: throttled, clock });
  const { guard: apiGuard } = webConsole;
  const feeds = createFeeds({ registry, gauges, health, guard: apiGuard, clock, logger: log });
  lifecycle.onDrain("admin feeds", () => feeds.close());
  const requests = createRequestStreams({ store, capture, clock, guard: apiGuard, logger: log });
  lifecycle.onDrain("streams of requests", () => requests.close());
  const backup = createRelayBackupRoute({
    database,
    state,
    token: config.backup_token,
    stopping: lifecycle.stopping,
    clock,
    metrics: registry,
  });
  const api = createApi({
    service: "tunnel",
    version: VERSION,
    title: "Tunnel",
    guard: apiGuard,
    health,
    metrics: registry,
    metricsToken: config.metrics_token,
    logger: log,
    tracer: telemetry.tracer,
    clock,
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
      ...createSubjectRoutes({
        subjects,
        onCutOff: (subject, reason) => hub.dropSubject(subject, reason),
      }),
      backup,
      ...feeds.createRoutes(),
      ...webConsole.createRoutes(),
    ],
  });

  const engine = createEngine();
  const forwarder = new Forwarder({
    domain,
    metrics,
    spans,
    onFinished: (tunnel, state, end) => {
      hub.findClient(tunnel.row.id)?.note({
        tunnel: tunnel.number,
        id: state.tap?.id ?? "",
        time: new Date(state.startedAtEpochMs).toISOString(),
        method: state.method,
        path: state.path,
        status: end.status,
        latency_ms: Math.round(end.totalMs * 1_000) / 1_000,
      });
    },
  });
  const connector = new Connector({
    config,
    guard,
    throttles,
    subjects,
    store,
    domains,
    hub,
    engine,
    budget,
    ids,
    log,
    tracer: telemetry.tracer,
    streams: followed.streams,
    formatUrl,
    onReconnected: () => metrics.reconnections.add(),
    isDraining: () => lifecycle.stopping.aborted,
  });
  const shares = new ShareAccess({
    links,
    throttles,
    clock,
    isSecure: () => urls.origin.protocol === "https:",
  });
  const onError = (error: unknown): void => {
    log.error("internal error while handling a request", { error });
  };
  const serveApi = createApiHandler<RequestState>({ api, answerProblem });
  const handler = new RequestHandler({
    domain,
    trusted,
    clock,
    store,
    domains,
    hub,
    access: new Access({ guard, throttles, shares }),
    forwarder,
    capture: config.max_ring_buffer === 0 ? undefined : capture,
    connect: (exchange) => connector.handle(exchange),
    serveApi: (exchange) => {
      if (!acceptStream({ feeds, requests }, exchange)) serveApi(exchange);
    },
    onError,
  });
  const server = await listen(options, engine, (exchange) => handler.handle(exchange), onError);
  const { port } = server;
  urls.port = port;

  const storeSweeps = {
    links: () => links.sweep(),
    tunnels: () => store.sweep((row) => hub.find(row.id) !== undefined),
    captures: () => capture.retain((id) => store.find(id) !== undefined),
  };
  const sweeps = [
    every(SWEEP_MS, () => hub.sweep(), onError),
    sweepEvery(STORE_SWEEP_MS, storeSweeps, onError),
  ];
  lifecycle.onDrain("sweeps", async () => {
    await Promise.all(sweeps.map((sweep) => sweep.stop()));
    engine.close();
  });
  lifecycle.onDrain("relay", async (context) => {
    hub.goAway(GoAwayCode.Draining, "the relay is restarting");
    await server.drain(context.remainingMs(), STREAMS_DRAIN_MS);
    await hub.drain(context.remainingMs());
  });
  feeds.start();
  health.setState("ready");
  lifecycle.stopping.addEventListener("abort", () => health.setState("draining"));
  const name = config.tls_cert === undefined ? "http" : "https";
  lifecycle.reportListener({ name, host: config.addr.host ?? "::", port });
  return { port };
}

function createTelemetry(config: RelayConfig, log: Logger) {
  const registry = new MetricRegistry();
  const resource = { service: "tunnel", version: VERSION };
  const processCollector = createProcessCollector(resource);
  registry.collect(processCollector);
  const endpoint = config.otel_endpoint;
  // Spans of proxied requests are built from the request's ids, without an object per request.
  const spans: SpanExporter | undefined =
    endpoint === undefined
      ? undefined
      : createOtlpExporter({ endpoint, resource, counts: createSpanCounts(registry) });
  const tracer = createTracer({ ids: createIdSource(), clock: systemClock, exporter: spans });
  return {
    registry,
    tracer,
    spans,
    health: new HealthRegistry({
      ...resource,
      onCheckError: (check, error) => log.error("health check failed", { check, error }),
    }),
    close: async () => {
      processCollector.close();
      await tracer.shutdown(TRACES_FLUSH_MS);
    },
  };
}

async function listen(
  { config, log, lifecycle }: RelayOptions,
  engine: Engine,
  handler: (exchange: RelayExchange) => void,
  onError: (error: unknown) => void,
): Promise<Pick<Server, "drain"> & { port: number }> {
  const trusted = new AddressSet(config.trusted_proxies);
  const certificates = openCertificates(config, log);
  const server = createServer<RequestState>({
    engine,
    handler,
    createUserData: () => new RequestState(),
    limits: {
      connectionsMax: config.connections_max,
      ...(config.connections_per_address_max === undefined
        ? {}
        : { connectionsPerAddressMax: config.connections_per_address_max }),
    },
    isProxyAddress: (address) => trusted.has(address),
    ...(certificates === undefined ? {} : { tls: describeTls(certificates.current) }),
    onHandlerError: onError,
    onFault: (fault) => log.debug("public connection failed", { ...fault }),
  });
  const { host = "::", port } = config.addr;
  await server.listen({ host, port }).catch(async (error: unknown) => {
    throw await explainListenError(error, config.addr, "--addr or PLATFORM_TUNNEL_ADDR");
  });
  certificates?.follow(lifecycle, (next) => server.setTls(describeTls(next)));
  const address = server.address();
  return {
    drain: (deadlineMs, streamsMs) => server.drain(deadlineMs, streamsMs),
    port: address !== null && "port" in address ? address.port : port,
  };
}

function openCertificates(config: RelayConfig, log: Logger): CertificateWatch | undefined {
  const files = pickCertificateFiles(config);
  const { tls_dir: folder } = config;
  if (files !== undefined)
    return new CertificateWatch({ pairs: [files], folder, isName: isDomain, log });
  if (folder === undefined) return undefined;
  throw new Error("tls_dir requires tls_cert and tls_key");
}

/** `_.example.org` is the name of the files for `*.example.org`. */
function describeTls({ pairs: [fallback], named }: Certificates): ServerTls {
  const names = [...named].map(([name, pair]) => [name.replace(/^_\./, "*."), pair] as const);
  return { fallback: fallback!, names: new Map(names) };
}
