// The process of the identity service.
import { availableParallelism } from "node:os";
import { runProgram, runService } from "@platform/kernel/lifecycle";
import { createLogger } from "@platform/kernel/log";
import { systemClock } from "@platform/kernel/time";
import { authDefinition, VERSION, type AuthConfig } from "./config.ts";
import type { AuthOptions, AuthService } from "./service.ts";

const OTHER_THREADS = 3;

/** Runs the command line of `platform-auth`. */
export async function main(): Promise<void> {
  await runProgram(authDefinition, {
    "": ({ config }) => serve(config),
    "admin reset": async ({ config, positionals: [username = ""] }) => {
      const { resetAdministrator } = await import("./sign-in/reset-administrator.ts");
      process.stdout.write(`${await resetAdministrator(config, username, systemClock)}\n`);
    },
    restore: async ({ config, options, positionals: [folder = ""] }) => {
      const { restoreDatabaseBackup } = await import("@platform/kernel/database-backup");
      const { describeState } = await import("./backup/backup.ts");
      await restoreDatabaseBackup(describeState(config), { folder, ...options }, (line) => {
        process.stdout.write(`${line}\n`);
      });
    },
  });
}

async function serve(config: AuthConfig): Promise<void> {
  sizeThreadPool(config);
  const { startAuth } = await loadService();
  const log = createLogger({ service: "auth", level: config.log_level, format: config.log_format });
  await runService(
    {
      service: "auth",
      version: VERSION,
      logger: log,
      drainTimeoutMs: config.drain_timeout_ms,
    },
    async (lifecycle) => {
      await startAuth({ config, log, lifecycle });
    },
  );
}

// Sized before the thread pool is used: one thread per concurrent password hash, and some for work that must not wait
// for them (commits, RSA signatures).
function sizeThreadPool(config: AuthConfig): void {
  const hashing = config.password_hash_concurrency ?? availableParallelism();
  process.env["UV_THREADPOOL_SIZE"] ??= String(hashing + OTHER_THREADS);
}

// Loaded late because --help and --version do not need the protocol core. The core warns on runtimes other than
// Node's LTS lines; the runtime is pinned and tested here, and operators cannot change it.
async function loadService(): Promise<{
  startAuth: (options: AuthOptions) => Promise<AuthService>;
}> {
  /* oxlint-disable no-console -- nothing is written here: one sentence of a library is kept back */
  const { warn } = console;
  console.warn = (...words: unknown[]) => {
    if (!String(words[0]).includes("oidc-provider WARNING: Unsupported runtime")) warn(...words);
  };
  try {
    return await import("./service.ts");
  } finally {
    console.warn = warn;
  }
  /* oxlint-enable no-console */
}

if (import.meta.main) await main();
