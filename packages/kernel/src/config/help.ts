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

/** Formats the help of the program (command "") or of one command. */
export function formatHelp(definition: ConfigDefinition, command: string): string {
  const commands = Object.entries(definition.commands ?? {});
  const chosen = command === "" ? undefined : definition.commands?.[command];
  const lines = [
    command === ""
      ? `${definition.program} ${definition.version}: ${definition.summary}`
      : `${definition.program} ${command}: ${chosen?.summary ?? ""}`,
    "",
    `Usage: ${formatUsage(definition, command, chosen)}`,
  ];
  if (command === "" && commands.length > 0) {
    lines.push("", "Commands");
    for (const [name, item] of commands)
      lines.push(formatRow(formatCommand(name, item), item.summary));
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
    lines.push("", `Run ${definition.program} <command> --help for more about a command.`);
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

function formatUsage(
  definition: ConfigDefinition,
  command: string,
  chosen: CommandDefinition | undefined,
): string {
  if (command !== "") return `${definition.program} ${formatCommand(command, chosen)} [flags]`;
  if (Object.keys(definition.commands ?? {}).length === 0) return `${definition.program} [flags]`;
  const word = definition.runs === false ? "<command>" : "[command]";
  return `${definition.program} ${word} [flags]`;
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
        ? "(environment only)"
        : `${item.short === undefined ? "" : `-${item.short}, `}--${flag}${isSwitch ? "" : ` ${formatPlace(item, types)}`}`;
    const text = formatDefault(item);
    const notes = [
      ...(text === "" ? [] : [`default ${text}`]),
      ...(item.unit === undefined ? [] : [item.unit]),
      ...env,
    ];
    return [
      formatRow(head, `${item.description}${notes.length === 0 ? "" : ` (${notes.join(", ")})`}`),
    ];
  });
}

function formatPlace(item: ConfigKey, types: ReadonlySet<string>): string {
  const choices = readShape(item.schema).enum;
  if (choices !== undefined && choices.length <= 6) return choices.join("|");
  if (types.has("array")) return "LIST";
  if (types.has("integer") || types.has("number")) return "N";
  return "TEXT";
}

function formatRow(head: string, text: string): string {
  return head.length >= FLAG_COLUMN - 1
    ? `  ${head}\n${" ".repeat(FLAG_COLUMN + 2)}${text}`
    : `  ${head.padEnd(FLAG_COLUMN)}${text}`;
}
