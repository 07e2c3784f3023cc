// The identity service's process: flags and environment, configuration, start, signals, drain, exit code.
import { runProgram, runService } from "@platform/kernel/lifecycle";
import { createLogger } from "@platform/kernel/log";
import { authDefinition, authVersion } from "./config.ts";
import type { AuthConfig } from "./config.ts";
import { startAuth } from "./service.ts";

/** Runs the command line of `platform-auth`. */
export async function main(): Promise<void> {
  await runProgram(authDefinition, {
    "": ({ config }) => serve(config),
  });
}

async function serve(config: AuthConfig): Promise<void> {
  const log = createLogger({ service: "auth", level: config.log_level, format: config.log_format });
  await runService(
    {
      service: "auth",
      version: authVersion,
      logger: log,
      drainTimeoutMs: config.drain_timeout_ms,
    },
    async (lifecycle) => {
      await startAuth({ config, log, lifecycle });
    },
  );
}

if (import.meta.main) await main();
