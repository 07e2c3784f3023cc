// The composition root of the gateway: creates all parts and connects them, from top to bottom.
import { availableParallelism } from "node:os";
import { HealthRegistry } from "@platform/kernel/health";
import { createIdSource } from "@platform/kernel/ids";
import {
  readFeed,
  type Revocation,
  RevocationFollower,
  RevocationSet,
  warnOfWeakSecret,
} from "@platform/kernel/identity";
import type { Lifecycle } from "@platform/kernel/lifecycle";
import type { Logger } from "@platform/kernel/log";
import { MetricRegistry, createProcessCollector } from "@platform/kernel/metrics";
import { readDescriptorLimit } from "@platform/kernel/sockets";
import { every, systemClock } from "@platform/kernel/time";
import {
  type SpanCounts,
  type Tracer,
  createOtlpExporter,
  createTracer,
} from "@platform/kernel/trace";
import { AccessLogRotation } from "./access-log/access-log-rotation.ts";
import { GATE_VERSION, type GateConfig, ROUTE_DRAIN_MS_MAX } from "./config/document.ts";
import { type GateSources, type LoadedGate, reloadConfig } from "./config/load.ts";
import { Controller, buildState } from "./control/controller.ts";
import { warnOfDescriptorLimit } from "./control/descriptors.ts";
import { diffRoutes } from "./control/differ.ts";
import { WorkerPool } from "./control/worker-pool.ts";
import { GateMetrics } from "./control/gate-metrics.ts";
import { buildGlobals } from "./control/globals.ts";
import { type BoundAddress, probeListenAddress } from "./control/listen-probe.ts";
import { MetricsStream } from "./control/metrics-stream.ts";
import {
  createEphemeralOverlay,
  createOverlayFile,
  getOverlayPath,
} from "./control/overlay-file.ts";
import { RoutePlanner } from "./control/planner.ts";
import type { Change } from "./control/worker-handle.ts";
import { createGateApi } from "./http/api.ts";
import {
  createControlAddress,
  listenControl,
  removeControlAddress,
} from "./http/control-server.ts";
import { removeDeadControlFolders } from "./http/dead-control-folders.ts";
import { MetricsSockets } from "./http/metrics-socket.ts";
import { createFeeds } from "./http/feeds.ts";
import { listInternalRoutes } from "./http/internal-routes.ts";
import {
  ActiveCounts,
  type GlobalSpec,
  ROUTES_MAX,
  SharedRouteState,
  SharedTargetState,
  TARGETS_MAX,
  allocateSharedBuffers,
  readMonotonicMs,
} from "./shared-state/index.ts";

/** Timeout for a worker's reply to a change, after which it is replaced. */
const WORKER_SILENT_MS = 2000;
/** Timeout for a worker's heartbeat, after which it is replaced. */
const WORKER_STUCK_MS = 15_000;
const WORKER_START_MS = 30_000;
const TRACES_FLUSH_MS = 1000;
const ACCESS_LOG_CHECK_MS = 1000;
const WARNING_CHECK_MS = 1000;
/** Delay before a slot is reused; the streams of its removed route have ended by then. */
const SLOT_REUSE_DELAY_MS = ROUTE_DRAIN_MS_MAX + 10_000;
const METRICS_SOCKETS = { clientsMax: 32, waitingBytesMax: 262_144, missedMax: 30 };
/** Systems on which several threads can share a listening port. */
const REUSE_PORT_PLATFORMS: ReadonlySet<string> = new Set(["linux", "freebsd", "aix", "sunos"]);

/** Options of {@link startGate}. */
export interface GateOptions {
  loaded: LoadedGate;
  /** Configuration sources for reloads. */
  sources: GateSources;
  log: Logger;
  lifecycle: Lifecycle;
  /** Entry module of the worker threads. */
  workerEntry: URL;
}

