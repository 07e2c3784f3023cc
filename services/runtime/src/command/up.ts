// `platform up`: runs all services of this machine as supervised processes.
import { existsSync } from "node:fs";
import { join, resolve } from "node:path";
import { nameProgram, quoteShell, type ListenAddress } from "@platform/kernel/config";
import { createIdSource } from "@platform/kernel/ids";
import { runService, type Lifecycle, type ListenerReport } from "@platform/kernel/lifecycle";
import type { LogLevel } from "@platform/kernel/log";
import { replaceFileSync } from "@platform/kernel/files";
import { every, systemClock } from "@platform/kernel/time";
import { formatBanner, formatBannerJson, type BannerService } from "../banner.ts";
import { RunningServices } from "../control/running-services.ts";
import { ScheduleRegistry } from "../control/schedule-registry.ts";
import { ServiceControl } from "../control/service-control.ts";
import { loadCredentials } from "../credentials/credentials.ts";
import {
  explainFileError,
  formatCommand,
  formatFolder,
  lockExisting,
  openDataFolder,
  type DataFolder,
} from "../data-folder/data-folder.ts";
import { readLastBackup } from "../data-folder/last-backup.ts";
import { removeRunning, type RunningState } from "../data-folder/running-file.ts";
import { formatIndexPage } from "../index-page.ts";
import { formatScrapeConfig } from "../scrape-config.ts";
import {
  formatListenerUrl,
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
import { IS_BUILT, selectServices, SERVICES } from "../services/index.ts";
import { RUNTIME_KEY, RUNTIME_LISTENER, RUNTIME_TOKEN } from "../services/runtime.ts";
import { findProject } from "../project/project.ts";
import { watchClock, type ClockWatch } from "../supervisor/clock-watch.ts";
import { endFormerRun } from "../supervisor/former-run.ts";
import type { LogStream } from "../supervisor/log-stream.ts";
import type { SupervisedProcess } from "../supervisor/supervised-process.ts";
import { isSchedulesMessage, type RunCommand } from "../watch/messages.ts";
import { buildConsole, buildServices, type BuildOptions } from "./background-build.ts";
import { LOG_FILE } from "./logs.ts";
import { createOutput, type Output } from "./output.ts";
import { choosePorts, leaveDefaultPort, probePorts } from "./ports.ts";
import { createProjectEntry, PROJECT_KEY } from "./project-entry.ts";
import { createPart, METRICS_TOKEN } from "./service-part.ts";

const TOUCH_MS = 60_000;

/** Options of {@link runUp}. */
export interface UpOptions {
  only: readonly string[];
  data: string;
  /** Public domain; undefined on a machine without one. */
  domain: string | undefined;
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
  const { version, drainTimeoutMs, domain, consoleUrl } = options;
  // The project is described before the platform runs, and prepared when the services that it uses do.
  let running: RunningServices | undefined;
  const entries = findEntries(options.only, () => running!.state);
  const addresses = new Map(options.addresses);
  const consoleNotes = checkConsole({ addresses, consoleUrl, domain }, entries);
  const dataDir = resolve(options.data);
  const lock = await lockExisting(dataDir);
  // Of a platform that was killed: its process number may be that of any program.
  if (lock !== undefined) {
    removeRunning(dataDir);
    await endFormerRun(dataDir);
  }
  const listening = [...entries, { listeners: [RUNTIME_LISTENER] }];
  // Services that are selected do not depend on the port of another platform's API.
  if (options.only.length > 0) await leaveDefaultPort(RUNTIME_LISTENER, addresses);
  await probePorts(listening, addresses);
  await choosePorts(listening, addresses);
  const folder = await openDataFolder(dataDir, { version, nowMs: systemClock.now(), lock });
  const secure = new Set<string>();
  const shared = { dataDir, addresses, secure, domain, consoleUrl, running: entries };
  const { context, notes } = await createContext(shared, folder);
  notes.push(...consoleNotes);
  const output = createOutput(options, join(dataDir, LOG_FILE));
  const { logger } = output.log;
  return runService({ service: "platform", version, logger, drainTimeoutMs }, async (lifecycle) => {
    void output.closed.then(() => lifecycle.stop("the standard output was closed"));
    const onChange = (state: RunningState): void => writeOverviews(state, context);
    running = new RunningServices({ folder: dataDir, version, entries, logger, onChange });
    const states = running;
    const release = (): Promise<void> => {
      states.close();
      folder.release();
      return output.settle();
    };
    lifecycle.onDrain("data folder", release, "database");
    const describeClock = superviseClock(lifecycle, folder, output.log);
    const lines = new Map<string, BannerService>();
    const progress = createProgress(options.json, entries);
    const schedules = new ScheduleRegistry((service, name) => {
      const command: RunCommand = { type: "run_schedule", name };
      parts.find(({ entry }) => entry.name === service)?.part.send(command);
    });
    const parts: Part[] = entries.map((entry) => {
      const part = createPart(entry, context, options, output.log, {
        onReady: (listeners, pid) => {
          if (listeners[0]?.name === "https") secure.add(entry.name);
          states.setReady(entry, listeners, pid);
          lines.set(entry.name, describeService(entry, context, listeners, pid));
          progress(entry);
        },
        onFailure: (failure) => {
          schedules.suspend(entry.name);
          states.setFailed(entry, failure);
        },
        onMessage: (message) => {
          if (isSchedulesMessage(message)) schedules.note(entry.name, message.schedules);
        },
      });
      lifecycle.onDrain(entry.label, (drain) => part.stop(drain.remainingMs()));
      return { entry, part };
    });
    const control = new ServiceControl({
      processes: new Map(parts.map(({ entry, part }) => [entry.name, part])),
      states,
      drainTimeoutMs,
      onStopped: (name) => schedules.suspend(name),
    });
    // A second signal exits immediately: the services must not stay behind.
    process.once("exit", () => parts.forEach(({ part }) => part.kill()));
    try {
      const [started] = await Promise.all([
        startParts(parts, context, lifecycle),
        serveApi({
          context,
          states,
          control,
          schedules,
          output,
          lifecycle,
          version,
          describeClock,
        }),
      ]);
      notes.push(...started);
    } catch (error) {
      output.log.release(lifecycle.stopping.aborted ? "warnings" : "all");
      throw explainFileError(error, dataDir);
    }
    if (lifecycle.stopping.aborted) return;
    lifecycle.onReady(() => {
      const banner = {
        version,
        dataDir: context.dataDirShown,
        durationMs: systemClock.monotonicMs() - startedMs,
        services: entries.toReversed().map(({ name }) => lines.get(name)!),
        consoleUrl: lines.has("gate") ? formatConsoleUrl(context) : undefined,
        signIn: isRunning("auth", context) ? (describeSignIn(context) ?? "") : "",
        apiUrl: formatUrl(getAddress(context, RUNTIME_KEY)),
        trials: entries.toReversed().flatMap((entry) => entry.trials(context)),
        notes,
      };
      output.write(
        options.json ? formatBannerJson(banner) : formatBanner(banner, output.hasColours),
      );
      output.log.release("warnings");
    });
    // Not before: a build takes processor time from the starting services.
    void buildMissing(lines.has("gate"), { lifecycle, logger });
  });
}

// One after the other, beside the services.
async function buildMissing(hasConsole: boolean, options: BuildOptions): Promise<void> {
  if (hasConsole) await buildConsole(options);
  const isNode = process.versions["bun"] === undefined;
  if (!IS_BUILT && isNode && (process.env["PLATFORM_FORM"] ?? "") === "") {
    await buildServices(options);
  }
}

interface ApiParts {
  context: EntryContext;
  states: RunningServices;
  control: ServiceControl;
  schedules: ScheduleRegistry;
  output: Output;
  lifecycle: Lifecycle;
  version: string;
  describeClock: ClockWatch["describe"];
}

// Loaded while the services start.
async function serveApi({ context, output, ...parts }: ApiParts): Promise<void> {
  const [{ startApi }, { readRuntimeSettings }] = await Promise.all([
    import("../api/start-api.ts"),
    import("../api/settings.ts"),
  ]);
  const { log } = output;
  await startApi({
    ...parts,
    address: getAddress(context, RUNTIME_KEY),
    settings: readRuntimeSettings({
      [METRICS_TOKEN]: context.credentials[METRICS_TOKEN],
      ...process.env,
      ...wireIdentity("runtime", context, process.env),
    }),
    token: context.credentials[RUNTIME_TOKEN] ?? "",
    readLastBackup: () => readLastBackup(context.dataDir),
    project: context.running.find(({ listeners }) => listeners[0]?.key === PROJECT_KEY)?.name,
    hints: {
      credentials: context.credentialsShown,
      share: formatCommand(context.dataDir, "share 3000"),
    },
    log: {
      path: join(context.dataDir, LOG_FILE),
      logger: log.logger,
      listen: (listener) => log.listen(listener),
    },
  });
}

// The gateway starts last: it routes to all others. Bun cannot load service files.
function findEntries(
  only: readonly string[],
  readState: () => RunningState,
): readonly ServiceEntry[] {
  const isNode = process.versions["bun"] === undefined;
  const taken = SERVICES.flatMap(({ name, label }) => [name, label]);
  const project = isNode ? findProject(process.cwd(), taken) : undefined;
  if (project === undefined) return selectServices(only);
  const entry = createProjectEntry(project, readState);
  const isSelected = only.length === 0 || only.includes(project.name);
  const others = only.filter((name) => name !== project.name);
  const selected = only.length > 0 && others.length === 0 ? [] : selectServices(others);
  if (!isSelected) return selected;
  const gateway = selected.filter(({ name }) => name === "gate");
  return [...selected.filter(({ name }) => name !== "gate"), entry, ...gateway];
}

async function createContext(
  shared: Omit<EntryContext, "dataDirShown" | "credentialsShown" | "credentials">,
  folder: DataFolder,
): Promise<{ context: EntryContext; notes: string[] }> {
  const { dataDir, running } = shared;
  try {
    const { credentials, isNew, isChanged } = await loadCredentials(
      dataDir,
      [...running, { credentials: [METRICS_TOKEN, RUNTIME_TOKEN] }],
      process.env,
      createIdSource(),
    );
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
    return { context, notes };
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
  log: LogStream,
): ClockWatch["describe"] {
  const clock = watchClock(systemClock, log.logger);
  const touch = every(
    TOUCH_MS,
    () => folder.touch(systemClock.now()),
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
  for (const { entry, part } of parts) {
    const needed = (entry.after ?? []).flatMap((name) => started.get(name) ?? []);
    started.set(
      entry.name,
      (async () => {
        if (entry.needsReady === true) await Promise.all(needed);
        const notes = (await entry.prepare?.(context)) ?? [];
        if (!lifecycle.stopping.aborted) await part.start();
        return notes;
      })(),
    );
  }
  return (await Promise.all(started.values())).flat();
}

function describeService(
  entry: ServiceEntry,
  context: EntryContext,
  listeners: readonly ListenerReport[],
  pid: number,
): BannerService {
  const [main] = listeners;
  return {
    name: entry.name,
    label: entry.label,
    url: main === undefined ? "" : formatListenerUrl(main),
    description: entry.describe(context, listeners),
    pid,
    listeners,
  };
}
