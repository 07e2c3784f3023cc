// A service of `platform up` as a supervised process.
import { ACCEPTED_VARIABLE } from "@platform/kernel/secrets";
import { systemClock } from "@platform/kernel/time";
import type { CredentialStore } from "../credentials/credential-store.ts";
import { formatCommand } from "../data-folder/data-folder.ts";
import { listHeld } from "../services/credential-table.ts";
import type { EntryContext, ServiceEntry } from "../services/entry.ts";
import { METRICS_TOKEN } from "../services/metrics.ts";
import { OWNER_VARIABLE } from "../supervisor/former-run.ts";
import type { LogStream } from "../supervisor/log-stream.ts";
import { MemoryKills } from "../supervisor/memory.ts";
import {
  createSupervisedProcess,
  type SupervisedProcess,
  type SupervisedProcessOptions,
} from "../supervisor/supervised-process.ts";
import type { LogLevel } from "@platform/kernel/log";

/** One for all services: they are in one group. */
const memoryKills = new MemoryKills();

/** Options of {@link createPart} for all services. */
export interface PartOptions {
  logLevel: LogLevel;
  acceptLoss: boolean;
  /** Has the former values of credentials that are accepted as well. */
  store: Pick<CredentialStore, "describeAll">;
}

/** Creates the process of a service; its environment is that of the entry. */
export function createPart(
  entry: ServiceEntry,
  context: EntryContext,
  { logLevel, acceptLoss, store }: PartOptions,
  log: LogStream,
  events: Pick<SupervisedProcessOptions, "onReady" | "onFailure" | "onMessage" | "onRefused">,
): SupervisedProcess {
  return createSupervisedProcess({
    name: entry.label,
    logCommand: formatCommand(context.dataDir, `logs ${entry.label}`),
    main: entry.main,
    configure: () => {
      const { env, ...launch } = entry.configure(context);
      entry.onLaunch?.(context);
      const shared = {
        PLATFORM_LOG_LEVEL: logLevel,
        // The sample has no metrics.
        [METRICS_TOKEN]:
          entry.probes === undefined ? "" : (context.credentials[METRICS_TOKEN] ?? ""),
        [ACCEPTED_VARIABLE]: JSON.stringify(store.describeAll(listHeld(entry))),
        [OWNER_VARIABLE]: context.dataDir,
        ...(acceptLoss ? { PLATFORM_ACCEPT_LOSS: "true" } : {}),
      };
      return { ...launch, env: { ...shared, ...env } };
    },
    ...(entry.refuse === undefined ? {} : { refuse: entry.refuse }),
    memoryKills,
    onLine: (line) => log.add(entry.name, line),
    ...events,
    logger: log.logger,
    clock: systemClock,
  });
}
