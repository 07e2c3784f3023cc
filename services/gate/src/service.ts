// The composition root of the gateway: creates all parts and connects them, from top to bottom.
import { warnOfWeakSecret } from "@platform/kernel/identity";
import type { Lifecycle } from "@platform/kernel/lifecycle";
import { describeFullDisk } from "@platform/kernel/health";
import type { Logger } from "@platform/kernel/log";
import { readDescriptorLimit } from "@platform/kernel/sockets";
import { systemClock } from "@platform/kernel/time";
import { AccessLogRotation } from "./access-log/access-log-rotation.ts";
import type { GateConfig } from "./config/document.ts";
import { type GateSources, type LoadedGate, reloadConfig } from "./config/load.ts";
import { getStateFolder } from "./config/state-folder.ts";
import { AccessControl } from "./access/access-control.ts";
import { startCanaries } from "./resilience/canaries.ts";
import { claimListeners, reportListeners } from "./worker/claimed-listeners.ts";
import { Controller } from "./control/controller.ts";
import { warnOfDescriptorLimit } from "./worker/descriptors.ts";
import { diffRoutes } from "./control/differ.ts";
import { createRevocations, reportSources } from "./access/followed-revocations.ts";
import { GateMetrics } from "./telemetry/gate-metrics.ts";
import { buildState } from "./control/gate-state.ts";
import { createGateTracer } from "./telemetry/gate-tracer.ts";
import { type UsedLogs, buildGlobals } from "./control/globals.ts";
import { HealthChecks } from "./resilience/health-checks.ts";
import { ListenerCertificate } from "./control/listener-certificate.ts";
import { NetworkLists, watchNetworkFiles } from "./resolve/network-lists.ts";
import { OidcSignIn } from "./sign-in/oidc-sign-in.ts";
import {
  createEphemeralOverlay,
  createOverlayFile,
  getOverlayPath,
} from "./control/overlay-file.ts";
import { SharedAccess } from "./access/shared-access.ts";
import { TicketKeys } from "./control/ticket-keys.ts";
import { createSharedTables } from "./control/shared-tables.ts";
import { countSharing, countWorkers } from "./worker/worker-count.ts";
import { WorkerPools } from "./worker/worker-pools.ts";
import { describeSharedConsole, reportConsole, startConsole } from "./http/console.ts";
import { createControlAddress, removeControlAddress } from "./http/control-server.ts";
import { removeDeadControlFolders } from "./http/dead-control-folders.ts";
import { listInternalRoutes, listMainRoutes } from "./http/internal-routes.ts";
import { startApi } from "./http/start-api.ts";
import type { GlobalSpec } from "./shared-state/index.ts";

const ACCESS_LOG_CHECK_MS = 1000;

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

/** Parts that follow files and signals while the gateway runs. */
interface FollowParts {
  controller: Controller;
  certificate: ListenerCertificate;
  networks: NetworkLists;
  pools: WorkerPools;
  lifecycle: Lifecycle;
  log: Logger;
}

