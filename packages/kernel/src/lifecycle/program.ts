// Common main function of programs: loads the configuration, runs the command, sets the exit code.
import {
  ConfigError,
  loadConfig,
  nameProgram,
  type Commands,
  type ConfigDefinition,
  type ConfigKeys,
  type Loaded,
} from "../config/index.ts";
import { EXIT_CODES } from "./service.ts";

type Runnable<Keys extends ConfigKeys, Subcommands extends Commands> = Extract<
  Loaded<Keys, Subcommands>,
  { kind: "run" }
>;

/** One function per command; "" is the program itself. Each resolves to the exit code; undefined means 0. */
export type ProgramHandlers<Keys extends ConfigKeys, Subcommands extends Commands> = {
  [Name in Runnable<Keys, Subcommands>["command"]]: (
    loaded: Extract<Runnable<Keys, Subcommands>, { command: Name }>,
  ) => number | void | Promise<number | void>;
};

/**
 * Runs a program with this process's command line and environment. Help, version and configuration errors are handled
 * here (exit codes 0, 0 and 2); an error thrown by a command is printed, with exit code 1.
 */
export async function runProgram<Keys extends ConfigKeys, Subcommands extends Commands>(
  definition: ConfigDefinition<Keys, Subcommands>,
  handlers: ProgramHandlers<Keys, Subcommands>,
): Promise<void> {
  try {
    const loaded = loadConfig(definition, {
      argv: process.argv.slice(2),
      env: process.env,
      nameProgram,
    });
    if (loaded.kind === "print") {
      (loaded.exitCode === 0 ? process.stdout : process.stderr).write(loaded.text);
      process.exitCode = loaded.exitCode;
      return;
    }
    for (const warning of loaded.warnings)
      process.stderr.write(`${definition.program}: ${warning}\n`);
    // The table has a handler for each command; TypeScript cannot infer that its argument matches.
    const handler = handlers[loaded.command as keyof typeof handlers] as (
      loaded: unknown,
    ) => number | void | Promise<number | void>;
    process.exitCode = (await handler(loaded)) ?? EXIT_CODES.ok;
  } catch (error) {
    const text = error instanceof Error ? error.message : String(error);
    for (const line of text.split("\n")) process.stderr.write(`${definition.program}: ${line}\n`);
    process.exitCode = error instanceof ConfigError ? EXIT_CODES.usage : EXIT_CODES.failure;
  }
}
