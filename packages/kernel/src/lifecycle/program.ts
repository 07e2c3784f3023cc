// The frame of every command line program: load the configuration, run the command, end with the right exit code.
import { ConfigError, loadConfig } from "../config/index.ts";
import type { Commands, ConfigDefinition, ConfigKeys, Loaded } from "../config/index.ts";
import { exitCodes } from "./service.ts";

type Runnable<Keys extends ConfigKeys, Subcommands extends Commands> = Extract<
  Loaded<Keys, Subcommands>,
  { kind: "run" }
>;

/** One function per command; "" is the program itself. Each resolves to the exit code, nothing meaning 0. */
export type ProgramHandlers<Keys extends ConfigKeys, Subcommands extends Commands> = {
  [Name in Runnable<Keys, Subcommands>["command"]]: (
    loaded: Extract<Runnable<Keys, Subcommands>, { command: Name }>,
  ) => number | void | Promise<number | void>;
};

/**
 * Runs a program from this process's command line and environment. Help, version and wrong configuration are answered
 * here (exit codes 0, 0 and 2); an error that a command throws is printed as one line, with exit code 1.
 */
export async function runProgram<Keys extends ConfigKeys, Subcommands extends Commands>(
  definition: ConfigDefinition<Keys, Subcommands>,
  handlers: ProgramHandlers<Keys, Subcommands>,
): Promise<void> {
  try {
    const loaded = loadConfig(definition, { argv: process.argv.slice(2), env: process.env });
    if (loaded.kind === "print") {
      (loaded.exitCode === 0 ? process.stdout : process.stderr).write(loaded.text);
      process.exitCode = loaded.exitCode;
      return;
    }
    for (const warning of loaded.warnings)
      process.stderr.write(`${definition.program}: ${warning}\n`);
    // The table has a handler for each command; that its argument fits is beyond what the checker can follow.
    const handler = handlers[loaded.command as keyof typeof handlers] as (
      loaded: unknown,
    ) => number | void | Promise<number | void>;
    process.exitCode = (await handler(loaded)) ?? exitCodes.ok;
  } catch (error) {
    const text = error instanceof Error ? error.message : String(error);
    for (const line of text.split("\n")) process.stderr.write(`${definition.program}: ${line}\n`);
    process.exitCode = error instanceof ConfigError ? exitCodes.usage : exitCodes.failure;
  }
}
