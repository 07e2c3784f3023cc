// `platform up`: runs all services of this machine as supervised processes.
import { createServer } from "node:net";
import { isAbsolute, relative, resolve } from "node:path";
import type { ListenAddress } from "@platform/kernel/config";
import { createIdSource } from "@platform/kernel/ids";
import { explainListenError, runService, type ListenerReport } from "@platform/kernel/lifecycle";
import type { LogLevel } from "@platform/kernel/log";
import { systemClock } from "@platform/kernel/time";
import { formatUrl, getAddress, type EntryContext, type ServiceEntry } from "../services/entry.ts";
import { selectServices } from "../services/index.ts";
import { loadCredentials } from "../credentials/credentials.ts";
import { createLogStream, type LogStream } from "../supervisor/log-stream.ts";
import {
  createSupervisedProcess,
  type SupervisedProcess,
} from "../supervisor/supervised-process.ts";
import { formatBanner, formatBannerJson, type BannerService } from "../banner.ts";

/** Options of {@link runUp}. */
export interface UpOptions {
  only: readonly string[];
  data: string;
  /** Public domain; undefined on a machine without one. */
  domain: string | undefined;
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
  const entries = selectServices(options.only);
  const addresses = new Map(options.addresses);
  await probePorts(entries, addresses);
  const dataDir = resolve(options.data);
  const context: EntryContext = {
    dataDir,
    dataDirShown: formatFolder(dataDir),
    addresses,
    domain: options.domain,
    credentials: await loadCredentials(
      dataDir,
      entries.flatMap((entry) => entry.credentials),
      process.env,
      createIdSource(),
    ),
    running: entries,
  };
  const colours = process.stdout.isTTY && process.env["NO_COLOR"] === undefined;
  const write = (text: string): void => void process.stdout.write(text);
  const log = createLogStream({ json: options.json, colours, level: options.logLevel, write });
  const { drainTimeoutMs, version } = options;
  const lifecycleOptions = { service: "platform", version, logger: log.logger, drainTimeoutMs };
  return runService(lifecycleOptions, async (lifecycle) => {
    const running: BannerService[] = [];
    const notes: string[] = [];
    try {
      for (const entry of entries) {
        notes.push(...((await entry.prepare?.(context)) ?? []));
        const show = (listeners: readonly ListenerReport[], pid: number): void => {
          pinAddresses(entry, addresses, listeners);
          const [main] = entry.listeners;
          const url = main === undefined ? "" : formatUrl(getAddress(context, main.key));
          const line = {
            name: entry.name,
            label: entry.label,
            url,
            description: entry.describe(context, listeners),
            pid,
            listeners,
          };
          const at = running.findIndex(({ name }) => name === entry.name);
          if (at === -1) running.push(line);
          else running[at] = line;
        };
        const part = createPart(entry, context, options.logLevel, log, show);
        lifecycle.onDrain(entry.label, (drain) => part.stop(drain.remainingMs()));
        await part.start();
        if (lifecycle.stopping.aborted) return;
      }
    } catch (error) {
      log.release(lifecycle.stopping.aborted ? "warnings" : "all");
      throw error;
    }
    lifecycle.onReady(() => {
      const banner = {
        version,
        dataDir: context.dataDirShown,
        durationMs: systemClock.monotonicMs() - startedMs,
        services: running.toReversed(),
        trials: entries.toReversed().flatMap((entry) => entry.trials(context)),
        notes,
      };
      write(options.json ? formatBannerJson(banner) : formatBanner(banner, colours));
      log.release("warnings");
    });
  });
}

function createPart(
  entry: ServiceEntry,
  context: EntryContext,
  logLevel: LogLevel,
  log: LogStream,
  onReady: (listeners: readonly ListenerReport[], pid: number) => void,
): SupervisedProcess {
  return createSupervisedProcess({
    name: entry.name,
    main: entry.main,
    configure: () => {
      const { args, env } = entry.configure(context);
      return { args, env: { PLATFORM_LOG_LEVEL: logLevel, ...env } };
    },
    onLine: (line) => log.add(entry.name, line),
    onReady,
    logger: log.logger,
    clock: systemClock,
  });
}

// All ports in use are reported together, before any process is started or file written.
async function probePorts(
  entries: readonly ServiceEntry[],
  addresses: ReadonlyMap<string, ListenAddress>,
): Promise<void> {
  const problems: string[] = [];
  for (const { key } of entries.flatMap((entry) => entry.listeners)) {
    const address = addresses.get(key);
    if (address === undefined || address.port === 0) continue;
    const error = await tryListen(address);
    if (error === undefined) continue;
    const flag = `--${key.replaceAll("_", "-")}`;
    problems.push((await explainListenError(error, address, flag)).message);
  }
  if (problems.length > 0) throw new Error(problems.join("\n"));
}

function tryListen({ host, port }: ListenAddress): Promise<Error | undefined> {
  return new Promise((done) => {
    const server = createServer();
    server.once("error", done);
    server.listen({ port, exclusive: true, ...(host === undefined ? {} : { host }) }, () => {
      server.close(() => done(undefined));
    });
  });
}

// A restarted service keeps its ports.
function pinAddresses(
  entry: ServiceEntry,
  addresses: Map<string, ListenAddress>,
  listeners: readonly ListenerReport[],
): void {
  for (const { key, name } of entry.listeners) {
    const report = listeners.find((item) => item.name === name);
    const wanted = addresses.get(key);
    if (report !== undefined && wanted?.port === 0)
      addresses.set(key, { ...wanted, port: report.port });
  }
}

function formatFolder(path: string): string {
  const short = relative(process.cwd(), path);
  if (short.startsWith("..") || isAbsolute(short)) return path;
  return short === "" ? "." : `./${short}`;
}
