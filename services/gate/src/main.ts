// Entry point of `platform-gate`: command line, start, exit code.
import { runProgram, runService } from "@platform/kernel/lifecycle";
import { createLogger } from "@platform/kernel/log";
import { gateDefinition, GATE_VERSION } from "./config/document.ts";
import { type LoadedGate, checkLoaded } from "./config/load.ts";
import { NOT_AVAILABLE_YET } from "./config/value.ts";
import { clearOverlay, describeConfiguration, describeOverlay } from "./control/command.ts";

const WORKER_ENTRY = new URL("./listen/worker.ts", import.meta.url);
const UNBUILT_COMMANDS = ["install", "policy"];

/** Runs the command line of `platform-gate`. Loads only what the command uses: the gateway itself takes longest. */
export async function main(): Promise<void> {
  const [command = "", ...rest] = process.argv.slice(2);
  // Checked before the command line is parsed, because their flags are not defined yet.
  if (UNBUILT_COMMANDS.includes(command) && !rest.includes("--help")) {
    process.exitCode = refuseCommand(command);
    return;
  }
  await runProgram(gateDefinition, {
    "": (loaded) => serve(checkLoaded(loaded)),
    validate: async (loaded) => print(await describeConfiguration(checkLoaded(loaded))),
    "overlay show": async ({ options }) => print(await describeOverlay(options.config)),
    "overlay clear": async ({ options }) => print(await clearOverlay(options.config)),
    dashboard: async ({ options }) => {
      const { runDashboard } = await import("./dashboard/command.ts");
      return await runDashboard(options, process.stdout, printError);
    },
    replay: async ({ options }) => {
      const { runReplay } = await import("./replay/command.ts");
      return await runReplay(options, print, printError);
    },
    install: () => refuseCommand("install"),
    policy: () => refuseCommand("policy"),
  });
}

async function serve(loaded: LoadedGate): Promise<void> {
  const { config } = loaded;
  // Reports invalid settings before anything starts.
  await describeConfiguration(loaded);
  const log = createLogger({ service: "gate", level: config.log_level, format: config.log_format });
  await runService(
    {
      service: "gate",
      version: GATE_VERSION,
      logger: log,
      drainTimeoutMs: config.drain_timeout_ms,
    },
    async (lifecycle) => {
      if (!loaded.hasFile) {
        log.warn("configuration file not found, starting without its routes", {
          path: loaded.path,
        });
      }
      const { startGate } = await import("./service.ts");
      const sources = { argv: process.argv.slice(2), env: process.env };
      await startGate({ loaded, sources, log, lifecycle, workerEntry: WORKER_ENTRY });
    },
  );
}

function refuseCommand(name: string): number {
  process.stderr.write(`platform-gate: the command ${name} is ${NOT_AVAILABLE_YET}\n`);
  return 1;
}

function printError(text: string): void {
  process.stderr.write(`platform-gate: ${text}\n`);
}

function print(text: string): void {
  process.stdout.write(text);
}

if (import.meta.main) await main();