/** Starts the gateway; resolves when every worker listens with all routes. */
export async function startGate(options: GateOptions): Promise<void> {
  const { loaded, log, lifecycle } = options;
  const { config } = loaded;

  warnOfWeakSecret(config.jwt_secret, log);
  const overlayPath = getOverlayPath(loaded.path);
  const store = config.ephemeral
    ? createEphemeralOverlay(overlayPath)
    : createOverlayFile(overlayPath, (fault) => log.warn("overlay repaired", { fault }));

  const listeners = await claimListeners(config);
  const address = createControlAddress();
  lifecycle.onDrain("control address", () => removeControlAddress(address));
  const workers = countWorkers(config, log);
  const descriptors = { limit: readDescriptorLimit(), workers: countSharing(config, workers) };
  warnOfDescriptorLimit(config.max_connections, descriptors, log);
  const certificate = new ListenerCertificate(log);
  const context = {
    control: address,
    hasConsole: config.console_addr !== undefined,
    configPath: loaded.path,
    descriptors,
    certificate,
  };
  const networks = new NetworkLists();
  const sharedConsole = describeSharedConsole(config, address);
  const mainContext = {
    ...context,
    console: sharedConsole,
    internalRoutes: listMainRoutes({
      admin: listeners.admin === undefined,
      console: sharedConsole,
    }),
  };
  const buildMainGlobals = (of: GateConfig, logs: UsedLogs): GlobalSpec =>
    buildGlobals(of, mainContext, logs);
  const state = buildState(config, await store.read(), buildMainGlobals, networks);
  await certificate.follow(config);
  const access = new AccessControl({
    folder: getStateFolder(config.data_dir, loaded.path),
    isEphemeral: config.ephemeral,
    cookieKeys: config.cookie_keys?.map((text) => Buffer.from(text, "base64url")),
    clock: systemClock,
    log,
    runExclusive: (work) => controller.runExclusive(work),
    apply: (change) => pools.apply({ access: change, upsert: [], remove: [] }),
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

  const tables = createSharedTables({
    workers: descriptors.workers,
    cacheBytes: config.cache_size,
    onTargetReuse: (slot) => metrics.forgetTarget(slot),
  });
  const { cache, links, planner, targets, readSharedMs } = tables;
  const first = planner.plan(diffRoutes(new Map(), state.resolved));
  first.commit();

  const metrics = new GateMetrics({
    listBlocks: () => pools.listMetrics(),
    planner,
    active: tables.active,
    targets,
    countLiveWorkers: () => pools.countLive(),
    countRoutes: () => controller.state.routes.size,
    cache,
    readSharedMs,
  });
  const revocations = createRevocations(config, log, (entries, version) =>
    pools.revoke(entries, version),
  );
  const adminRoutes = listInternalRoutes("all");
  const ticketKeys = new TicketKeys({
    onRotated: (keys) => pools.setTicketKeys(keys),
    onError: (error) =>
      log.error("cannot rotate the keys of TLS tickets", { error: String(error) }),
  });
  lifecycle.onDrain("keys of TLS tickets", () => ticketKeys.stop());
  const pools = new WorkerPools({
    entry: options.workerEntry,
    shared: tables.buffers,
    log,
    listRevocations: revocations?.list,
    listAccess: () => access.list(),
    readTicketKeys: () => ticketKeys.current,
    cookieKeys: access.cookieKeys,
    refreshSession: (client, sealed) => signIn.refresh(client, sealed),
    onRetired: (block) => metrics.retire(block),
    main: { address: listeners.main, workers, globals: state.globals, routes: first.upsert },
    admin: listeners.admin && {
      address: listeners.admin,
      globals: buildGlobals(
        config,
        { ...context, console: undefined, internalRoutes: adminRoutes },
        { access: false, recording: false },
      ),
      internalRoutes: adminRoutes,
    },
  });
  const canaries = await startCanaries({
    planner,
    links,
    routeStates: tables.routes,
    folder: getStateFolder(config.data_dir, loaded.path),
    isEphemeral: config.ephemeral,
    log,
  });
  lifecycle.onDrain("canaries", () => canaries.timer.stop());
  const checks = new HealthChecks({
    planner,
    targets,
    readNowMs: readSharedMs,
    log: (level, msg, fields) => log[level](msg, fields),
  });
  lifecycle.onDrain("health checks", () => checks.stop());
  const controller: Controller = new Controller(
    {
      planner,
      store,
      networks,
      certificate,
      log,
      loadConfig: () => reloadConfig(options.sources, loaded).config,
      buildGlobals: buildMainGlobals,
      apply: (change) => pools.apply(change),
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
    figures: tables.figures,
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
    const cut = await pools.drain(context.remainingMs());
    if (cut > 0) log.warn("drain deadline cut active exchanges", { cut });
  });
  lifecycle.onDrain("live streams", api.closeStreams);

  await sharedAccess.start();
  await pools.start();
  const front = await startConsole({
    loaded,
    main: listeners.main,
    own: listeners.admin ?? listeners.main,
    socketPath: address.consolePath,
    lifecycle,
    log,
    tracer,
  });
  api.start();
  removeDeadControlFolders(address).catch((error: unknown) => {
    log.warn("cannot remove folders of former control sockets", { error: String(error) });
  });
  const stateFolder = getStateFolder(config.data_dir, loaded.path);
  api.health.setState("ready");
  pools.setReadiness(true, {});
  const sources = revocations === undefined ? [] : [revocations.follower];
  reportSources([...sources, sharedAccess], {
    registry: api.registry,
    health: api.health,
    lifecycle,
    describeDisk: () => describeFullDisk(stateFolder),
    showWarnings: (warnings) => pools.setReadiness(true, warnings),
  });
  lifecycle.stopping.addEventListener("abort", () => {
    api.health.setState("draining");
    // The listeners close now: the next gateway may start while this one drains.
    listeners.release();
    pools.setReadiness(false, { gate: "draining" });
  });
  followFiles({ controller, certificate, networks, pools, lifecycle, log });
  reportListeners(listeners, config, lifecycle);
  reportConsole(lifecycle, config, front);
}

/** Rotates logs, renews the certificate, and reloads at changes of address lists and at SIGHUP. */
function followFiles(parts: FollowParts): void {
  const { controller, certificate, networks, pools, lifecycle, log } = parts;
  const rotation = new AccessLogRotation({
    listSpecs: () => [controller.state.globals.accessLog, controller.state.globals.recording],
    intervalMs: ACCESS_LOG_CHECK_MS,
    onRotated: () => void pools.reopenLogs(),
    onError: (error) => log.error("cannot rotate a log", { error: error.message }),
  });
  lifecycle.onDrain("log rotation", () => rotation.close());
  const networkFiles = watchNetworkFiles(networks, () =>
    controller.reload({ caller: "address list file" }),
  );
  lifecycle.onDrain("address list files", () => networkFiles.stop());
  certificate.start(() => controller.renewCertificate());
  lifecycle.onDrain("certificate", () => certificate.stop());
  lifecycle.onReload("configuration", async () => {
    await pools.reopenLogs();
    // The controller has logged the failure, and the previous configuration stays active.
    await controller.reload({ caller: "SIGHUP" }).catch(() => undefined);
  });
}
