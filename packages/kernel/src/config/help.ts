// The text of `--help`.
import {
  getFlagName,
  listEnvNames,
  type CommandDefinition,
  type ConfigDefinition,
  type ConfigKey,
  type ConfigKeys,
} from "./define.ts";
import { describeShapes, findShapes, listTypes, readShape } from "./shape.ts";

const FLAG_COLUMN = 30;
const LINE_CHARACTERS_MAX = 110;

/**
 * Formats the help of the program (command "") or of one command. `group` limits the commands of the program to those
 * that begin with this word, if there are any; `typed` is the program as a user types it.
 */
export function formatHelp(
  definition: ConfigDefinition,
  command: string,
  { group = "", typed = definition.program }: { group?: string | undefined; typed?: string } = {},
): string {
  const all = Object.entries(definition.commands ?? {});
  const grouped = all.filter(([name]) => name.startsWith(`${group} `));
  const commands = grouped.length === 0 ? all : grouped;
  const chosen = command === "" ? undefined : definition.commands?.[command];
  const lines = [
    command === ""
      ? `${definition.program} ${definition.version}: ${definition.summary}`
      : `${definition.program} ${command}: ${chosen?.summary ?? ""}`,
    "",
    `Usage: ${formatUsage(definition, command, typed)}`,
  ];
  if (command === "" && commands.length > 0) {
    lines.push("", "Commands");
    for (const [name, item] of commands)
      lines.push(formatRow(formatCommand(name, item), item.summary));
  }
  const { examples = [] } = chosen ?? {};
  if (examples.length > 0) {
    lines.push("", "Examples");
    const show = (text: string): string => nameCommands(definition, text, typed);
    for (const [example, meaning] of examples)
      lines.push(`  ${show(example)}`, `      ${show(meaning)}`);
  }
  const options = formatFlags(definition, chosen?.options ?? {});
  if (options.length > 0) lines.push("", `Flags of ${command}`, ...options);
  lines.push("", "Flags");
  if (chosen?.standalone !== true) {
    if (definition.file !== undefined) {
      const { flag, env, default: path } = definition.file;
      const notes = [...(path === undefined ? [] : [`default ${path}`]), ...env];
      lines.push(formatRow(`--${flag} FILE`, `Configuration file. (${notes.join(", ")})`));
    }
    lines.push(...formatFlags(definition, definition.keys));
  }
  lines.push(formatRow("--help", "Show help."), formatRow("--version", "Show the version."));
  if (command === "" && commands.length > 0) {
    lines.push("", `Run ${typed} <command> --help for more about a command.`);
  }
  return `${lines.join("\n")}\n`;
}

/** Formats a key's default as in a configuration file; "" without a default. */
export function formatDefault(item: ConfigKey): string {
  if (item.defaultText !== undefined) return item.defaultText;
  const value = readShape(item.schema).default;
  return value === undefined ? "" : JSON.stringify(value);
}

/** Formats the allowed values of a key, with its unit. */
export function formatAllowed(item: ConfigKey): string {
  const shape = readShape(item.schema);
  const allowed = item.allowed ?? describeShapes(findShapes(shape, []));
  return item.unit === undefined ? allowed : `${allowed} (${item.unit})`;
}

/** Formats the usage line of the program (command "") or of one command; `typed` is the program as a user types it. */
export function formatUsage(definition: ConfigDefinition, command: string, typed: string): string {
  if (command !== "")
    return `${typed} ${formatCommand(command, definition.commands?.[command])} [flags]`;
  if (Object.keys(definition.commands ?? {}).length === 0) return `${typed} [flags]`;
  return `${typed} ${definition.runs === false ? "<command>" : "[command]"} [flags]`;
}

// Only commands are replaced: "platform" is also a word.
function nameCommands(
  { program, commands }: ConfigDefinition,
  text: string,
  typed: string,
): string {
  const words = new Set(Object.keys(commands ?? {}).map((name) => name.split(" ")[0]));
  return text.replaceAll(/\b([\w-]+) (\w+)/g, (all, first: string, second: string) =>
    first === program && words.has(second) ? `${typed} ${second}` : all,
  );
}

/** Formats a command with its arguments for a usage line: `replay <file> [more...]`. */
export function formatCommand(name: string, command: CommandDefinition | undefined): string {
  const words = (command?.arguments ?? []).map((argument) => {
    if (argument.endsWith("...")) return `[${argument}]`;
    return argument.endsWith("?") ? `[${argument.slice(0, -1)}]` : `<${argument}>`;
  });
  return [name, ...words].join(" ");
}

function formatFlags(definition: ConfigDefinition, keys: ConfigKeys): string[] {
  return Object.entries(keys).flatMap(([name, item]) => {
    const flag = getFlagName(name, item);
    const env = listEnvNames(definition.service, name, item);
    const types = listTypes(findShapes(readShape(item.schema), []));
    if (flag === undefined && env.length === 0) return [];
    const isSwitch = types.size === 1 && types.has("boolean");
    const head =
      flag === undefined
        ? env[0]!
        : `${item.short === undefined ? "" : `-${item.short}, `}--${flag}${isSwitch ? "" : ` ${formatPlace(item, types)}`}`;
    const value = formatDefault(item);
    const text = value === "[]" || value === "false" ? "" : value;
    const notes = [
      ...(text === "" ? [] : [`default ${text}`]),
      ...(item.unit === undefined ? [] : [item.unit]),
      ...(flag === undefined ? env.slice(1) : env),
    ];
    return [
      formatRow(head, `${item.description}${notes.length === 0 ? "" : ` (${notes.join(", ")})`}`),
    ];
  });
}

function formatPlace(item: ConfigKey, types: ReadonlySet<string>): string {
  const choices = readShape(item.schema).enum;
  if (item.placeholder !== undefined) return item.placeholder;
  if (choices !== undefined && choices.length <= 6) return choices.join("|");
  if (types.has("array")) return "LIST";
  if (types.has("integer") || types.has("number")) return "N";
  return "TEXT";
}

function formatRow(head: string, text: string): string {
  const [first = "", ...more] = wrapText(text, LINE_CHARACTERS_MAX - FLAG_COLUMN - 2);
  const margin = " ".repeat(FLAG_COLUMN + 2);
  const begin = head.length >= FLAG_COLUMN - 1 ? [`  ${head}`, margin + first] : [];
  const lines = begin.length > 0 ? begin : [`  ${head.padEnd(FLAG_COLUMN)}${first}`];
  return [...lines, ...more.map((line) => margin + line)].join("\n");
}

function wrapText(text: string, width: number): string[] {
  const lines: string[] = [];
  for (const word of text.split(" ")) {
    const last = lines.at(-1);
    if (last === undefined || last.length + 1 + word.length > width) lines.push(word);
    else lines[lines.length - 1] = `${last} ${word}`;
  }
  return lines;
}
