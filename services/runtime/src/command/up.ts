// `platform up`: runs all services of this machine as supervised processes.
import { existsSync } from "node:fs";
import { join, resolve } from "node:path";
import {
  formatAddress,
  nameProgram,
  quoteShell,
  type ListenAddress,
} from "@platform/kernel/config";
import { createIdSource } from "@platform/kernel/ids";
import {
  isSecretsAnswer,
  runService,
  type Lifecycle,
  type ListenerReport,
} from "@platform/kernel/lifecycle";
import type { LogLevel } from "@platform/kernel/log";
import { replaceFileSync } from "@platform/kernel/files";
import { every, systemClock } from "@platform/kernel/time";
import { formatBanner, formatBannerJson, type BannerService } from "../banner.ts";
import { RunningServices } from "../control/running-services.ts";
import { ScheduleRegistry } from "../control/schedule-registry.ts";
import { choosePorts, findHeldPorts, leaveDefaultPort } from "../control/ports.ts";
import { ProjectSpans } from "../control/project-spans.ts";
import { CredentialControl } from "../control/credential-control.ts";
import { ServiceControl } from "../control/service-control.ts";
import { createPart } from "../control/service-part.ts";
import { loadCredentials } from "../credentials/credentials.ts";
import { CredentialStore } from "../credentials/credential-store.ts";
import {
  explainFileError,
  formatFolder,
  lockExisting,
  openDataFolder,
  type DataFolder,
} from "../data-folder/data-folder.ts";
import { readLastBackup } from "../data-folder/last-backup.ts";
import { listPlatform } from "../data-folder/platform-list.ts";
import { removeRunning, type RunningState } from "../data-folder/running-file.ts";
import { formatIndexPage } from "../index-page.ts";
import { formatScrapeConfig } from "../scrape-config.ts";
import {
  findPublicReport,
  formatPublicUrl,
  formatUrl,
  getAddress,
  isRunning,
  type EntryContext,
  type ServiceEntry,
} from "../services/entry.ts";
import { describeSignIn } from "../services/auth.ts";
import { checkConsole, formatConsoleUrl } from "../services/console.ts";
import { getIndexPath } from "../services/gate.ts";
import { wireIdentity } from "../services/identity.ts";
import { METRICS_TOKEN } from "../services/metrics.ts";
import { findOffloadBucket } from "../services/offload.ts";
import { prepareConfigBucket, prepareOffloadBucket } from "../client/own-bucket.ts";
import { findConfigPlace } from "../services/config-bucket.ts";
import { IS_BUILT, selectServices } from "../services/index.ts";
import { RUNTIME_KEY, RUNTIME_LISTENER, RUNTIME_TOKEN } from "../services/runtime.ts";
import { createProjectEntry } from "../projects/entry.ts";
import { selectInherited } from "../projects/environment.ts";
import { Projects } from "../projects/projects.ts";
import { TAKEN_NAMES } from "../projects/taken-names.ts";
import { findProject } from "../project/project.ts";
import { watchClock, type ClockWatch } from "../supervisor/clock-watch.ts";
import { readMemory } from "../supervisor/memory.ts";
import { describeShortage } from "../supervisor/service-memory.ts";
import { endFormerRun } from "../supervisor/former-run.ts";
import type { LogStream } from "../supervisor/log-stream.ts";
import type { SupervisedProcess } from "../supervisor/supervised-process.ts";
import {
  isGatewayRequest,
  isOutcomeMessage,
  isSchedulesMessage,
  isSpansMessage,
  type RunCommand,
} from "../watch/messages.ts";
import {
  buildConsole,
  buildPackage,
  buildServices,
  type BuildOptions,
} from "./background-build.ts";
import { describeHints } from "./hints.ts";
import { LOG_FILE } from "./logs.ts";
import { createOutput, type Output } from "./output.ts";
import { explainHeldPorts } from "./held-ports.ts";

