// The `platform` command line.
import type { ListenAddress } from "@platform/kernel/config";
import { runProgram } from "@platform/kernel/lifecycle";
import { SERVICES } from "./services/index.ts";
import { runAppAdd, runAppRemove } from "./command/app-add.ts";
import { runBackup } from "./command/backup.ts";
import { runBucketAdd } from "./command/bucket-add.ts";
import { runCheck } from "./command/check.ts";
import { runDoctor } from "./command/doctor.ts";
import { runInit } from "./command/init.ts";
import { runLogs } from "./command/logs.ts";
import { runRun } from "./command/run.ts";
import { runShare } from "./command/share.ts";
import { runMigrateNew, runMigrateStatus, runMigrateUp } from "./command/migrate.ts";
import { PROJECT_KEY } from "./command/project-entry.ts";
import { runRestore } from "./command/restore.ts";
import { runStatus } from "./command/status.ts";
import { runTest } from "./command/run-tests.ts";
import { runUp } from "./command/up.ts";
import { runUserAdd } from "./command/user-add.ts";
import { UNBUILT_COMMANDS, VERSION, runtimeDefinition } from "./config.ts";

/** Runs the command given by this process's arguments and environment. */
export async function main(): Promise<void> {
  const [command = "", ...rest] = process.argv.slice(2);
  // Their flags are not declared yet, so the command line is not parsed.
  if (UNBUILT_COMMANDS.some((name) => name === command) && !rest.includes("--help")) {
    process.exitCode = refuseCommand(command);
    return;
  }
  await runProgram(runtimeDefinition, {
    "": () => refuseCommand(""),
    up: ({ options }) =>
      runUp({
        only: options.only,
        data: options.data,
        domain: options.domain,
        json: options.json,
        logLevel: options.log_level,
        drainTimeoutMs: options.drain_timeout_ms,
        addresses: collectAddresses(options),
        version: VERSION,
      }),
    status: ({ options }) => runStatus(options),
    logs: ({ options, positionals: [service] }) => runLogs({ ...options, service }),
    doctor: ({ options }) =>
      runDoctor({
        data: options.data,
        json: options.json,
        addresses: collectAddresses(options),
      }),
    "user add": ({ options, positionals: [username = ""] }) =>
      runUserAdd({
        ...options,
        username,
        roles: options.role,
        passwordStdin: options.password_stdin,
      }),
    "bucket add": ({ options, positionals: [name = ""] }) =>
      runBucketAdd({ data: options.data, name, origins: options.cors }),
    "app add": ({ options, positionals: [name = ""] }) =>
      runAppAdd({
        data: options.data,
        name,
        redirects: options.redirect,
        bucket: options.bucket,
        topics: options.topic,
        mail: options.mail,
      }),
    "app remove": ({ options, positionals: [name = ""] }) => runAppRemove(options.data, name),
    share: ({ options, positionals: [target = ""] }) => runShare({ ...options, target }),
    backup: ({ options, positionals: [folder = ""] }) =>
      runBackup({
        folder,
        data: options.data,
        passphraseFile: options.passphrase_file,
        version: VERSION,
      }),
    restore: ({ options, positionals: [folder = ""] }) =>
      runRestore({
        folder,
        data: options.data,
        passphraseFile: options.passphrase_file,
        dryRun: options.dry_run,
      }),
    init: ({ positionals: [name = ""] }) => runInit(name),
    run: ({ options, positionals: [file] }) => runRun({ file, watch: options.watch }),
    check: ({ options, positionals: [file] }) => runCheck({ file, json: options.json }),
    "migrate status": ({ positionals: [file] }) => runMigrateStatus(file),
    "migrate up": ({ positionals: [file] }) => runMigrateUp(file),
    "migrate new": ({ positionals: [name = ""] }) => runMigrateNew(name),
    test: ({ positionals }) => runTest(positionals),
    build: async ({ options, positionals: [file] }) => {
      // The bundler is loaded only if it is used.
      const { runBuild } = await import("./command/build.ts");
      return runBuild({ file, out: options.out });
    },
    deploy: () => refuseCommand("deploy"),
  });
}

// The listener keys are computed, so their types are not known by name.
function collectAddresses(options: object): Map<string, ListenAddress> {
  const values = options as Readonly<Record<string, ListenAddress>>;
  const keys = SERVICES.flatMap(({ listeners }) => listeners.map(({ key }) => key));
  return new Map(
    [...keys, PROJECT_KEY].flatMap((key) => {
      const address = values[key];
      return address === undefined ? [] : [[key, address] as const];
    }),
  );
}

function refuseCommand(name: string): number {
  process.stderr.write(`platform: the command ${name} is not available yet\n`);
  return 1;
}

if (import.meta.main) await main();
