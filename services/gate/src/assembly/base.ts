// The base of the gateway: its addresses, its stored changes, its certificate, and the state that they make.
import type { Lifecycle } from "@platform/kernel/lifecycle";
import type { Logger } from "@platform/kernel/log";
import { readDescriptorLimit } from "@platform/kernel/sockets";
import { FolderLock } from "../access/folder-lock.ts";
import { type GateConfig, usesTls } from "../config/document.ts";
import type { LoadedGate } from "../config/load.ts";
import { getStateFolder } from "../config/state-folder.ts";
import { type BuildGlobals, buildState, type GateState } from "../control/gate-state.ts";
import type { RouteSet } from "../control/differ.ts";
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
import {
  type ClaimedListeners,
  chooseListeners,
  claimListeners,
} from "../worker/claimed-listeners.ts";
import { type AutomaticTls, openAutomaticTls } from "./automatic-tls.ts";
import type { SecretSource } from "../source/secret-source.ts";
import type { Discovery } from "../source/discovery.ts";
import { openDiscovery } from "./discovery.ts";
import { openSecrets } from "./secrets.ts";
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
  /** Undefined without automatic certificates. */
  readonly automatic: AutomaticTls | undefined;
  /** Undefined without a secret service. */
  readonly secrets: SecretSource | undefined;
  readonly tokens: FollowedTokens;
  readonly networks: NetworkLists;
  /** Undefined without service discovery. */
  readonly discovery: Discovery | undefined;
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
  const store = openStore(config, path, log);
  const claimed = await claimListeners(config);
  const address = createControlAddress();
  lifecycle.onDrain("control address", () => removeControlAddress(address));
  const { descriptors, ...threads } = countThreads(config, log);
  const folder = getStateFolder(config.data_dir, path);
  const lock = new FolderLock(folder, config.ephemeral);
  const sources = await openCertificates(config, folder, lock, log);
  const { certificate, automatic } = sources;
  const tokens = new FollowedTokens((name, value) => lifecycle.followSecret(name, value));
  const context = {
    control: address,
    hasConsole: config.console_addr !== undefined,
    configPath: path,
    descriptors,
    ...describeSources(sources),
    followToken: (name: string, value: string) => tokens.follow(name, value),
  };
  const sharedConsole = describeSharedConsole(config, address);
  const hasSignedWebhook = config["gitops.secret"] !== undefined;
  const isShared = claimed.admin === undefined;
  const mainRoutes = listMainRoutes({ admin: isShared, hasSignedWebhook, console: sharedConsole });
  const buildMain: BuildGlobals = (of, logs) =>
    buildGlobals(of, { ...context, console: sharedConsole, internalRoutes: mainRoutes }, logs);
  const networks = new NetworkLists();
  const overlay = await store.read();
  const discovery = await openDiscovery(config, overlay, log);
  const parts = { buildGlobals: buildMain, networks, findService: discovery?.find };
  const build = (known?: RouteSet): GateState => buildState(config, overlay, parts, known);
  const state = buildFirst(build, automatic);
  await certificate.follow(config);
  const internalRoutes = listInternalRoutes("all", hasSignedWebhook);
  const logs = { access: false, recording: false };
  const buildAdmin = (): GlobalSpec =>
    buildGlobals(config, { ...context, console: undefined, internalRoutes }, logs);
  return {
    config,
    log,
    lifecycle,
    folder,
    lock,
    store,
    listeners: chooseListeners(claimed, state.globals.tls !== undefined),
    address,
    ...sources,
    tokens,
    networks,
    discovery,
    ...threads,
    buildGlobals: buildMain,
    state,
    admin: isShared ? undefined : { globals: buildAdmin(), internalRoutes },
  };
}

function countThreads(config: GateConfig, log: Logger) {
  const workers = countWorkers(config, log);
  const sharing = countSharing(config, workers);
  const descriptors = { limit: readDescriptorLimit(), workers: sharing };
  warnOfDescriptorLimit(config.max_connections, descriptors, log);
  return { workers, sharing, descriptors };
}

async function openCertificates(
  config: GateConfig,
  folder: string,
  lock: FolderLock,
  log: Logger,
): Promise<Pick<Base, "certificate" | "automatic" | "secrets">> {
  const certificate = new ListenerCertificate(log);
  const secrets = await openSecrets(config, folder, log);
  // A service with the JWT secret only does not turn TLS on.
  if (secrets !== undefined && (usesTls(config) || secrets.list().length > 0)) {
    certificate.addProvider("secret", secrets);
  }
  const automatic = await openAutomaticTls({ config, folder, lock: () => lock.take(), log });
  if (automatic !== undefined) certificate.addProvider("acme", automatic.manager);
  return { certificate, automatic, secrets };
}

function describeSources({
  certificate,
  automatic,
  secrets,
}: Awaited<ReturnType<typeof openCertificates>>) {
  return {
    certificate,
    listJwtSecrets: secrets && (() => secrets.listJwtSecrets()),
    challenges: automatic && (() => automatic.listChallenges()),
  };
}

/** The names of automatic certificates come from the routes, and the certificates from the names. */
function buildFirst(
  build: (known?: RouteSet) => GateState,
  automatic: AutomaticTls | undefined,
): GateState {
  const state = build();
  if (automatic === undefined) return state;
  automatic.begin(state);
  return build(state.resolved);
}

function openStore(
  { ephemeral: isEphemeral }: GateConfig,
  path: string,
  log: Logger,
): OverlayStore {
  const overlayPath = getOverlayPath(path);
  return isEphemeral
    ? createEphemeralOverlay(overlayPath)
    : createOverlayFile(overlayPath, (fault) => log.warn("overlay repaired", { fault }));
}
