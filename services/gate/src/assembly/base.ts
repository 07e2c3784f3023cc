// The base of the gateway: its addresses, its stored changes, its certificate, and the state that they make.
import type { Lifecycle } from "@platform/kernel/lifecycle";
import type { Logger } from "@platform/kernel/log";
import { readDescriptorLimit } from "@platform/kernel/sockets";
import { FolderLock } from "../access/folder-lock.ts";
import type { GateConfig } from "../config/document.ts";
import type { LoadedGate } from "../config/load.ts";
import { getStateFolder } from "../config/state-folder.ts";
import { type BuildGlobals, buildState, type GateState } from "../control/gate-state.ts";
import { FollowedTokens } from "../control/followed-tokens.ts";
import { buildGlobals } from "../control/globals.ts";
import { ListenerCertificate } from "../control/listener-certificate.ts";
import {
  createEphemeralOverlay,
  createOverlayFile,
  getOverlayPath,
  type OverlayStore,
} from "../control/overlay-file.ts";
import { describeSharedConsole } from "../http/console.ts";
import {
  type ControlAddress,
  createControlAddress,
  removeControlAddress,
} from "../http/control-server.ts";
import { listInternalRoutes, listMainRoutes } from "../http/internal-routes.ts";
import { NetworkLists } from "../resolve/network-lists.ts";
import type { GlobalSpec, InternalRoute } from "../shared-state/index.ts";
import { type ClaimedListeners, claimListeners } from "../worker/claimed-listeners.ts";
import { warnOfDescriptorLimit } from "../worker/descriptors.ts";
import { countSharing, countWorkers } from "../worker/worker-count.ts";

/** The parts. */
export interface Base {
  readonly config: GateConfig;
  readonly log: Logger;
  readonly lifecycle: Lifecycle;
  /** Folder of the gateway's own state. */
  readonly folder: string;
  readonly lock: FolderLock;
  /** Changes over the API. */
  readonly store: OverlayStore;
  readonly listeners: ClaimedListeners;
  /** Address of the control thread. */
  readonly address: ControlAddress;
  readonly certificate: ListenerCertificate;
  readonly tokens: FollowedTokens;
  readonly networks: NetworkLists;
  /** Number of worker threads of the main listener. */
  readonly workers: number;
  /** Threads that share the descriptors of the process. */
  readonly sharing: number;
  readonly buildGlobals: BuildGlobals;
  /** The state at the start. */
  readonly state: GateState;
  /** Settings and routes of the admin listener; undefined if the main listener serves the admin API. */
  readonly admin: { globals: GlobalSpec; internalRoutes: InternalRoute[] } | undefined;
}

/** Claims the addresses and reads everything that is stored. Throws if an address is taken, or a file invalid. */
export async function openBase(
  { config, path }: LoadedGate,
  log: Logger,
  lifecycle: Lifecycle,
): Promise<Base> {
  const overlayPath = getOverlayPath(path);
  const store = config.ephemeral
    ? createEphemeralOverlay(overlayPath)
    : createOverlayFile(overlayPath, (fault) => log.warn("overlay repaired", { fault }));
  const listeners = await claimListeners(config);
  const address = createControlAddress();
  lifecycle.onDrain("control address", () => removeControlAddress(address));
  const workers = countWorkers(config, log);
  const sharing = countSharing(config, workers);
  const descriptors = { limit: readDescriptorLimit(), workers: sharing };
  warnOfDescriptorLimit(config.max_connections, descriptors, log);
  const certificate = new ListenerCertificate(log);
  const tokens = new FollowedTokens((name, value) => lifecycle.followSecret(name, value));
  const context = {
    control: address,
    hasConsole: config.console_addr !== undefined,
    configPath: path,
    descriptors,
    certificate,
    followToken: (name: string, value: string) => tokens.follow(name, value),
  };
  const sharedConsole = describeSharedConsole(config, address);
  const isShared = listeners.admin === undefined;
  const mainRoutes = listMainRoutes({ admin: isShared, console: sharedConsole });
  const buildMain: BuildGlobals = (of, logs) =>
    buildGlobals(of, { ...context, console: sharedConsole, internalRoutes: mainRoutes }, logs);
  const networks = new NetworkLists();
  const state = buildState(config, await store.read(), buildMain, networks);
  await certificate.follow(config);
  const internalRoutes = listInternalRoutes("all");
  const folder = getStateFolder(config.data_dir, path);
  const logs = { access: false, recording: false };
  const buildAdmin = (): GlobalSpec =>
    buildGlobals(config, { ...context, console: undefined, internalRoutes }, logs);
  return {
    config,
    log,
    lifecycle,
    folder,
    lock: new FolderLock(folder, config.ephemeral),
    store,
    listeners,
    address,
    certificate,
    tokens,
    networks,
    workers,
    sharing,
    buildGlobals: buildMain,
    state,
    admin: isShared ? undefined : { globals: buildAdmin(), internalRoutes },
  };
}