const TOUCH_MS = 60_000;
const HTTPS_PORT = 443;
const DOMAIN_MISSING =
  "--auto-tls requires --domain: certificates are obtained for its names, which must lead to this machine";

/** Options of {@link runUp}. */
export interface UpOptions {
  only: readonly string[];
  data: string;
  /** Public domain; undefined on a machine without one. */
  domain: string | undefined;
  /** True if the gateway obtains certificates for the domain. */
  autoTls: boolean;
  /** True for a platform beside others: default ports that are taken are replaced by free ones. */
  alone: boolean;
  /** Address at which browsers open the console; undefined derives it. */
  consoleUrl: string | undefined;
  /** Databases start without what they have lost. */
  acceptLoss: boolean;
  json: boolean;
  logLevel: LogLevel;
  drainTimeoutMs: number;
  /** By listener key. */
  addresses: ReadonlyMap<string, ListenAddress>;
  version: string;
}

/** Starts the services, prints the banner, supervises until the process is stopped, then exits. */
export async function runUp(options: UpOptions): Promise<never> {
  const startedMs = systemClock.monotonicMs();
  const { version, drainTimeoutMs, domain, consoleUrl, autoTls: hasAutomaticTls } = options;
  if (hasAutomaticTls && domain === undefined) throw new Error(DOMAIN_MISSING);
  // The project is described before the platform runs, and prepared when the services that it uses do.
  const late: Late = {};
  const entries = findEntries(options.only, late);
  const addresses = new Map(options.addresses);
  const consoleNotes = checkConsole({ addresses, consoleUrl, domain }, entries);
  const dataDir = resolve(options.data);
  const lock = await lockExisting(dataDir);
  // Of a platform that was killed: its process number may be that of any program.
  if (lock !== undefined) {
    removeRunning(dataDir);
    await endFormerRun(dataDir);
  }
  await openPorts(entries, options, addresses);
  const folder = await openDataFolder(dataDir, { version, nowMs: systemClock.now(), lock });
  const secure = new Set<string>();
  const place = { dataDir, addresses, domain, hasAutomaticTls, consoleUrl };
  const shared = { ...place, secure, running: entries };
  const { context, notes, store } = await createContext(shared, folder);
  notes.push(...consoleNotes, ...checkMemory(entries, options));
  const output = createOutput(options, join(dataDir, LOG_FILE));
  const { logger } = output.log;
  const supervised = { options, context, secure, store, notes, output, folder, late, startedMs };
  return runService({ service: "platform", version, logger, drainTimeoutMs }, (lifecycle) =>
    supervise(lifecycle, supervised),
  );
}

// Said before the start, which may not come to an end.
function checkMemory(entries: readonly ServiceEntry[], { json }: UpOptions): string[] {
  const shortage = describeShortage(entries, readMemory());
  if (shortage === undefined) return [];
  if (!json) process.stderr.write(`${shortage}\n`);
  return [shortage];
}

/** Parts that exist only when the platform runs. */
interface Late {
  states?: RunningServices;
  projects?: Projects;
  spans?: ProjectSpans;
}

interface Supervised {
  options: UpOptions;
  context: EntryContext;
  /** That of the context. */
  secure: Set<string>;
  store: CredentialStore;
  notes: string[];
  output: Output;
  folder: DataFolder;
  late: Late;
  startedMs: number;
}

