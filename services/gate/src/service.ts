// Starts the gateway: the order of its parts.
import { describeFullDisk } from "@platform/kernel/health";
import { warnOfWeakSecret } from "@platform/kernel/identity";
import type { Lifecycle } from "@platform/kernel/lifecycle";
import type { Logger } from "@platform/kernel/log";
import { reportSources } from "./access/followed-revocations.ts";
import { type Access, openAccess } from "./assembly/access.ts";
import { type Base, openBase } from "./assembly/base.ts";
import { followFiles } from "./assembly/following.ts";
import { openTraffic, type Traffic } from "./assembly/traffic.ts";
import { openGit } from "./assembly/git.ts";
import { loadRemote } from "./assembly/remote.ts";
import { type GateSources, type LoadedGate, reloadConfig } from "./config/load.ts";
import { reportConsole, startConsole } from "./http/console.ts";
import { removeDeadControlFolders } from "./http/dead-control-folders.ts";
import { type GateApi, startApi } from "./http/start-api.ts";
import type { GitSource } from "./source/git-source.ts";
import type { RemoteConfig } from "./source/remote-config.ts";
import type { SourceView } from "./source/source-view.ts";
import { reportListeners } from "./worker/claimed-listeners.ts";

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
  const { sources, log, lifecycle } = options;
  const { loaded, remote } = await loadRemote(options.loaded, sources, log);
  const { config } = loaded;
  warnOfWeakSecret(config.jwt_secret, log);
  const base = await openBase(loaded, log, lifecycle);
  const loadConfig = () => reloadConfig(sources, loaded, remote?.document).config;
  const traffic = await openTraffic(base, options.workerEntry, loadConfig);
  const access = await openAccess(base, traffic);
  const git = openGit(loaded, sources, traffic.controller);
  const api = await startApi({
    ...base,
    ...traffic,
    ...traffic.tables,
    ...access,
    gitops: { git, secret: config["gitops.secret"] },
    listSources: () => listSources(base, remote, git),
  });
  drainWorkers(base, traffic);
  await access.sharedAccess.start();
  await traffic.pools.start(access.sources);
  const { listeners, address } = base;
  const front = await startConsole({
    loaded,
    main: listeners.main,
    own: findOwnListener(base),
    socketPath: address.consolePath,
    lifecycle,
    log,
    tracer: api.tracer,
  });
  api.setConsoleUrl(front?.url);
  api.start();
  removeDeadControlFolders(address).catch((error: unknown) => {
    log.warn("cannot remove folders of former control sockets", { error: String(error) });
  });
  traffic.pools.setReadiness(true, {});
  showReadiness(base, traffic, access, api, remote);
  followFiles(base, traffic);
  if (remote !== undefined) await followRemote(remote, traffic, log);
  await base.automatic?.start(traffic.controller, lifecycle, log);
  reportListeners(listeners, base.state.globals.tls !== undefined, lifecycle);
  reportConsole(lifecycle, front);
}

/** The listener of the gateway's own API; a certificate of public names is of no use between programs of this machine. */
function findOwnListener({ listeners, state }: Base) {
  const { main, admin, local } = listeners;
  if (admin === undefined && local !== undefined) return { ...local, isSecure: false };
  return { ...(admin ?? main), isSecure: state.globals.tls !== undefined };
}

async function followRemote(
  remote: RemoteConfig,
  { controller }: Traffic,
  log: Logger,
): Promise<void> {
  await remote.keep();
  remote.start(async () => {
    const { restartRequired } = await controller.reload({ caller: "remote configuration" });
    if (restartRequired.length === 0) return;
    log.warn("some keys of the remote configuration require a restart", { keys: restartRequired });
  });
}

function listSources(
  { secrets, discovery }: Base,
  remote: RemoteConfig | undefined,
  git: GitSource,
): SourceView[] {
  const used = git.isUsed ? git : undefined;
  return [remote, secrets, discovery, used].flatMap((source) => source?.view() ?? []);
}

function drainWorkers({ lifecycle, listeners, log }: Base, { pools }: Traffic): void {
  lifecycle.onDrain(
    "workers",
    async (context) => {
      const cut = await pools.drain(context.remainingMs());
      if (cut > 0) log.warn("drain deadline cut active exchanges", { cut });
    },
    "listeners",
  );
  lifecycle.stopping.addEventListener("abort", () => {
    // The listeners close now: the next gateway may start while this one drains.
    listeners.release();
    pools.setReadiness(false, { gate: "draining" });
  });
}

function showReadiness(
  { lifecycle, folder, automatic, secrets, discovery }: Base,
  { pools, middleware }: Traffic,
  { revocations, sharedAccess }: Access,
  { registry, health, certificateHealth }: GateApi,
  remote: RemoteConfig | undefined,
): void {
  const sources = revocations === undefined ? [] : [revocations.follower];
  const outer = [automatic?.manager, secrets, discovery, remote].filter(
    (source) => source !== undefined,
  );
  reportSources([...sources, sharedAccess, middleware, certificateHealth, ...outer], {
    registry,
    health,
    lifecycle,
    describeDisk: () => describeFullDisk(folder),
    showWarnings: (warnings) => pools.setReadiness(true, warnings),
  });
}
