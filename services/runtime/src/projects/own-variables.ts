// Variables that people have set for a project, in the platform's data folder. Secrets are encrypted with a key beside them, so that
// a copy of one file alone does not show them.
import { existsSync, mkdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { PlatformError } from "@platform/kernel/errors";
import { replaceFileSync } from "@platform/kernel/files";
import {
  createSecretBox,
  loadSecretFile,
  parseEncryptionKeys,
  type SecretBox,
} from "@platform/kernel/secrets";
import { z } from "zod";

/** Folder in the data directory. */
export const VARIABLES_FOLDER = "environment";
const KEY_FILE = "environment.key";
const KEY_NAME = "variables";
const BOX = "runtime";
const VARIABLES_MAX = 200;
/** Size of a value, in UTF-8: programs get all variables in a bounded block. */
export const VALUE_BYTES_MAX = 32_768;
/** Size of all values of a project. */
const TOTAL_BYTES_MAX = 262_144;

const variableSchema = z.strictObject({
  /** Encrypted for a secret. */
  value: z.string(),
  secret: z.boolean(),
  by: z.string(),
  at: z.number(),
});
const fileSchema = z.strictObject({
  version: z.literal(1),
  /** Epoch ms of the last change, also of a removal. */
  changed: z.number(),
  variables: z.record(z.string(), variableSchema),
});
type StoredFile = z.output<typeof fileSchema>;

/** A variable without the value of a secret. */
export interface OwnVariable {
  readonly name: string;
  /** Undefined for a secret. */
  readonly value: string | undefined;
  /** Name of the person who has set it. */
  readonly by: string;
  /** Epoch ms. */
  readonly at: number;
}

/** A change of a variable. */
export interface VariableChange {
  readonly name: string;
  readonly value: string;
  readonly secret: boolean;
  readonly by: string;
  readonly at: number;
}

/** Lists the variables of a project. Throws 503 if its file is damaged. */
export function listOwnVariables(dataDir: string, project: string): OwnVariable[] {
  const variables = read(dataDir, project)?.variables ?? {};
  return Object.entries(variables).map(([name, { value, secret, by, at }]) => ({
    name,
    value: secret ? undefined : value,
    by,
    at,
  }));
}

/** The variables with their values, for the process of the project. Throws if its file, or the key, is damaged or lost. */
export function readOwnVariables(dataDir: string, project: string): Record<string, string> {
  const stored = read(dataDir, project);
  const entries = Object.entries(stored?.variables ?? {});
  if (entries.length === 0) return {};
  const hasSecret = entries.some(([, { secret }]) => secret);
  const box = hasSecret ? openBox(dataDir, true) : undefined;
  return Object.fromEntries(
    entries.map(([name, { value, secret }]) => [
      name,
      secret ? box!.open(value, placeOf(project, name)) : value,
    ]),
  );
}

/** The last change with which the process of a project was started last, by the path of its file. */
const launched = new Map<string, number | undefined>();

/** Notes that a project's process starts with its present variables. */
export function noteLaunch(dataDir: string, project: string): void {
  launched.set(pathOf(dataDir, project), readChange(dataDir, project));
}

/** True if the variables have changed since the process was started. */
export function hasChangedSinceLaunch(dataDir: string, project: string): boolean {
  const path = pathOf(dataDir, project);
  return launched.has(path) && launched.get(path) !== readChange(dataDir, project);
}

function readChange(dataDir: string, project: string): number | undefined {
  try {
    return read(dataDir, project)?.changed;
  } catch {
    return undefined;
  }
}

/** Sets a variable. Throws 422 above the number or the size of variables. */
export function setOwnVariable(dataDir: string, project: string, change: VariableChange): void {
  const { name, value, secret, by, at } = change;
  const stored = read(dataDir, project) ?? { version: 1, changed: at, variables: {} };
  const sealed = secret ? openBox(dataDir, false).seal(value, placeOf(project, name)) : value;
  const variables = { ...stored.variables, [name]: { value: sealed, secret, by, at } };
  requireRoom(variables);
  write(dataDir, project, { version: 1, changed: at, variables });
}

/** Removes a variable; false if there is none. */
export function removeOwnVariable(
  dataDir: string,
  project: string,
  { name, at }: Pick<VariableChange, "name" | "at">,
): boolean {
  const stored = read(dataDir, project);
  if (stored === undefined || !Object.hasOwn(stored.variables, name)) return false;
  const { [name]: _, ...variables } = stored.variables;
  write(dataDir, project, { version: 1, changed: at, variables });
  return true;
}

/** Removes all variables of a project that is forgotten. */
export function forgetOwnVariables(dataDir: string, project: string): void {
  rmSync(pathOf(dataDir, project), { force: true });
}

function requireRoom(variables: StoredFile["variables"]): void {
  const entries = Object.entries(variables);
  const bytes = entries.reduce(
    (sum, [name, { value }]) => sum + Buffer.byteLength(name) + Buffer.byteLength(value),
    0,
  );
  if (entries.length <= VARIABLES_MAX && bytes <= TOTAL_BYTES_MAX) return;
  throw new PlatformError(
    "unprocessable",
    `A project has at most ${VARIABLES_MAX} variables with ${TOTAL_BYTES_MAX / 1_024} KiB in all.`,
  );
}

function read(dataDir: string, project: string): StoredFile | undefined {
  const path = pathOf(dataDir, project);
  if (!existsSync(path)) return undefined;
  try {
    return fileSchema.parse(JSON.parse(readFileSync(path, "utf8")));
  } catch (error) {
    // Read as empty, the next change would delete what is there.
    throw new PlatformError("unavailable", `${path} is damaged: restore it from a backup.`, {
      cause: error,
    });
  }
}

function write(dataDir: string, project: string, file: StoredFile): void {
  mkdirSync(join(dataDir, VARIABLES_FOLDER), { recursive: true, mode: 0o700 });
  replaceFileSync(pathOf(dataDir, project), `${JSON.stringify(file, null, 2)}\n`);
}

function openBox(dataDir: string, isNeeded: boolean): SecretBox {
  const path = join(dataDir, VARIABLES_FOLDER, KEY_FILE);
  const { [KEY_NAME]: key } = loadSecretFile(path, [KEY_NAME], isNeeded);
  return createSecretBox(BOX, parseEncryptionKeys(BOX, key));
}

function placeOf(project: string, name: string): string {
  return `environment.${project}.${name}`;
}

// The name of a project is one of a host, so it is that of a file as well.
function pathOf(dataDir: string, project: string): string {
  return join(dataDir, VARIABLES_FOLDER, `${project}.json`);
}