/** Starts the gateway; resolves when every worker listens with all routes. */
export async function startGate(options: GateOptions): Promise<void> {
  const { loaded, log, lifecycle } = options;
  const { config } = loaded;

  warnOfWeakSecret(config.jwt_secret, log);
  const overlayPath = getOverlayPath(loaded.path);
  const store = config.ephemeral
    ? createEphemeralOverlay(overlayPath)
    : createOverlayFile(overlayPath);

  const address = createControlAddress();
  lifecycle.onDrain("control address", () => removeControlAddress(address));
  const workers = countWorkers(config, log);
  const descriptors = {
    limit: readDescriptorLimit(),
    workers: config.admin_addr === undefined ? workers : workers + 1,
  };
  warnOfDescriptorLimit(config.max_connections, descriptors, log);
  const buildListenerGlobals = (scope: "all" | "probes", of: GateConfig, hasAccessLog: boolean) =>
    buildGlobals(
      of,
      {
        control: address,
        internalRoutes: listInternalRoutes(scope),
        configPath: loaded.path,
        descriptors,
      },
      hasAccessLog,
    );
  const mainScope = config.admin_addr === undefined ? "all" : "probes";
  const buildMainGlobals = (of: GateConfig, hasAccessLog: boolean): GlobalSpec =>
    buildListenerGlobals(mainScope, of, hasAccessLog);
  const state = buildState(config, await store.read(), buildMainGlobals);

  const shared = allocateSharedBuffers(mainScope === "all" ? workers : workers + 1);
  const active = new ActiveCounts(shared);
  const targets = new SharedTargetState(shared.targets);
  const routeStates = new SharedRouteState(shared.routes);
  const planner: RoutePlanner = new RoutePlanner({
    routesMax: ROUTES_MAX,
    targetsMax: TARGETS_MAX,
    reuseDelayMs: SLOT_REUSE_DELAY_MS,
    readNowMs: readMonotonicMs,
    onRouteReuse: (slot) => routeStates.clear(slot),
    onTargetReuse: (slot) => {
      targets.clear(slot);
      active.clear(slot);
      metrics.forgetTarget(slot);
    },
  });
  const first = planner.plan(diffRoutes(new Map(), state.resolved));
  first.commit();

  const revocations = createRevocations(config, log, (entries) => {
    for (const pool of workerPools) pool.revoke(entries);
  });
  const workerPools: WorkerPool[] = [];
  const metrics: GateMetrics = new GateMetrics({
    listBlocks: () => workerPools.flatMap((pool) => pool.listMetrics()),
    planner,
    active,
    targets,
    countLiveWorkers: () => workerPools.reduce((sum, pool) => sum + pool.countLive(), 0),
    countRoutes: () => controller.state.routes.size,
    readSharedMs: () => readMonotonicMs() - shared.startedMs,
  });
  const workerPoolOptions = {
    entry: options.workerEntry,
    shared,
    log,
    listRevocations: revocations?.list,
    silentMs: WORKER_SILENT_MS,
    stuckMs: WORKER_STUCK_MS,
    startMs: WORKER_START_MS,
    onRetired: (block: Parameters<GateMetrics["retire"]>[0]) => metrics.retire(block),
  };

  const place = await probeListenAddress(config.addr, "--addr or PLATFORM_GATE_ADDR");
  const reusePort = workers > 1;
  const main = new WorkerPool(
    {
      ...workerPoolOptions,
      places: Array.from({ length: workers }, (_, workerIndex) => ({
        workerIndex,
        listen: { ...place, reusePort },
      })),
    },
    state.globals,
    first.upsert,
  );
  workerPools.push(main);
  const adminPlace = await probeAdminAddress(config);
  const admin =
    adminPlace === undefined
      ? undefined
      : new WorkerPool(
          {
            ...workerPoolOptions,
            places: [{ workerIndex: workers, listen: { ...adminPlace, reusePort: false } }],
          },
          buildListenerGlobals("all", config, false),
          [],
        );
  if (admin !== undefined) workerPools.push(admin);

  const controller: Controller = new Controller(
    {
      planner,
      store,
      log,
      loadConfig: () => reloadConfig(options.sources, loaded).config,
      buildGlobals: buildMainGlobals,
      apply: async (change) => {
        await main.apply(change);
        // The admin listener has no routes and other internal routes; all other settings are the same.
        await admin?.apply(toAdminChange(change));
      },
      onChange: (title, actor) => feeds.noteChange({ title, actor, href: "/ui/gateway/routes" }),
    },
    state,
  );

  const registry = new MetricRegistry();
  const processCollector = createProcessCollector({ service: "gate", version: GATE_VERSION });
  registry.collect(processCollector);
  registry.collect(metrics);
  const health = new HealthRegistry({ service: "gate", version: GATE_VERSION });
  const tracer = createGateTracer(config, metrics.spanCounts);
  const stream = new MetricsStream({
    readTotals: () => metrics.readTotals(),
    readConnections: () => metrics.readConnections(),
    readNow: () => new Date(),
    readMonotonicMs,
    onError: (error) => log.error("cannot publish live metrics", { error: String(error) }),
  });
  const sockets = new MetricsSockets({ stream, ...METRICS_SOCKETS });
  const feeds = createFeeds({ stream, registry, health, log, secret: address.secret });
  const api = createGateApi({
    controller,
    planner,
    metrics,
    stream,
    feedRoutes: feeds.createRoutes(),
    registry,
    health,
    tracer,
    clock: systemClock,
    logger: log,
    secret: address.secret,
  });
  const listener = await listenControl(address, api, sockets, feeds);
  lifecycle.onDrain("control plane", async () => {
    stream.stop();
    processCollector.close();
    await listener.close(0);
    await tracer.shutdown(TRACES_FLUSH_MS);
  });
  lifecycle.onDrain("workers", async (context) => {
    const cuts = await Promise.all(workerPools.map((pool) => pool.drain(context.remainingMs())));
    const cut = cuts.reduce((sum, count) => sum + count, 0);
    if (cut > 0) log.warn("drain deadline cut active exchanges", { cut });
  });
  lifecycle.onDrain("live metrics", async () => {
    sockets.close();
    await feeds.close();
  });

  await Promise.all(workerPools.map((pool) => pool.start()));
  stream.start();
  feeds.start();
  removeDeadControlFolders(address).catch((error: unknown) => {
    log.warn("cannot remove folders of former control sockets", { error: String(error) });
  });
  health.setState("ready");
  for (const pool of workerPools) pool.setReadiness(true, {});
  reportRevocations(revocations?.follower, {
    registry,
    lifecycle,
    showWarning: (text) => {
      for (const pool of workerPools)
        pool.setReadiness(true, text === undefined ? {} : { revocations: text });
    },
  });
  lifecycle.stopping.addEventListener("abort", () => {
    health.setState("draining");
    for (const pool of workerPools) pool.setReadiness(false, { gate: "draining" });
  });
  const rotation = new AccessLogRotation({
    readSpec: () => controller.state.globals.accessLog,
    intervalMs: ACCESS_LOG_CHECK_MS,
    onRotated: () => void Promise.all(workerPools.map((pool) => pool.reopenAccessLog())),
    onError: (error) => log.error("cannot rotate the access log", { error: error.message }),
  });
  lifecycle.onDrain("access log rotation", () => rotation.close());
  lifecycle.onReload("configuration", async () => {
    await Promise.all(workerPools.map((pool) => pool.reopenAccessLog()));
    // The controller has logged the failure, and the previous configuration stays active.
    await controller.reload({ caller: "SIGHUP" }).catch(() => undefined);
  });
  reportListeners(lifecycle, config, place, adminPlace);
}

