// The broker's process: command line, configuration, startup, signals, shutdown, exit code.
import { setFlagsFromString } from "node:v8";
import { runProgram, runService } from "@platform/kernel/lifecycle";
import { createLogger } from "@platform/kernel/log";
import { pulseDefinition, PULSE_VERSION } from "./config.ts";
import { startPulse } from "./service.ts";
import { backupFolder, restoreFolder } from "./store/backup.ts";
import { checkFolder, repairFolder } from "./store/maintenance.ts";

/** Runs the command line of `platform-pulse`. */
export async function main(): Promise<void> {
  // By default V8 collects the whole heap whenever it has grown by about 8 MB. Messages that wait for a checkpoint count,
  // so that at 2 000 messages/s each 1.4 s was followed by 50 ms in which publishing was slow.
  if (process.versions.bun === undefined) setFlagsFromString("--heap-growing-percent=200");
  await runProgram(pulseDefinition, {
    "": async ({ config }) => {
      const log = createLogger({
        service: "pulse",
        level: config.log_level,
        format: config.log_format,
      });
      const { drain_timeout_ms: drainTimeoutMs } = config;
      await runService(
        { service: "pulse", version: PULSE_VERSION, logger: log, drainTimeoutMs },
        (lifecycle) => startPulse({ config, log, lifecycle }),
      );
    },
    check: ({ config, options }) => checkFolder(config, printLine, options),
    repair: ({ config, options }) => repairFolder(config, options, printLine),
    backup: ({ config, options, positionals }) =>
      backupFolder(config, { folder: positionals[0]!, ...options }, printLine),
    restore: ({ config, options, positionals }) =>
      restoreFolder(config, { folder: positionals[0]!, ...options }, printLine),
  });
}

function printLine(line: string): void {
  process.stdout.write(`${line}\n`);
}

if (import.meta.main) await main();
