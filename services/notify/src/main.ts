// The process of the mail service.
import { setFlagsFromString } from "node:v8";
import { runProgram, runService } from "@platform/kernel/lifecycle";
import { createLogger } from "@platform/kernel/log";
import { notifyDefinition, VERSION } from "./config.ts";
import { describeState } from "./database/state.ts";
import { startNotify } from "./service.ts";

/** Runs the command line of `platform-notify`. */
export async function main(): Promise<void> {
  // Mail is short-lived garbage: by default the heap grows to four times of what is alive before it is collected.
  if (process.versions.bun === undefined) setFlagsFromString("--heap-growing-percent=50");
  await runProgram(notifyDefinition, {
    "": async ({ config, sources }) => {
      const { log_level: level, log_format: format, drain_timeout_ms: drainTimeoutMs } = config;
      const log = createLogger({ service: "notify", level, format });
      await runService(
        { service: "notify", version: VERSION, logger: log, drainTimeoutMs },
        async (lifecycle) => {
          await startNotify({ config, sources, log, lifecycle });
        },
      );
    },
    restore: async ({ config, options, positionals: [folder = ""] }) => {
      const { restoreDatabaseBackup } = await import("@platform/kernel/database-backup");
      await restoreDatabaseBackup(describeState(config), { folder, ...options }, (line) => {
        process.stdout.write(`${line}\n`);
      });
    },
  });
}

if (import.meta.main) await main();
