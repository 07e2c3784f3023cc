// The `platform` command line.
import type { ListenAddress } from "@platform/kernel/config";
import { runProgram } from "@platform/kernel/lifecycle";
import { OPERATOR_HANDLERS } from "./command/operator-handlers.ts";
import { PROJECT_HANDLERS } from "./command/project-handlers.ts";
import { SERVICES } from "./services/index.ts";
import { PROJECT_KEY } from "./services/project.ts";
import { RUNTIME_KEY } from "./services/runtime.ts";
import { VERSION, runtimeDefinition } from "./config.ts";

/**
 * Runs the command given by this process's arguments and environment. Each command is loaded when it runs: all of them
 * together take longer to load than a service to start.
 */
export async function main(): Promise<void> {
  await runProgram(runtimeDefinition, {
    "": () => {
      process.stderr.write("platform: expected a command; see platform --help\n");
      return 1;
    },
    up: async ({ options, sources }) => {
      const joining = { ...options, environmentFile: options.environment_file, sources };
      const left = await (await import("./command/join.ts")).joinRunning(joining);
      if (left !== undefined) return left;
      return (await import("./command/up.ts")).runUp({
        ...options,
        consoleUrl: options.console_url,
        autoTls: options.auto_tls,
        acceptLoss: options.accept_loss,
        logLevel: options.log_level,
        drainTimeoutMs: options.drain_timeout_ms,
        addresses: collectAddresses(options),
        version: VERSION,
      });
    },
    ...PROJECT_HANDLERS,
    status: async ({ options }) => (await import("./command/status.ts")).runStatus(options),
    down: async ({ options }) =>
      (await import("./command/down.ts")).runDown({ ...options, timeoutMs: options.timeout_ms }),
    ...OPERATOR_HANDLERS,
    logs: async ({ options, positionals: [service] }) =>
      (await import("./command/logs.ts")).runLogs({ ...options, service }),
    doctor: async ({ options }) =>
      (await import("./command/doctor.ts")).runDoctor({
        data: options.data,
        json: options.json,
        addresses: collectAddresses(options),
      }),
    "user add": async ({ options, positionals: [username = ""] }) =>
      (await import("./command/user-add.ts")).runUserAdd({
        ...options,
        username,
        roles: options.role,
        passwordStdin: options.password_stdin,
      }),
    "bucket add": async ({ options: { data, cors: origins }, positionals: [name = ""] }) =>
      (await import("./command/bucket-add.ts")).runBucketAdd({ data, name, origins }),
    "app add": async ({ options, positionals: [name = ""] }) =>
      (await import("./command/app-add.ts")).runAppAdd({
        data: options.data,
        name,
        redirects: options.redirect,
        bucket: options.bucket,
        topics: options.topic,
        mail: options.mail,
        out: options.out,
      }),
    "app allow": async ({ options, positionals: [name = ""] }) =>
      (await import("./command/app-allow.ts")).runAppAllow({
        data: options.data,
        name,
        roles: options.role,
      }),
    "app remove": async ({ options, positionals: [name = ""] }) =>
      (await import("./command/app-add.ts")).runAppRemove(options.data, name),
    share: async ({ options, positionals: [target = ""] }) =>
      (await import("./command/share.ts")).runShare({ ...options, target }),
    backup: async ({ options, positionals: [folder = ""] }) =>
      (await import("./command/backup.ts")).runBackup({
        folder,
        data: options.data,
        passphraseFile: options.passphrase_file,
        version: VERSION,
      }),
    restore: async ({ options, positionals: [folder = ""] }) =>
      (await import("./command/restore.ts")).runRestore({
        folder,
        data: options.data,
        passphraseFile: options.passphrase_file,
        dryRun: options.dry_run,
      }),
    run: async ({ options, positionals: [file] }) =>
      (await import("./command/run.ts")).runRun({ file, watch: options.watch }),
    check: async ({ options, positionals: [file] }) =>
      (await import("./command/check.ts")).runCheck({ file, json: options.json }),
    lsp: async () => (await import("./command/lsp.ts")).runLsp(VERSION),
    "migrate status": async ({ positionals: [file] }) =>
      (await import("./command/migrate.ts")).runMigrateStatus(file),
    "migrate up": async ({ positionals: [file] }) =>
      (await import("./command/migrate.ts")).runMigrateUp(file),
    "migrate new": async ({ positionals: [name = ""] }) =>
      (await import("./command/migrate.ts")).runMigrateNew(name),
    test: async ({ positionals }) => (await import("./command/run-tests.ts")).runTest(positionals),
    build: async ({ options, positionals: [file] }) =>
      (await import("./command/build.ts")).runBuild({ ...options, out: options.out, file }),
    deploy: async ({ options, positionals: [file] }) =>
      (await import("./command/deploy.ts")).runDeploy({
        ...options,
        file,
        dryRun: options.dry_run,
      }),
  });
}

// The listener keys are computed, so their types are not known by name.
function collectAddresses(options: object): Map<string, ListenAddress> {
  const values = options as Readonly<Record<string, ListenAddress | "shared">>;
  const keys = SERVICES.flatMap(({ listeners }) => listeners.map(({ key }) => key));
  return new Map(
    [...keys, PROJECT_KEY, RUNTIME_KEY].flatMap((key) => {
      const address = values[key];
      return address === undefined || address === "shared" ? [] : [[key, address] as const];
    }),
  );
}

if (import.meta.main) await main();
