// Running the declared service: for `server().start()`, and for commands that load the files of a service.
import { dirname } from "node:path";
import { runService } from "@platform/kernel/lifecycle";
import type { SpanExporter } from "@platform/kernel/trace";
import type { Scheduler } from "./schedule/scheduler.ts";
import { declared } from "./service/declared.ts";
import type { ServiceRules } from "./service/gateway-rules.ts";
import { startService, type GatewayPlace } from "./service/start-service.ts";
import { readIdentity } from "./service/identity.ts";
import { createTelemetry } from "./service/telemetry.ts";

export { answerCommandLine } from "./service/command-line.ts";
export { readIdentity } from "./service/identity.ts";
export { declared } from "./service/declared.ts";
export { loadDatabases } from "./database/database.ts";
export { formatReport, reportError } from "./error/error-report.ts";
export { OPTION_NAMES } from "./error/option-names.ts";
export { nameNextMigration, parseMigrationName } from "./database/migration-names.ts";
export { readMigrationFolder, selectMigrations } from "./database/migrations.ts";
export { Router } from "./route/router.ts";
export type { ScheduleReport } from "./schedule/report.ts";
export type { Development } from "./service/service.ts";
export type { Scheduler } from "./schedule/scheduler.ts";
export {
  GatewayRulesError,
  readServiceRules,
  type DeclaredRules,
  type ServiceRules,
} from "./service/gateway-rules.ts";
export type { GatewayPlace } from "./service/start-service.ts";
export { checkTiming } from "./schedule/schedule.ts";

/** Options of {@link runDeclaredService}. */
export interface RunOptions {
  /** Folder whose package.json names the service; default: that of the main script. */
  folder?: string;
  /** True if the listening socket is shared with other processes of a cluster. */
  isShared?: boolean;
  /** Port at which the platform's gateway reaches the service; undefined without a gateway. */
  gateway?: GatewayPlace | undefined;
  /** The rules of the service, if they were read already. */
  rules?: ServiceRules | undefined;
  /** Receives ended spans. */
  spans?: SpanExporter | undefined;
  /** Called with the schedules once they are started. */
  onScheduler?: (scheduler: Scheduler) => void;
}

let running: Promise<{ port: number }> | undefined;

/**
 * Starts the declared service as this process: signals drain it, then the process exits. Resolves with the port when it
 * accepts requests. A failed start is logged, and the process exits with 1. A second call returns the first result.
 */
export function runDeclaredService(options: RunOptions = {}): Promise<{ port: number }> {
  return (running ??= run(options));
}

function run(options: RunOptions) {
  const { folder = dirname(process.argv[1] ?? "."), isShared = false, onScheduler } = options;
  const { gateway, rules, spans } = options;
  const { settings, caches, environment } = declared;
  const identity = declared.identity ?? readIdentity(folder);
  const name = settings.name ?? identity.name;
  const { version } = identity;
  const isReporting = declared.development !== undefined;
  const { clock } = environment;
  const base = { name, version, settings, caches, clock, isReporting };
  const telemetry = createTelemetry({ ...base, spans });
  const { log } = telemetry;
  return new Promise<{ port: number }>((resolve) => {
    const drainTimeoutMs = settings.drain_timeout_ms;
    void runService({ service: name, version, logger: log, drainTimeoutMs }, async (lifecycle) => {
      const started = {
        service: declared,
        name,
        version,
        telemetry,
        lifecycle,
        isShared,
        gateway,
        rules,
      };
      const { port, scheduler } = await startService(started);
      onScheduler?.(scheduler);
      lifecycle.onReady(() => resolve({ port }));
    });
  });
}
