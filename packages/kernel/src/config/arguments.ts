// Parses a command line by a definition: command, flags, positional arguments.
import {
  getFlagName,
  type CommandDefinition,
  type ConfigDefinition,
  type ConfigKey,
} from "./define.ts";
import { suggestName, type ConfigProblem } from "./problem.ts";
import { listTypes, findShapes, readShape } from "./shape.ts";

const HELP_FLAGS: ReadonlySet<string> = new Set(["--help", "-help", "-h"]);
const VERSION_FLAGS: ReadonlySet<string> = new Set(["--version", "-version", "-V", "-v"]);

/** A parsed command line. */
export interface CommandLine {
  /** "" without a command. */
  command: string;
  definition: CommandDefinition | undefined;
  /** `--help` or `--version`, which take precedence over the rest of the line. */
  action: "help" | "version" | undefined;
  /** Values by flag name; a boolean flag without a value is "true", `--no-x` is "false". */
  flags: Map<string, string[]>;
  positionals: string[];
  problems: ConfigProblem[];
}

/** Parses `argv` (without runtime and script). Never throws: errors are in `problems`. */
export function readCommandLine(
  definition: ConfigDefinition,
  argv: readonly string[],
): CommandLine {
  const [first = "", ...others] = argv;
  const isCommand = Object.keys(definition.commands ?? {}).some((name) => name.startsWith(first));
  if (first === "help" && !isCommand) return readCommandLine(definition, [...others, "--help"]);
  if (first === "version" && !isCommand) return readCommandLine(definition, ["--version"]);
  const { name: command, words } = findCommand(definition, argv);
  const commandDefinition = command === "" ? undefined : definition.commands?.[command];
  const line: CommandLine = {
    command,
    definition: commandDefinition,
    action: undefined,
    flags: new Map(),
    positionals: [],
    problems: [],
  };
  const { flags: booleans, shorts, others: otherFlags } = listFlags(definition, commandDefinition);
  const known = [...booleans.keys(), "help", "version"];
  const rest = argv.slice(words);
  for (let at = 0; at < rest.length; at += 1) {
    const word = shorts.get(rest[at]!) ?? rest[at]!;
    if (word === "--") {
      line.positionals.push(...rest.slice(at + 1));
      break;
    }
    if (HELP_FLAGS.has(word)) line.action = "help";
    else if (VERSION_FLAGS.has(word)) line.action ??= "version";
    else if (word === "-" || !word.startsWith("-")) line.positionals.push(word);
    else at += readFlag(line, { booleans, otherFlags, known }, word, rest[at + 1]);
  }
  checkPositionals(definition, line, argv);
  return line;
}

function findCommand(
  definition: ConfigDefinition,
  argv: readonly string[],
): { name: string; words: number } {
  const [first = "", second = ""] = argv;
  const commands = definition.commands ?? {};
  if (Object.hasOwn(commands, `${first} ${second}`))
    return { name: `${first} ${second}`, words: 2 };
  if (Object.hasOwn(commands, first)) return { name: first, words: 1 };
  return { name: "", words: 0 };
}

// Flag names, true for switches; the flags of short forms and of further names.
function listFlags(
  definition: ConfigDefinition,
  command: CommandDefinition | undefined,
): { flags: Map<string, boolean>; shorts: Map<string, string>; others: Map<string, string> } {
  const flags = new Map<string, boolean>();
  const shorts = new Map<string, string>();
  const others = new Map<string, string>();
  const add = (name: string, item: ConfigKey): void => {
    const flag = getFlagName(name, item);
    const types = listTypes(findShapes(readShape(item.schema), []));
    if (flag !== undefined && item.short !== undefined) shorts.set(`-${item.short}`, `--${flag}`);
    if (flag === undefined) return;
    flags.set(flag, types.size === 1 && types.has("boolean"));
    for (const other of item.otherFlags ?? []) others.set(other, flag);
  };
  for (const [name, item] of Object.entries(command?.options ?? {})) add(name, item);
  if (command?.standalone !== true) {
    for (const [name, item] of Object.entries(definition.keys)) add(name, item);
    if (definition.file !== undefined) flags.set(definition.file.flag, false);
  }
  return { flags, shorts, others };
}