async function supervise(lifecycle: Lifecycle, supervised: Supervised): Promise<void> {
  const { options, context, notes, output, folder, late } = supervised;
  const { running: entries, dataDir } = context;
  const { logger } = output.log;
  void output.closed.then(() => lifecycle.stop("the standard output was closed"));
  const states = openStates(lifecycle, supervised);
  const lines = new Map<string, BannerService>();
  const processes = new Map<string, SupervisedProcess>();
  const schedules = new ScheduleRegistry((service, name) => {
    const command: RunCommand = { type: "run_schedule", name };
    processes.get(service)?.send(command);
  });
  const progress = createProgress(options.json, entries);
  const { store } = supervised;
  const credentials = new CredentialControl({ store, context, processes, logger });
  credentials.onChanged(() => writeOverviews(states.state, context));
  const describeClock = superviseClock(lifecycle, folder, credentials, output.log);
  const start = createStarter(
    supervised,
    { states, schedules, processes, credentials },
    (entry, listeners, pid) => {
      lines.set(entry.name, describeService(entry, context, listeners, pid));
      progress(entry);
    },
  );
  const { drainTimeoutMs } = options;
  const hosting = { context, states, schedules, processes, logger, drainTimeoutMs };
  const projects = new Projects({ ...hosting, createPart: start });
  const spans = new ProjectSpans(() => systemClock.monotonicMs());
  Object.assign(late, { states, projects, spans });
  const parts: Part[] = entries.map((entry) => {
    const part = start(entry, context);
    processes.set(entry.name, part);
    if (entry.project !== undefined) projects.adopt(entry, part);
    lifecycle.onDrain(entry.label, (drain) => part.stop(drain.remainingMs()));
    return { entry, part };
  });
  lifecycle.onDrain("projects", (drain) => projects.stop(drain.remainingMs()));
  const onStopped = (name: string): void => schedules.suspend(name);
  const control = new ServiceControl({ processes, states, drainTimeoutMs, onStopped });
  // A second signal exits immediately: the services must not stay behind.
  process.once("exit", () => processes.forEach((part) => part.kill()));
  try {
    const { version } = options;
    const controls = { control, schedules, projects, credentials, spans };
    const api = { context, states, ...controls, output, lifecycle, version };
    const [started] = await Promise.all([
      startParts(parts, context, lifecycle),
      serveApi({ ...api, describeClock }),
    ]);
    notes.push(...started);
  } catch (error) {
    output.log.release(lifecycle.stopping.aborted ? "warnings" : "all");
    throw explainFileError(error, dataDir);
  }
  if (lifecycle.stopping.aborted) return;
  notes.push(...projects.open());
  lifecycle.onReady(() => writeBanner(supervised, lines));
  // Not before: a build takes processor time from the starting services.
  void buildMissing(lines.has("gate"), !options.json, { lifecycle, logger });
}

// Before the data folder exists: an error must not leave one behind.
async function openPorts(
  entries: readonly ServiceEntry[],
  { only, alone, autoTls }: UpOptions,
  addresses: Map<string, ListenAddress>,
): Promise<void> {
  const locals = entries.flatMap(({ local }) => local ?? []);
  for (const { key } of locals) addresses.set(key, { host: "127.0.0.1", port: 0 });
  const listening = [...entries, { listeners: [RUNTIME_LISTENER] }];
  if (autoTls) useWebPort(entries, addresses);
  // Services that are selected do not depend on the port of another platform's API.
  if (only.length > 0) await leaveDefaultPort(RUNTIME_LISTENER, addresses);
  if (alone) {
    for (const { listeners } of listening) {
      for (const listener of listeners) await leaveDefaultPort(listener, addresses);
    }
  }
  const held = await findHeldPorts(listening, addresses);
  if (held.length > 0) throw await explainHeldPorts(held);
  await choosePorts([...listening, { listeners: locals }], addresses);
}

// Certificate authorities look for the gateway at the ports of the web.
function useWebPort(entries: readonly ServiceEntry[], addresses: Map<string, ListenAddress>): void {
  const [main] = entries.find(({ name }) => name === "gate")?.listeners ?? [];
  const address = main && addresses.get(main.key);
  if (main === undefined || address === undefined) return;
  if (formatAddress(address) === main.default) {
    addresses.set(main.key, { host: undefined, port: HTTPS_PORT });
  }
}

function openStates(lifecycle: Lifecycle, supervised: Supervised): RunningServices {
  const { context, folder, output, options } = supervised;
  const { dataDir } = context;
  const states = new RunningServices({
    folder: dataDir,
    version: options.version,
    entries: context.running,
    apiUrl: formatUrl(getAddress(context, RUNTIME_KEY)),
    logger: output.log.logger,
    onChange: (state) => writeOverviews(state, context),
  });
  const unlist = listPlatform(dataDir);
  const release = (): Promise<void> => {
    unlist();
    states.close();
    folder.release();
    return output.settle();
  };
  lifecycle.onDrain("data folder", release, "database");
  return states;
}

