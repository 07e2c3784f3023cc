// Loads a program's configuration: file, then environment, then flags.
import { readFileSync } from "node:fs";
import type { z } from "zod";
import { readCommandLine, type CommandLine } from "./arguments.ts";
import {
  buildSchema,
  getFlagName,
  isSecretKey,
  listEnvNames,
  type CommandDefinition,
  type Commands,
  type ConfigDefinition,
  type ConfigKey,
  type ConfigKeys,
  type ConfigOf,
} from "./define.ts";
import { listOtherNames, listSettings, toDocumentPath } from "./document-settings.ts";
import { formatHelp, formatUsage } from "./help.ts";
import { JsonSyntaxError, parseJson, type JsonDocument, type JsonPath } from "./json.ts";
import {
  ConfigError,
  explainIssues,
  locateInDocument,
  suggestName,
  type ConfigProblem,
} from "./problem.ts";
import { findShapes, readShape } from "./shape.ts";
import { readTextValue } from "./text-value.ts";
import { parseYaml } from "./yaml.ts";

const SECRET_FILE_BYTES_MAX = 65_536;

/** The configuration file in use. */
export interface ConfigFile {
  path: string;
  /** True if a flag or the environment named the file. */
  explicit: boolean;
  /** Undefined if the default file does not exist. */
  document: JsonDocument | undefined;
}

/** A command to run, with its configuration. */
export interface LoadedCommand<Name, Config, Options> {
  kind: "run";
  /** "" for the program itself. */
  command: Name;
  /** Undefined for standalone commands. */
  config: Config;
  options: Options;
  positionals: string[];
  file: ConfigFile | undefined;
  /** Source of each key's value: `default`, `config.json:3:14`, `environment PORT`, `--addr`. */
  sources: ReadonlyMap<string, string>;
  /** Warnings for the operator. */
  warnings: string[];
}

/** A text to print, and the exit code. */
interface LoadedText {
  kind: "print";
  text: string;
  exitCode: number;
}

type OptionsOf<Command> = Command extends { options: infer Keys extends ConfigKeys }
  ? ConfigOf<Keys>
  : Record<never, never>;
type ServiceConfigOf<Keys extends ConfigKeys, Command> = Command extends { standalone: true }
  ? undefined
  : ConfigOf<Keys>;

/** Result of loading; distinguish by `kind`, then by `command`. */
export type Loaded<Keys extends ConfigKeys, Subcommands extends Commands> =
  | LoadedText
  | LoadedCommand<"", ConfigOf<Keys>, Record<never, never>>
  | {
      [Name in keyof Subcommands]: LoadedCommand<
        Name,
        ServiceConfigOf<Keys, Subcommands[Name]>,
        OptionsOf<Subcommands[Name]>
      >;
    }[keyof Subcommands];

/** Sources of the configuration. */
export interface ConfigSources {
  /** The command line without runtime and script. */
  argv: readonly string[];
  env: Readonly<Record<string, string | undefined>>;
  /** Reads a file as UTF-8. Default: from the file system. */
  readFile?: (path: string) => string;
  /** A document that takes precedence over the file, with its name in messages. */
  overrides?: { path: string; document: JsonDocument };
  /** Returns a program as the user types it. Default: its name. */
  nameProgram?: (program: string) => string;
}

/**
 * Parses the command line, loads the values (file < environment < flags) and validates them. Empty environment
 * variables and empty secrets of the file count as unset; `<NAME>_FILE` is the path of a file that contains a secret. Throws a ConfigError that lists
 * each invalid key with its source, value and allowed values.
 */
export function loadConfig<Keys extends ConfigKeys, Subcommands extends Commands>(
  definition: ConfigDefinition<Keys, Subcommands>,
  sources: ConfigSources,
): Loaded<Keys, Subcommands> {
  // The generic definition matters only for types; from here on keys are data.
  return load(definition, sources) as Loaded<Keys, Subcommands>;
}

interface SourcedValue {
  value: unknown;
  source: string;
  /** Name of the key in the document, if it is one of its other names. */
  otherName?: string;
  /** Document of the value; undefined for variables and flags. */
  origin?: { path: string; document: JsonDocument };
}

