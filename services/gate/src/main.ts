// Entry point of `platform-gate`: command line, start, exit code.
import { runProgram, runService } from "@platform/kernel/lifecycle";
import { createLogger } from "@platform/kernel/log";
import { gateDefinition, GATE_VERSION } from "./config/document.ts";
import { type LoadedGate, checkLoaded } from "./config/load.ts";
import { clearOverlay, describeConfiguration, describeOverlay } from "./control/command.ts";

const WORKER_ENTRY = new URL("./listen/worker.ts", import.meta.url);

/** Runs the command line of `platform-gate`. Loads only what the command uses: the gateway itself takes longest. */
export async function main(): Promise<void> {
  await runProgram(gateDefinition, {
    "": (loaded) => serve(checkLoaded(loaded)),
    validate: async (loaded) => print(await describeConfiguration(checkLoaded(loaded))),
    "overlay show": async ({ options }) => print(await describeOverlay(options.config)),
    "overlay clear": async ({ options }) => print(await clearOverlay(options.config)),
    "certificates list": async ({ options }) => {
      const { listCertificates } = await import("./certificate-commands/command.ts");
      await listCertificates(options, print);
    },
    "certificates renew": async ({ positionals: [name = ""], options }) => {
      const { renewCertificate } = await import("./certificate-commands/command.ts");
      await renewCertificate(name, options, print);
    },
    "certificates revoke": async ({ positionals: [name = ""], options }) => {
      const { revokeCertificate } = await import("./certificate-commands/command.ts");
      await revokeCertificate(name, options, print);
    },
    dashboard: async ({ options }) => {
      const { runDashboard } = await import("./dashboard/command.ts");
      return await runDashboard(options, process.stdout, printError);
    },
    replay: async ({ options }) => {
      const { runReplay } = await import("./replay/command.ts");
      return await runReplay(options, print, printError);
    },
    install: async ({ positionals: [name = ""], options }) => {
      const { runInstall } = await import("./install/command.ts");
      return await runInstall(name, options, print, printError);
    },
    "registry index": async ({ positionals: [folder = ""] }) => {
      const { runRegistryIndex } = await import("./install/command.ts");
      return await runRegistryIndex(folder, print, printError);
    },
    "policy compile": async ({ positionals: [file = ""], options }) => {
      const { runPolicyCompile } = await import("./policy-compiler/command.ts");
      return await runPolicyCompile(file, options, print, printError);
    },
    "policy check": async ({ positionals: [file = ""], options }) => {
      const { runPolicyCheck } = await import("./policy-compiler/command.ts");
      return await runPolicyCheck(file, options, print, printError);
    },
    "policy test": async ({ positionals: [file = ""], options }) => {
      const { runPolicyTest } = await import("./policy-compiler/command.ts");
      return await runPolicyTest(file, options, print, printError);
    },
  });
}

async function serve(given: LoadedGate): Promise<void> {
  const { config } = given;
  // Reports invalid settings before anything starts.
  await describeConfiguration(given);
  const log = createLogger({ service: "gate", level: config.log_level, format: config.log_format });
  await runService(
    {
      service: "gate",
      version: GATE_VERSION,
      logger: log,
      drainTimeoutMs: config.drain_timeout_ms,
    },
    async (lifecycle) => {
      if (!given.hasFile) {
        log.warn("configuration file not found, starting without its routes", {
          path: given.path,
        });
      }
      const { startGate } = await import("./service.ts");
      const sources = { argv: process.argv.slice(2), env: process.env };
      await startGate({ loaded: given, sources, log, lifecycle, workerEntry: WORKER_ENTRY });
    },
  );
}

function printError(text: string): void {
  process.stderr.write(`platform-gate: ${text}\n`);
}

function print(text: string): void {
  process.stdout.write(text);
}

if (import.meta.main) await main();
