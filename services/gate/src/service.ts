// The composition root of the gateway: creates all parts and connects them, from top to bottom.
import { warnOfWeakSecret } from "@platform/kernel/identity";
import type { Lifecycle } from "@platform/kernel/lifecycle";
import type { Logger } from "@platform/kernel/log";
import { readDescriptorLimit } from "@platform/kernel/sockets";
import { systemClock } from "@platform/kernel/time";
import { AccessControl } from "./control/access-control.ts";
import { AccessLogRotation } from "./access-log/access-log-rotation.ts";
import { type GateConfig, ROUTE_DRAIN_MS_MAX } from "./config/document.ts";
import { type GateSources, type LoadedGate, reloadConfig } from "./config/load.ts";
import { startCanaries } from "./control/canaries.ts";
import { Controller } from "./control/controller.ts";
import { buildState } from "./control/gate-state.ts";
import { warnOfDescriptorLimit } from "./control/descriptors.ts";
import { diffRoutes } from "./control/differ.ts";
import { WorkerPool } from "./control/worker-pool.ts";
import { createRevocations, reportSources } from "./control/followed-revocations.ts";
import { GateMetrics } from "./control/gate-metrics.ts";
import { type UsedLogs, buildGlobals } from "./control/globals.ts";
import {
  type BoundAddress,
  claimListenAddress,
  type ClaimedAddress,
} from "./control/listen-probe.ts";
import {
  createEphemeralOverlay,
  createOverlayFile,
  getOverlayPath,
  getStateFolder,
} from "./control/overlay-file.ts";
import { createGateTracer } from "./control/gate-tracer.ts";
import { countSharing, countWorkers } from "./control/worker-count.ts";
import { HealthChecks } from "./control/health-checks.ts";
import { NetworkLists, watchNetworkFiles } from "./control/network-lists.ts";
import { OidcSignIn } from "./control/oidc-sign-in.ts";
import { RoutePlanner } from "./control/planner.ts";
import { SharedAccess } from "./control/shared-access.ts";
import type { Change } from "./control/worker-handle.ts";
import { describeSharedConsole, reportConsole, startConsole } from "./http/console.ts";
import { createControlAddress, removeControlAddress } from "./http/control-server.ts";
import { startApi } from "./http/start-api.ts";
import { removeDeadControlFolders } from "./http/dead-control-folders.ts";
import { listInternalRoutes, listMainRoutes } from "./http/internal-routes.ts";
import {
  ActiveCounts,
  ConcurrencyRows,
  type GlobalSpec,
  LINKS_MAX,
  ROUTES_MAX,
  SharedCache,
  SharedLinkState,
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
const ACCESS_LOG_CHECK_MS = 1000;
/** Delay before a slot is reused; the streams of its removed route have ended by then. */
const SLOT_REUSE_DELAY_MS = ROUTE_DRAIN_MS_MAX + 10_000;

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
  const descriptors = { limit: readDescriptorLimit(), workers: countSharing(config, workers) };
  warnOfDescriptorLimit(config.max_connections, descriptors, log);
  const context = {
    control: address,
    hasConsole: config.console_addr !== undefined,
    configPath: loaded.path,
    descriptors,
  };
  const networks = new NetworkLists();
  const hasAdminListener = config.admin_addr !== undefined;
  const sharedConsole = describeSharedConsole(config, address);
  const mainContext = {
    ...context,
    console: sharedConsole,
    internalRoutes: listMainRoutes({ admin: !hasAdminListener, console: sharedConsole }),
  };
  const buildMainGlobals = (of: GateConfig, logs: UsedLogs): GlobalSpec =>
    buildGlobals(of, mainContext, logs);
  const state = buildState(config, await store.read(), buildMainGlobals, networks);
  const access = new AccessControl({
    folder: getStateFolder(config.data_dir, loaded.path),
    isEphemeral: config.ephemeral,
    cookieKeys: config.cookie_keys?.map((text) => Buffer.from(text, "base64url")),
    clock: systemClock,
    log,
    runExclusive: (work) => controller.runExclusive(work),
    apply: (change) => applyToAll({ access: change, upsert: [], remove: [] }),
    publish: (entries) => sharedAccess.publish(entries),
  });
  await access.load();
  const sharedAccess = new SharedAccess({
    readUrl: () => controller.state.globals.limitsRedisUrl,
    list: () => access.listShared(),
    merge: (entries) => access.mergeShared(entries),
    clock: systemClock,
    log,
  });
  const signIn = new OidcSignIn({
    findClient: (client) => controller.findOidcClient(client),
    access,
    clock: systemClock,
    log,
  });
  lifecycle.onDrain("state folder", () => access.close());

  const shared = allocateSharedBuffers(descriptors.workers, config.cache_size);
  const cache = new SharedCache(shared.cache, shared.workers);
  const active = new ActiveCounts(shared);
  const targets = new SharedTargetState(shared.targets);
  const routeStates = new SharedRouteState(shared.routes);
  const concurrency = new ConcurrencyRows(shared.concurrency, shared.workers, 0);
  const links = new SharedLinkState(shared.links);
  const planner: RoutePlanner = new RoutePlanner({
    routesMax: ROUTES_MAX,
    targetsMax: TARGETS_MAX,
    linksMax: LINKS_MAX,
    reuseDelayMs: SLOT_REUSE_DELAY_MS,
    readNowMs: readMonotonicMs,
    onRouteReuse: (slot) => {
      routeStates.clear(slot);
      concurrency.clear(slot);
    },
    onLinkReuse: (slot) => links.clear(slot),
    onTargetReuse: (slot) => {
      targets.clear(slot);
      active.clear(slot);
      metrics.forgetTarget(slot);
    },
  });
  const first = planner.plan(diffRoutes(new Map(), state.resolved));
  first.commit();

  const revocations = createRevocations(config, log, (entries, version) => {
    for (const pool of workerPools) pool.revoke(entries, version);
  });
  const workerPools: WorkerPool[] = [];
  const metrics: GateMetrics = new GateMetrics({
    listBlocks: () => workerPools.flatMap((pool) => pool.listMetrics()),
    planner,
    active,
    targets,
    countLiveWorkers: () => workerPools.reduce((sum, pool) => sum + pool.countLive(), 0),
    countRoutes: () => controller.state.routes.size,
    cache,
    readSharedMs: () => readMonotonicMs() - shared.startedMs,
  });
  const workerPoolOptions = {
    entry: options.workerEntry,
    shared,
    log,
    listRevocations: revocations?.list,
    listAccess: () => access.list(),
    cookieKeys: access.cookieKeys,
    refreshSession: (client: string, sealed: string) => signIn.refresh(client, sealed),
    silentMs: WORKER_SILENT_MS,
    stuckMs: WORKER_STUCK_MS,
    startMs: WORKER_START_MS,
    onRetired: (block: Parameters<GateMetrics["retire"]>[0]) => metrics.retire(block),
  };

  const claim = await claimListenAddress(config.addr, "--addr or PLATFORM_GATE_ADDR");
  const place = claim.address;
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
  const adminClaim = await claimAdminAddress(config);
  const adminPlace = adminClaim?.address;
  const admin =
    adminPlace === undefined
      ? undefined
      : new WorkerPool(
          {
            ...workerPoolOptions,
            places: [{ workerIndex: workers, listen: { ...adminPlace, reusePort: false } }],
          },
          buildGlobals(
            config,
            { ...context, console: undefined, internalRoutes: listInternalRoutes("all") },
            { access: false, recording: false },
          ),
          [],
        );
  if (admin !== undefined) workerPools.push(admin);

  const applyToAll = async (change: Change): Promise<void> => {
    await main.apply(change);
    // The admin listener has no routes and other internal routes; all other settings are the same.
    await admin?.apply(toAdminChange(change));
  };
  const canaries = await startCanaries({
    planner,
    links,
    routeStates,
    folder: getStateFolder(config.data_dir, loaded.path),
    isEphemeral: config.ephemeral,
    log,
  });
  lifecycle.onDrain("canaries", () => canaries.timer.stop());
  const checks = new HealthChecks({
    planner,
    targets,
    readNowMs: () => readMonotonicMs() - shared.startedMs,
    log: (level, msg, fields) => log[level](msg, fields),
  });
  lifecycle.onDrain("health checks", () => checks.stop());
  const controller: Controller = new Controller(
    {
      planner,
      store,
      networks,
      log,
      loadConfig: () => reloadConfig(options.sources, loaded).config,
      buildGlobals: buildMainGlobals,
      apply: applyToAll,
      onChange: (title, actor) => api.noteChange({ title, actor, href: "/ui/gateway/routes" }),
    },
    state,
  );

  const tracer = createGateTracer(config, metrics.spanCounts);
  const api = await startApi({
    address,
    controller,
    planner,
    canaries: canaries.engine,
    links,
    metrics,
    collectors: [canaries.engine, checks],
    access,
    cache,
    signIn,
    readConsoleUrl: () => front?.url,
    tracer,
    logger: log,
    lifecycle,
  });
  lifecycle.onDrain("workers", async (context) => {
    const cuts = await Promise.all(workerPools.map((pool) => pool.drain(context.remainingMs())));
    const cut = cuts.reduce((sum, count) => sum + count, 0);
    if (cut > 0) log.warn("drain deadline cut active exchanges", { cut });
  });
  lifecycle.onDrain("live streams", api.closeStreams);

  await sharedAccess.start();
  await Promise.all(workerPools.map((pool) => pool.start()));
  const front = await startConsole({
    loaded,
    main: place,
    own: adminPlace ?? place,
    socketPath: address.consolePath,
    lifecycle,
    log,
    tracer,
  });
  api.start();
  removeDeadControlFolders(address).catch((error: unknown) => {
    log.warn("cannot remove folders of former control sockets", { error: String(error) });
  });
  api.health.setState("ready");
  for (const pool of workerPools) pool.setReadiness(true, {});
  const sources = revocations === undefined ? [] : [revocations.follower];
  reportSources([...sources, sharedAccess], {
    registry: api.registry,
    health: api.health,
    lifecycle,
    showWarnings: (warnings) => {
      for (const pool of workerPools) pool.setReadiness(true, warnings);
    },
  });
  lifecycle.stopping.addEventListener("abort", () => {
    api.health.setState("draining");
    // The listeners close now: the next gateway may start while this one drains.
    claim.release();
    adminClaim?.release();
    for (const pool of workerPools) pool.setReadiness(false, { gate: "draining" });
  });
  const rotation = new AccessLogRotation({
    listSpecs: () => [controller.state.globals.accessLog, controller.state.globals.recording],
    intervalMs: ACCESS_LOG_CHECK_MS,
    onRotated: () => void Promise.all(workerPools.map((pool) => pool.reopenAccessLog())),
    onError: (error) => log.error("cannot rotate a log", { error: error.message }),
  });
  lifecycle.onDrain("log rotation", () => rotation.close());
  const networkFiles = watchNetworkFiles(networks, () =>
    controller.reload({ caller: "address list file" }),
  );
  lifecycle.onDrain("address list files", () => networkFiles.stop());
  lifecycle.onReload("configuration", async () => {
    await Promise.all(workerPools.map((pool) => pool.reopenAccessLog()));
    // The controller has logged the failure, and the previous configuration stays active.
    await controller.reload({ caller: "SIGHUP" }).catch(() => undefined);
  });
  reportListeners(lifecycle, config, place, adminPlace);
  reportConsole(lifecycle, config, front);
}

function toAdminChange(change: Change): Change {
  const access = change.access === undefined ? {} : { access: change.access };
  if (change.globals === undefined) return { ...access, upsert: [], remove: [] };
  const {
    accessLog: _accessLog,
    recording: _recording,
    console: _console,
    ...globals
  } = change.globals;
  return {
    ...access,
    upsert: [],
    remove: [],
    globals: { ...globals, internalRoutes: listInternalRoutes("all") },
  };
}

async function claimAdminAddress(config: GateConfig): Promise<ClaimedAddress | undefined> {
  if (config.admin_addr === undefined) return undefined;
  return claimListenAddress(config.admin_addr, "--admin-addr or PLATFORM_GATE_ADMIN_ADDR");
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