function toAdminChange(change: Change): Change {
  if (change.globals === undefined) return { upsert: [], remove: [] };
  const { accessLog: _accessLog, ...globals } = change.globals;
  return {
    upsert: [],
    remove: [],
    globals: { ...globals, internalRoutes: listInternalRoutes("all") },
  };
}

interface RevocationParts {
  registry: MetricRegistry;
  lifecycle: Lifecycle;
  /** Shows a warning in the responses of the readiness probe, or removes it. */
  showWarning: (text: string | undefined) => void;
}

interface GateRevocations {
  follower: RevocationFollower;
  list: () => { issuer: string; entries: Revocation[] };
}

// One follower for all workers: it passes each page to them, and new workers begin with all entries.
function createRevocations(
  config: GateConfig,
  log: Logger,
  onAdded: (entries: readonly Revocation[]) => void,
): GateRevocations | undefined {
  const feed = readFeed(config);
  if (feed === undefined) return undefined;
  const { jwt_issuer: issuer = "" } = config;
  const revocations = new RevocationSet(issuer);
  const follower = new RevocationFollower({
    ...feed,
    revocations,
    onAdded,
    clock: systemClock,
    log,
  });
  follower.start();
  return { follower, list: () => ({ issuer, entries: revocations.list() }) };
}

function reportRevocations(
  follower: RevocationFollower | undefined,
  { registry, lifecycle, showWarning }: RevocationParts,
): void {
  if (follower === undefined) return;
  registry.collect(follower);
  let shown: string | undefined;
  const timer = every(
    WARNING_CHECK_MS,
    () => {
      const warning = follower.describe();
      if (warning === shown || lifecycle.stopping.aborted) return;
      shown = warning;
      showWarning(warning);
    },
    () => undefined,
  );
  lifecycle.onDrain("revocations", async () => {
    await timer.stop();
    await follower.stop();
  });
}

// The span counts of the control plane are merged with those of the workers, not kept in the tracer's own registry.
function createGateTracer(config: GateConfig, counts: SpanCounts): Tracer {
  const { otlp_endpoint: endpoint } = config;
  const resource = { service: "gate", version: GATE_VERSION };
  return createTracer({
    ids: createIdSource(),
    clock: systemClock,
    exporter:
      endpoint === undefined ? undefined : createOtlpExporter({ endpoint, resource, counts }),
  });
}

function countWorkers(config: GateConfig, log: Logger): number {
  const wanted = config.workers === "auto" ? availableParallelism() : config.workers;
  if (wanted === 1 || REUSE_PORT_PLATFORMS.has(process.platform)) return wanted;
  if (config.workers !== "auto") {
    log.warn("starting one worker: threads cannot share a port on this system", { wanted });
  }
  return 1;
}

async function probeAdminAddress(config: GateConfig): Promise<BoundAddress | undefined> {
  if (config.admin_addr === undefined) return undefined;
  return probeListenAddress(config.admin_addr, "--admin-addr or PLATFORM_GATE_ADMIN_ADDR");
}

function reportListeners(
  lifecycle: Lifecycle,
  config: GateConfig,
  place: BoundAddress,
  adminPlace: BoundAddress | undefined,
): void {
  const name = config.tls_cert === undefined ? "http" : "https";
  lifecycle.reportListener({ name, ...place });
  if (adminPlace !== undefined) lifecycle.reportListener({ name: "admin", ...adminPlace });
}
