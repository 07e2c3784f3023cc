// The command line of `platform-tunnel`: relay and client.
import { runProgram, runService } from "@platform/kernel/lifecycle";
import { createLogger } from "@platform/kernel/log";
import { tunnelDefinition, VERSION, type RelayConfig } from "./config.ts";

/** Short forms of flags. */
const SHORT_FLAGS: Readonly<Record<string, string>> = {
  "-p": "--port",
  "-d": "--domain",
  "-r": "--relay",
  "-s": "--subdomain",
  "-c": "--custom-domain",
  "-t": "--token",
  "-i": "--inspect-port",
  "-a": "--share-auth",
};

/** Runs the command line of `platform-tunnel`. */
export async function main(): Promise<void> {
  process.argv.splice(2, Infinity, ...completeArguments(process.argv.slice(2)));
  await runProgram(tunnelDefinition, {
    "": () => {
      process.stderr.write("platform-tunnel: a command is required: server, client or a target\n");
      return 2;
    },
    server: ({ config, options }) => serve(config, options.port),
    restore: async ({ config, options, positionals: [folder = ""] }) => {
      const { restoreDatabaseBackup } = await import("@platform/kernel/database-backup");
      const { describeState } = await import("./database/state.ts");
      await restoreDatabaseBackup(describeState(config), { folder, ...options }, (line) => {
        process.stdout.write(`${line}\n`);
      });
    },
    client: async ({ options, positionals: [target] }) => {
      const { runClient } = await import("./client/run.ts");
      return runClient(options, target);
    },
  });
}

/** Expands short flags, and `platform-tunnel 3000` to `platform-tunnel client 3000`. */
function completeArguments(words: readonly string[]): string[] {
  const [first = ""] = words;
  const isTarget = /^(?:\d+$|[./]|https?:\/\/)|:/.test(first) && !first.startsWith("-");
  const full = isTarget ? ["client", ...words] : [...words];
  return full.map((word) => {
    const equals = word.indexOf("=");
    const name = equals === -1 ? word : word.slice(0, equals);
    const long = SHORT_FLAGS[name];
    return long === undefined ? word : long + word.slice(name.length);
  });
}

async function serve(config: RelayConfig, port: number | undefined): Promise<void> {
  const { startRelay } = await import("./service.ts");
  const log = createLogger({
    service: "tunnel",
    level: config.log_level,
    format: config.log_format,
  });
  const { drain_timeout_ms: drainTimeoutMs } = config;
  await runService(
    { service: "tunnel", version: VERSION, logger: log, drainTimeoutMs },
    async (lifecycle) => {
      const addr = port === undefined ? config.addr : { ...config.addr, port };
      await startRelay({ config: { ...config, addr }, log, lifecycle });
    },
  );
}

if (import.meta.main) await main();