interface StarterParts {
  states: RunningServices;
  schedules: ScheduleRegistry;
  processes: ReadonlyMap<string, SupervisedProcess>;
  credentials: CredentialControl;
}

/** Creates processes of services; `onReady` is called when one has started. */
function createStarter(
  { options, output, late, secure, store }: Supervised,
  { states, schedules, processes, credentials }: StarterParts,
  onReady: (entry: ServiceEntry, listeners: readonly ListenerReport[], pid: number) => void,
) {
  return (entry: ServiceEntry, context: EntryContext): SupervisedProcess => {
    credentials.add(entry);
    return createPart(entry, context, { ...options, store }, output.log, {
      onReady: (listeners, pid) => {
        if (findPublicReport(listeners, "http")?.name === "https") secure.add(entry.name);
        states.setReady(entry, listeners, pid, formatPublicUrl(entry, context, listeners));
        onReady(entry, listeners, pid);
        if (entry.name === "gate") void late.projects?.publish();
      },
      onFailure: (failure) => {
        credentials.broadcast.forget(entry.name);
        schedules.suspend(entry.name);
        states.setFailed(entry, failure);
      },
      onRefused: (reason) => {
        schedules.suspend(entry.name);
        states.setRefused(entry.name, reason);
      },
      onMessage: (message) => {
        if (isSecretsAnswer(message)) credentials.broadcast.note(message);
        else if (isSpansMessage(message)) late.spans?.note(entry.name, message);
        else if (isSchedulesMessage(message)) schedules.note(entry.name, message.schedules);
        else if (isOutcomeMessage(message)) late.projects?.noteOutcome(entry.name, message.failure);
        else if (isGatewayRequest(message)) {
          void late.projects
            ?.answerGateway(entry.name, message)
            .then((answer) => processes.get(entry.name)?.send(answer));
        }
      },
    });
  };
}

function writeBanner(
  { options, context, notes, output, startedMs }: Supervised,
  lines: ReadonlyMap<string, BannerService>,
): void {
  const entries = context.running.toReversed();
  const banner = {
    version: options.version,
    dataDir: context.dataDirShown,
    durationMs: systemClock.monotonicMs() - startedMs,
    services: entries.map(({ name }) => lines.get(name)!),
    consoleUrl: lines.has("gate") ? formatConsoleUrl(context) : undefined,
    signIn: isRunning("auth", context) ? (describeSignIn(context) ?? "") : "",
    apiUrl: formatUrl(getAddress(context, RUNTIME_KEY)),
    trials: entries.flatMap((entry) => entry.trials(context)),
    notes,
  };
  output.write(options.json ? formatBannerJson(banner) : formatBanner(banner, output.hasColours));
  output.log.release("warnings");
}

// One after the other, beside the services. A platform without somebody at a terminal needs no package for projects.
async function buildMissing(
  hasConsole: boolean,
  isAttended: boolean,
  options: BuildOptions,
): Promise<void> {
  if (hasConsole) await buildConsole(options);
  const isNode = process.versions["bun"] === undefined;
  if (!IS_BUILT && isNode && (process.env["PLATFORM_FORM"] ?? "") === "") {
    await buildServices(options);
  }
  if (isAttended && isNode) await buildPackage(options);
}

interface ApiParts {
  context: EntryContext;
  states: RunningServices;
  control: ServiceControl;
  schedules: ScheduleRegistry;
  projects: Projects;
  credentials: CredentialControl;
  spans: ProjectSpans;
  output: Output;
  lifecycle: Lifecycle;
  version: string;
  describeClock: ClockWatch["describe"];
}

