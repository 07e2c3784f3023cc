// A process of `platform run --watch`: waits until it is needed, then loads the service and serves on the socket that all
// its successors share. Waiting processes have done what does not depend on the service, which is most of a start.
import { dirname } from "node:path";
import { pathToFileURL } from "node:url";
// The service imports it later.
import "@platform/service";
import {
  declared,
  formatReport,
  GatewayRulesError,
  loadDatabases,
  readServiceRules,
  reportError,
  runDeclaredService,
  type Development,
  type GatewayPlace,
  type Scheduler,
  type ServiceRules,
} from "@platform/service/host";
import { compileService } from "../language/compile.ts";
import { findCompileError, registerServiceFiles } from "../language/load-hooks.ts";
import {
  isPlaceMessage,
  isRunCommand,
  type DatabaseMessage,
  type FailedMessage,
  type FileMessage,
  type RefusedMessage,
  type RulesMessage,
  type SchedulesMessage,
  type SpansMessage,
  type WorkerCommand,
} from "./messages.ts";
import { createSpanSender } from "./span-sender.ts";

/** Changes of schedules within this time are reported together. */
const REPORT_MS = 50;
/** A process whose start has failed is killed when its report has arrived. */
const EXIT_MS = 1_000;
const [file = "", hostByDefault = "", development = "{}"] = process.argv.slice(2);

function report(type: FileMessage["type"], path: string): void {
  process.send?.({ type, path } satisfies FileMessage);
}

declared.hostByDefault = hostByDefault || undefined;
declared.development = JSON.parse(development) as Development;
registerServiceFiles((path) => report("file", path));
prepare();
process.on("message", (message) => {
  const command = message as WorkerCommand;
  if (command === "load") void load();
  else if (command === "prepare database") void loadDatabases();
});

async function load(): Promise<void> {
  const invalid = findCompileError(file);
  if (invalid !== undefined) {
    process.stderr.write(`${invalid.message}\n`);
    process.send?.({ type: "refused", reason: invalid.message } satisfies RefusedMessage);
    return;
  }
  try {
    await import(pathToFileURL(file).href);
    for (const folder of declared.migrationFolders) report("folder", folder);
    if (declared.databases.length > 0) {
      process.send?.({ type: "database" } satisfies DatabaseMessage);
    }
    if (declared.routes.length + declared.schedules.length === 0) {
      throw new Error(`${file} declares no route and no schedule`);
    }
    const onScheduler = reportSchedules;
    const rules = await readServiceRules(declared);
    const gateway = await askPlace(rules ?? null);
    const folder = dirname(file);
    const spans = createSpanSender({ send: reportSpans, readMonotonicMs: () => performance.now() });
    await runDeclaredService({ folder, isShared: true, onScheduler, gateway, rules, spans });
  } catch (error) {
    const reason = describeFailure(error);
    process.stderr.write(reason);
    if (!process.connected) process.exit(1);
    process.send?.({ type: "failed", reason } satisfies FailedMessage);
    setTimeout(() => process.exit(1), EXIT_MS);
  }
}

/** An error of this package, such as an invalid setting, has no frame of the author. */
function describeFailure(error: unknown): string {
  // It names the places itself.
  if (error instanceof GatewayRulesError) return `${error.message}\n`;
  const report = reportError(error);
  if (report.at !== "" || !(error instanceof Error)) return formatReport(report);
  return `${error.stack ?? report.message}\n`;
}

/** Asks where the gateway reaches this version; rejects if its rules are not accepted. */
function askPlace(rules: ServiceRules | null): Promise<GatewayPlace | undefined> {
  const { promise, resolve, reject } = Promise.withResolvers<GatewayPlace | undefined>();
  process.on("message", (message: unknown) => {
    if (!isPlaceMessage(message)) return;
    if (message.refused === undefined) resolve(message.place);
    else reject(new GatewayRulesError(`the gateway rules are refused: ${message.refused}`));
  });
  process.send?.({ type: "rules", rules } satisfies RulesMessage);
  return promise;
}

/** Reports the schedules now and after each change, and runs those that the other side names. */
function reportSchedules(scheduler: Scheduler): void {
  const send = (): void => {
    timer = undefined;
    if (!process.connected) return;
    const message: SchedulesMessage = { type: "schedules", schedules: scheduler.describe() };
    process.send?.(message, undefined, undefined, () => undefined);
  };
  let timer: NodeJS.Timeout | undefined;
  scheduler.listen(() => (timer ??= setTimeout(send, REPORT_MS)));
  process.on("message", (message: unknown) => {
    if (isRunCommand(message)) void scheduler.runNow(message.name);
  });
  send();
}

function reportSpans(message: SpansMessage): void {
  if (process.connected) process.send?.(message, undefined, undefined, () => undefined);
}

/** Runs the code that a load runs first. Invalid settings are reported by the load. */
function prepare(): void {
  compileService("server { }\nexport route GET / (req) { return req }\n", "main.service.ts");
  try {
    void declared.settings;
  } catch {
    return;
  }
}
