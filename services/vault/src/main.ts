// The storage daemon: flags and environment, configuration, startup, signals, graceful shutdown, exit code.
import { runProgram, runService } from "@platform/kernel/lifecycle";
import { createLogger } from "@platform/kernel/log";
import { VERSION, vaultDefinition } from "./config.ts";
import { LogOutput } from "./log/log-output.ts";

// A thread of the pool that waits for a disk is blocked: of Node's four, two large bodies being synced take all.
const POOL_THREADS = 16;

/** Runs the command line of `platform-vaultd`. Loads only what the command uses. */
export async function main(): Promise<void> {
  // Must be set before the pool is used for the first time.
  process.env["UV_THREADPOOL_SIZE"] ??= String(POOL_THREADS);
  await runProgram(vaultDefinition, {
    "": async ({ config }) => {
      const { startVault } = await import("./service.ts");
      const output = new LogOutput(config.log_format);
      const log = createLogger({
        service: "vault",
        level: config.log_level,
        format: output.format,
        write: output.write,
      });
      const { drain_timeout_ms: drainTimeoutMs } = config;
      await runService(
        { service: "vault", version: VERSION, logger: log, drainTimeoutMs },
        (lifecycle) => startVault({ config, log, output, lifecycle }),
      );
    },
    fsck: async ({ config, options }) => {
      const { runFsck } = await import("./fsck/command.ts");
      return await runFsck(config, options);
    },
    backup: async ({ config, options, positionals: [folder = ""] }) => {
      const { backUpStopped } = await import("./fsck/repository.ts");
      return await backUpStopped(config, { folder, ...options }, printLine);
    },
    "adopt-tier": async ({ config }) => {
      const { adoptTier } = await import("./fsck/adopt-tier.ts");
      adoptTier(config, (line) => {
        process.stdout.write(`${line}\n`);
      });
    },
    "rotate-master-key": async ({ config, options }) => {
      const { rotateMasterKey } = await import("./fsck/rotate-master-key.ts");
      await rotateMasterKey(config, options, printLine);
    },
    restore: async ({ config, options, positionals: [folder = ""] }) => {
      const { restoreStore } = await import("./fsck/restore-backup.ts");
      return await restoreStore(config, { folder, ...options }, printLine);
    },
    "repository check": async ({ config, options, positionals: [folder = ""] }) => {
      const { checkFolder } = await import("./fsck/repository.ts");
      return await checkFolder(config, { folder, ...options }, printLine);
    },
  });
}

function printLine(line: string): void {
  process.stdout.write(`${line}\n`);
}

if (import.meta.main) await main();