// Loaded while the services start.
async function serveApi({ context, output, lifecycle, ...parts }: ApiParts): Promise<void> {
  const [{ startApi }, { readRuntimeSettings }] = await Promise.all([
    import("../api/start-api.ts"),
    import("../api/settings.ts"),
  ]);
  const { log } = output;
  const { own } = parts.credentials;
  await startApi({
    ...parts,
    lifecycle: { ...lifecycle, followSecret: (name, value) => own.follow(name, value) },
    address: getAddress(context, RUNTIME_KEY),
    settings: readRuntimeSettings({
      [METRICS_TOKEN]: context.credentials[METRICS_TOKEN],
      ...process.env,
      ...wireIdentity("runtime", context, process.env),
    }),
    token: context.credentials[RUNTIME_TOKEN] ?? "",
    dataDir: context.dataDir,
    getTarget: () => ({
      dataDir: context.dataDir,
      state: parts.states.state,
      credentials: new Map(Object.entries(context.credentials)),
    }),
    isPublic: context.domain !== undefined,
    readLastBackup: () => readLastBackup(context.dataDir),
    hints: describeHints(context),
    log: {
      path: join(context.dataDir, LOG_FILE),
      logger: log.logger,
      listen: (listener) => log.listen(listener),
    },
  });
}

// The gateway starts last: it routes to all others. Bun cannot load service files.
function findEntries(only: readonly string[], late: Late): readonly ServiceEntry[] {
  const isNode = process.versions["bun"] === undefined;
  const project = isNode ? findProject(process.cwd(), TAKEN_NAMES) : undefined;
  if (project === undefined) return selectServices(only);
  const { name } = project;
  const entry = createProjectEntry(project, {
    kind: "own",
    readState: () => late.states!.state,
    inherit: () => selectInherited(process.env, process.env),
    ownsFormerData: () => late.projects!.ownsFormerData({ name, folder: "", kind: "own" }),
  });
  const isSelected = only.length === 0 || only.includes(name);
  const others = only.filter((word) => word !== name);
  const selected = only.length > 0 && others.length === 0 ? [] : selectServices(others);
  if (!isSelected) return selected;
  const gateway = selected.filter((service) => service.name === "gate");
  return [...selected.filter((service) => service.name !== "gate"), entry, ...gateway];
}

async function createContext(
  shared: Omit<EntryContext, "dataDirShown" | "credentialsShown" | "credentials">,
  folder: DataFolder,
): Promise<{ context: EntryContext; notes: string[]; store: CredentialStore }> {
  const { dataDir, running } = shared;
  const ids = createIdSource();
  try {
    const { credentials, isNew, isChanged } = await loadCredentials(
      dataDir,
      [...running, { credentials: [METRICS_TOKEN, RUNTIME_TOKEN] }],
      process.env,
      ids,
    );
    const now = (): number => systemClock.now();
    const store = await CredentialStore.open({ folder: dataDir, env: process.env, ids, now });
    store.sweep();
    const shown = formatFolder(dataDir);
    const context: EntryContext = {
      ...shared,
      dataDirShown: shown,
      credentialsShown: quoteShell(join(shown, "credentials.env").replace(/^(?![./])/, "./")),
      credentials,
    };
    const isLost = isNew && folder.isUsed;
    const notes = [...folder.notes, ...(isLost ? [describeLoss(context)] : [])];
    if (isChanged) {
      notes.push(
        `a value in ${context.credentialsShown} is not the one that was written: if you have not changed it, the disk has, and the file must be restored from a backup`,
      );
    }
    return { context, notes, store };
  } catch (error) {
    folder.release();
    throw explainFileError(error, dataDir);
  }
}

// For people, and for Prometheus.
function writeOverviews(state: RunningState, context: EntryContext): void {
  const { dataDir, credentials, running } = context;
  const token = credentials[METRICS_TOKEN] ?? "";
  const apiUrl = formatUrl(getAddress(context, RUNTIME_KEY));
  const scrape = formatScrapeConfig(state, { token, apiUrl });
  replaceFileSync(join(dataDir, "prometheus.yml"), scrape);
  if (!running.some(({ name }) => name === "gate") || !existsSync(join(dataDir, "gate"))) return;
  const trials = running.toReversed().flatMap((entry) => entry.trials(context));
  replaceFileSync(getIndexPath(context), formatIndexPage(state, trials, dataDir));
}