interface KnownFlags {
  /** True for switches. */
  booleans: ReadonlyMap<string, boolean>;
  /** Flags by their further names. */
  otherFlags: ReadonlyMap<string, string>;
  /** Flags to suggest. */
  known: readonly string[];
}

// Returns the number of further words that belong to the flag.
function readFlag(
  line: CommandLine,
  { booleans, otherFlags, known }: KnownFlags,
  word: string,
  next: string | undefined,
): number {
  const equalsAt = word.indexOf("=");
  const typed = equalsAt === -1 ? word : word.slice(0, equalsAt);
  const name = typed.replace(/^--?/, "");
  const inline = equalsAt === -1 ? undefined : word.slice(equalsAt + 1);
  const negated =
    name.startsWith("no-") && booleans.get(name.slice(3)) === true && !booleans.has(name);
  const flag = negated ? name.slice(3) : (otherFlags.get(name) ?? name);
  const isBoolean = booleans.get(flag);
  if (isBoolean === undefined) {
    const flags = known.map((one) => `--${one}`);
    const hint = suggestName(`--${name}`, flags).replaceAll('"', "");
    line.problems.push({ source: typed, path: "", message: `unknown flag${hint}` });
    return inline === undefined && next !== undefined && !next.startsWith("-") ? 1 : 0;
  }
  if (negated && inline !== undefined) {
    line.problems.push({ source: typed, path: "", message: "does not take a value" });
    return 0;
  }
  const values = line.flags.get(flag) ?? [];
  line.flags.set(flag, values);
  if (isBoolean) {
    values.push(negated ? "false" : (inline ?? "true"));
    return 0;
  }
  if (inline !== undefined) {
    values.push(inline);
    return 0;
  }
  if (next === undefined || (next.startsWith("--") && next.length > 2)) {
    line.problems.push({ source: typed, path: "", message: "requires a value" });
    return 0;
  }
  values.push(next);
  return 1;
}

// `user ad` is a group and a word: the suggestion is among the commands of the group.
function explainCommand(
  definition: ConfigDefinition,
  [first = "", second]: readonly string[],
  typedFirst: string | undefined,
): ConfigProblem {
  const names = Object.keys(definition.commands ?? {});
  if (names.includes(first) && typedFirst !== first)
    return { source: first, path: "", message: "a command comes before its flags" };
  const group = names.filter((name) => name.startsWith(`${first} `));
  const typed = second === undefined ? first : `${first} ${second}`;
  if (group.length > 0 && second === undefined)
    return { source: first, path: "", message: `expected one of: ${group.join(", ")}` };
  if (group.length === 0) {
    const meant = names.find((name) => definition.commands?.[name]?.synonyms?.includes(first));
    if (meant !== undefined)
      return { source: first, path: "", message: `unknown command; did you mean "${meant}"?` };
    const hint = suggestName(typed, names) || suggestName(first, names);
    return { source: first, path: "", message: `unknown command${hint}` };
  }
  return { source: typed, path: "", message: `unknown command${suggestName(typed, group)}` };
}

function checkPositionals(
  definition: ConfigDefinition,
  line: CommandLine,
  argv: readonly string[],
): void {
  if (line.action !== undefined) return;
  const expected = line.definition?.arguments ?? [];
  const [first] = line.positionals;
  if (line.command === "" && first !== undefined) {
    // Its flags are those of the command that was meant.
    line.problems = [explainCommand(definition, line.positionals, argv[0])];
    return;
  }
  const required = expected.filter((name) => !name.endsWith("?") && !name.endsWith("..."));
  if (line.positionals.length < required.length) {
    const missing = required[line.positionals.length]!;
    line.problems.push({ source: line.command, path: "", message: `needs <${missing}>` });
  }
  const takesRest = expected.at(-1)?.endsWith("...") ?? false;
  if (!takesRest && line.positionals.length > expected.length && line.command !== "") {
    const extra = line.positionals[expected.length]!;
    line.problems.push({
      source: line.command,
      path: "",
      message: `unexpected argument ${JSON.stringify(extra)}`,
    });
  }
}