function load(
  definition: ConfigDefinition,
  sources: ConfigSources,
): LoadedText | LoadedCommand<string, unknown, unknown> {
  const line = readCommandLine(definition, sources.argv);
  const typed = sources.nameProgram?.(definition.program) ?? definition.program;
  if (line.action === "version") {
    return { kind: "print", text: `${definition.program} ${definition.version}\n`, exitCode: 0 };
  }
  if (line.action === "help") {
    return {
      kind: "print",
      text: formatHelp(definition, line.command, { group: line.positionals[0], typed }),
      exitCode: 0,
    };
  }
  if (line.problems.length > 0) {
    const { command } = line;
    const hint =
      command === ""
        ? `see "${typed} --help"`
        : `usage: ${formatUsage(definition, command, typed)}; --help lists the flags`;
    throw new ConfigError(line.problems, [hint]);
  }
  if (line.command === "" && definition.runs === false) {
    return { kind: "print", text: formatHelp(definition, "", { typed }), exitCode: 2 };
  }
  const readFile = sources.readFile ?? ((path) => readFileSync(path, "utf8"));
  const context: LoadContext = {
    definition,
    line,
    env: sources.env,
    readFile,
    overrides: sources.overrides,
    problems: [],
  };
  const options = resolve(context, line.definition?.options ?? {}, undefined);
  const standalone = line.definition?.standalone === true;
  const file = standalone ? undefined : openFile(context);
  const service = standalone ? undefined : resolve(context, definition.keys, file);
  if (context.problems.length > 0) throw new ConfigError(context.problems);
  return {
    kind: "run",
    command: line.command,
    config: service?.value,
    options: options.value,
    positionals: line.positionals,
    file,
    sources: new Map([...(service?.sources ?? []), ...options.sources]),
    warnings: standalone ? [] : findStrayNames(definition, line.definition, sources.env),
  };
}

interface LoadContext {
  definition: ConfigDefinition;
  line: CommandLine;
  env: Readonly<Record<string, string | undefined>>;
  readFile: (path: string) => string;
  overrides: ConfigSources["overrides"];
  problems: ConfigProblem[];
}

function openFile(context: LoadContext): ConfigFile | undefined {
  const file = context.definition.file;
  if (file === undefined) return undefined;
  const flagged = context.line.flags.get(file.flag)?.at(-1);
  const fromEnv = file.env
    .map((name) => context.env[name])
    .find((value) => value !== undefined && value !== "");
  const path = flagged ?? fromEnv ?? file.default;
  if (path === undefined) return undefined;
  const explicit = flagged !== undefined || fromEnv !== undefined;
  try {
    const parse = /\.ya?ml$/i.test(path) ? parseYaml : parseJson;
    return { path, explicit, document: parse(context.readFile(path)) };
  } catch (error) {
    if (error instanceof JsonSyntaxError) {
      const { line, column } = error.position;
      context.problems.push({
        source: `${path}:${line}:${column}`,
        path: "",
        message: error.message,
      });
    } else if (explicit || !isMissing(error)) {
      context.problems.push({
        source: path,
        path: "",
        message: `cannot be read: ${describeFailure(error)}`,
      });
    }
    return { path, explicit, document: undefined };
  }
}

// Takes each key's value from its last source and validates all with one schema.
function resolve(
  context: LoadContext,
  keys: ConfigKeys,
  file: ConfigFile | undefined,
): { value: unknown; sources: Map<string, string> } {
  const values = new Map<string, SourcedValue>();
  const document = file?.document;
  if (document !== undefined && file !== undefined)
    readDocument(context, values, { document, path: file.path });
  if (file !== undefined && context.overrides !== undefined)
    readDocument(context, values, context.overrides);
  for (const [name, item] of Object.entries(keys)) {
    const value = readEnv(context, name, item) ?? undefined;
    if (value !== undefined) values.set(name, value);
    const flag = readFlagValue(context, name, item);
    if (flag !== undefined) values.set(name, flag);
  }
  const schema = buildSchema(keys);
  const input = Object.fromEntries([...values].map(([name, { value }]) => [name, value]));
  const result = schema.safeParse(input);
  const sources = new Map(
    Object.keys(keys).map((name) => [name, values.get(name)?.source ?? "default"]),
  );
  if (result.success) return { value: result.data, sources };
  const problems = explainIssues(result.error.issues, {
    schema,
    input,
    locate: (path, ofKey) => locateSource(context, values, file, path, ofKey),
    isSecret: (path) => isSecretPath(keys, path),
    describeAllowed: (path) => describeKey(keys, path, result.error.issues),
  });
  context.problems.push(...problems);
  return { value: undefined, sources };
}

function readDocument(
  context: LoadContext,
  values: Map<string, SourcedValue>,
  origin: NonNullable<ConfigSources["overrides"]>,
): void {
  const { document, path } = origin;
  const { value } = document;
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    const source = locateInDocument(document, path, [], false);
    context.problems.push({
      source,
      path: "",
      message: "expected an object",
    });
    return;
  }
  const { keys } = context.definition;
  const otherNames = listOtherNames(keys);
  for (const [typed, item] of listSettings(keys, value)) {
    const name = otherNames.get(typed) ?? typed;
    // No secret is empty: as in the environment, such a value means that there is none.
    if (item === "" && isSecretPath(keys, [name])) continue;
    const source = locateInDocument(document, path, toDocumentPath([typed]), false);
    const former = values.get(name);
    if (former !== undefined && former.origin === origin) {
      const message = `is the same setting as ${former.otherName ?? name}; remove one`;
      context.problems.push({ source, path: typed, message });
    }
    const other = typed === name ? {} : { otherName: typed };
    values.set(name, { value: item, source, origin, ...other });
  }
}