function describeLoss({ credentialsShown, dataDirShown }: EntryContext): string {
  const folder = quoteShell(join(dataDirShown, "auth"));
  return `${credentialsShown} was missing and has been created again: programs need its new tokens and keys. Passwords of users have not changed; for a lost administrator's password run ${nameProgram("platform-auth")} admin reset NAME --data-dir ${folder}`;
}

function superviseClock(
  lifecycle: Lifecycle,
  folder: DataFolder,
  credentials: CredentialControl,
  log: LogStream,
): ClockWatch["describe"] {
  const clock = watchClock(systemClock, log.logger);
  const touch = every(
    TOUCH_MS,
    () => {
      folder.touch(systemClock.now());
      credentials.sweep();
    },
    (error) => log.logger.warn("cannot write to the data folder", { error }),
  );
  lifecycle.onDrain("timers", async () => {
    await clock.stop();
    await touch.stop();
  });
  return clock.describe;
}

// On the standard error output: programs read the other one.
function createProgress(
  json: boolean,
  entries: readonly ServiceEntry[],
): (entry: ServiceEntry) => void {
  if (json) return () => undefined;
  const startedMs = systemClock.monotonicMs();
  const waiting = new Set(entries);
  process.stderr.write(`starting ${entries.map(({ label }) => label).join(", ")}\n`);
  return (entry) => {
    if (!waiting.delete(entry)) return;
    const seconds = ((systemClock.monotonicMs() - startedMs) / 1000).toFixed(1);
    process.stderr.write(`  ${entry.label} ready after ${seconds} s\n`);
  };
}

interface Part {
  entry: ServiceEntry;
  part: SupervisedProcess;
}

// Services start in parallel: all ports are known.
async function startParts(
  parts: readonly Part[],
  context: EntryContext,
  lifecycle: Lifecycle,
): Promise<string[]> {
  const started = new Map<string, Promise<string[]>>();
  // The gateway reads it when it starts.
  const config = findConfigPlace(context, process.env);
  for (const { entry, part } of parts) {
    const needed = (entry.after ?? []).flatMap((name) => started.get(name) ?? []);
    started.set(
      entry.name,
      (async () => {
        if (entry.needsReady === true || (entry.name === "gate" && config !== undefined)) {
          await Promise.all(needed);
        }
        const notes = (await entry.prepare?.(context)) ?? [];
        if (!lifecycle.stopping.aborted) await part.start();
        if (entry.name === "vault") notes.push(...(await prepareBuckets(context)));
        return notes;
      })(),
    );
  }
  return (await Promise.all(started.values())).flat();
}

// Messaging tries its store again and again, so the bucket may come after it has started.
async function prepareBuckets(context: EntryContext): Promise<string[]> {
  const notes: string[] = [];
  const segments = findOffloadBucket(context, process.env);
  const config = findConfigPlace(context, process.env);
  if (segments !== undefined) {
    await prepareOffloadBucket(context, segments).catch(({ message }: Error) => {
      notes.push(`messaging cannot move segments to the bucket ${segments} of storage: ${message}`);
    });
  }
  if (config !== undefined) {
    await prepareConfigBucket(context, config).catch(({ message }: Error) => {
      notes.push(`the bucket ${config.bucket} of the configuration is not usable: ${message}`);
    });
  }
  return notes;
}

function describeService(
  entry: ServiceEntry,
  context: EntryContext,
  listeners: readonly ListenerReport[],
  pid: number,
): BannerService {
  return {
    name: entry.name,
    label: entry.label,
    url: formatPublicUrl(entry, context, listeners),
    description: entry.describe(context, listeners),
    pid,
    listeners,
  };
}
