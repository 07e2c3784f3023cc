// The command line of built executables: `--help` and `--version`.
import { loadConfig, type ConfigKey } from "@platform/kernel/config";
import type { Identity } from "./identity.ts";
import { serviceDefinition } from "./settings.ts";

const WORDS = ["--help", "-h", "--version"];

/**
 * Prints help or version and exits if that is all that the command line requests. Other arguments belong to the author's
 * program.
 */
export function answerCommandLine({ name, version }: Identity, argv = process.argv.slice(2)): void {
  if (argv.length !== 1 || !WORDS.includes(argv[0]!)) return;
  // Settings are read from the environment only.
  const keys = Object.entries<ConfigKey>(serviceDefinition.keys).map(([key, item]) => [
    key,
    { ...item, flag: false },
  ]);
  const summary = "settings are environment variables; a change requires a restart.";
  const definition = { ...serviceDefinition, program: name, version, summary };
  const loaded = loadConfig({ ...definition, keys: Object.fromEntries(keys) }, { argv, env: {} });
  if (loaded.kind === "print") process.stdout.write(loaded.text);
  process.exit(0);
}