function readEnv(context: LoadContext, name: string, item: ConfigKey): SourcedValue | undefined {
  for (const envName of listEnvNames(context.definition.service, name, item)) {
    const text = context.env[envName];
    if (text !== undefined && text !== "") {
      return { value: readText(item, text), source: `environment ${envName}` };
    }
    const path = isSecretKey(name, item) ? context.env[`${envName}_FILE`] : undefined;
    if (path !== undefined && path !== "") return readSecretFile(context, `${envName}_FILE`, path);
  }
  return undefined;
}

function readSecretFile(
  context: LoadContext,
  envName: string,
  path: string,
): SourcedValue | undefined {
  const source = `environment ${envName}`;
  try {
    const text = context.readFile(path);
    if (text.length <= SECRET_FILE_BYTES_MAX) return { value: text.replace(/\r?\n$/, ""), source };
    context.problems.push({ source, path: "", message: `${path} is too large for a secret` });
  } catch (error) {
    context.problems.push({
      source,
      path: "",
      message: `${path} cannot be read: ${describeFailure(error)}`,
    });
  }
  return undefined;
}

function readFlagValue(
  context: LoadContext,
  name: string,
  item: ConfigKey,
): SourcedValue | undefined {
  const flag = getFlagName(name, item);
  const texts = flag === undefined ? undefined : context.line.flags.get(flag);
  if (flag === undefined || texts === undefined) return undefined;
  const source = `--${flag}`;
  const [first = "", ...more] = texts;
  if (more.length === 0) return { value: readText(item, first), source };
  const values = texts.map((text) => readText(item, text));
  if (values.every((value) => Array.isArray(value))) return { value: values.flat(1), source };
  context.problems.push({ source, path: "", message: "duplicate flag" });
  return undefined;
}

function readText(item: ConfigKey, text: string): unknown {
  const shape = readShape(item.schema);
  return readTextValue(text, findShapes(shape, []));
}

function locateSource(
  context: LoadContext,
  values: Map<string, SourcedValue>,
  file: ConfigFile | undefined,
  path: JsonPath,
  ofKey: boolean,
): string {
  const found = values.get(String(path[0]));
  if (found === undefined)
    return file?.document === undefined ? context.definition.program : file.path;
  const { origin } = found;
  if (origin === undefined) return found.source;
  const typed = [found.otherName ?? path[0]!, ...path.slice(1)];
  return locateInDocument(origin.document, origin.path, toDocumentPath(typed), ofKey);
}

function isSecretPath(keys: ConfigKeys, path: JsonPath): boolean {
  const name = String(path[0]);
  return Object.hasOwn(keys, name) && isSecretKey(name, keys[name]!);
}

// The key's own text, with its unit. The message of a refinement is more specific than either.
function describeKey(
  keys: ConfigKeys,
  path: JsonPath,
  issues: readonly z.core.$ZodIssue[],
): string | undefined {
  const name = String(path[0]);
  if (path.length !== 1 || !Object.hasOwn(keys, name)) return undefined;
  const custom = issues.find((issue) => issue.code === "custom" && issue.path[0] === name);
  if (custom !== undefined) return undefined;
  return keys[name]!.allowed;
}

// Unknown variables with the service's prefix are usually misspelled. They do not stop the start, because orchestrators
// set variables of this form (`PLATFORM_GATE_SERVICE_HOST`).
function findStrayNames(
  definition: ConfigDefinition,
  command: CommandDefinition | undefined,
  env: Readonly<Record<string, string | undefined>>,
): string[] {
  const prefix = `PLATFORM_${definition.service.toUpperCase()}_`;
  const known = new Set(definition.file?.env);
  const keys = Object.entries({ ...definition.keys, ...command?.options });
  for (const [name, item] of keys) {
    for (const envName of listEnvNames(definition.service, name, item))
      known.add(envName).add(`${envName}_FILE`);
  }
  return Object.keys(env)
    .filter((name) => name.startsWith(prefix) && !known.has(name))
    .filter((name) => !/_(?:SERVICE_(?:HOST|PORT)|PORT)(?:_|$)/.test(name))
    .map((name) => {
      const hint = suggestName(
        name,
        [...known].filter((item) => !item.endsWith("_FILE")),
      );
      return `the environment variable ${name} is not used by ${definition.program}${hint}`;
    });
}

function isMissing(error: unknown): boolean {
  return error instanceof Error && "code" in error && error.code === "ENOENT";
}

function describeFailure(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const code = "code" in error ? error.code : undefined;
  if (code === "ENOENT") return "no such file";
  if (code === "EACCES") return "permission denied";
  if (code === "EISDIR") return "it is a folder";
  return error.message;
}
