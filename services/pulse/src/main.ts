// The broker's process: flags and environment, configuration, start, signals, drain, exit code.
import { runProgram, runService } from "@platform/kernel/lifecycle";
import { createLogger } from "@platform/kernel/log";
import { pulseDefinition, pulseVersion } from "./config.ts";
import { startPulse } from "./service.ts";

/** Runs the command line of `platform-pulse`. */
export async function main(): Promise<void> {
  await runProgram(pulseDefinition, {
    "": async ({ config }) => {
      const log = createLogger({
        service: "pulse",
        level: config.log_level,
        format: config.log_format,
      });
      const { drain_timeout_ms: drainTimeoutMs } = config;
      await runService(
        { service: "pulse", version: pulseVersion, logger: log, drainTimeoutMs },
        (lifecycle) => startPulse({ config, log, lifecycle }),
      );
    },
  });
}

if (import.meta.main) await main();
