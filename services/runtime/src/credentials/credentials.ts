// Credentials that `up` generates once and stores in the data directory, readable only by its owner.
import { createHash } from "node:crypto";
import { existsSync, readFileSync } from "node:fs";
import { chmod, mkdir, readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import type { IdSource } from "@platform/kernel/ids";
import { replaceFileSync } from "@platform/kernel/files";
import { systemClock } from "@platform/kernel/time";

const FILE_NAME = "credentials.env";
const END = "# end";
const END_NOTE = `The last line is: ${END}`;
/** Checksum of the values, so that a flipped bit does not pass for another secret in silence. */
const SUM_LINE = /^# sum ([0-9a-f]{64})$/m;
const SUM_NOTE = "Before it is a checksum.";
/** Time at which a value was generated. */
const MADE_LINE = /^# made ([A-Z][A-Z0-9_]*) (\S+)$/;
/** A value that was replaced, and the time until which it is accepted. */
const FORMER_LINE = /^# former ([A-Z][A-Z0-9_]*)=([A-Za-z0-9_.~+/=-]+) until (\S+)$/;
const LINE = /^([A-Z][A-Z0-9_]*)=([A-Za-z0-9_.~+/=-]+)$/;

/** The secrets that a service needs. */
export interface CredentialNeeds {
  /** Names of environment variables. */
  credentials: readonly string[];
  /** Names that are not generated once `unless`, a file in the folder, exists. */
  firstCredentials?: { names: readonly string[]; unless: string };
}

/** A value that was replaced by another one. */
export interface FormerValue {
  value: string;
  /** Time until which it is accepted, in ms since 1970. */
  endsAtMs: number;
}

/** The content of the file. */
export interface StoredCredentials {
  /** By name. */
  values: Map<string, string>;
  /** Time at which values were generated, in ms since 1970; missing for those of earlier versions, and of the operator. */
  madeAtMs: Map<string, number>;
  /** Values that are accepted as well, by name. */
  former: Map<string, FormerValue>;
}

/** Loaded credentials. */
export interface Credentials {
  /** By name; "" for one that was not generated. */
  credentials: Record<string, string>;
  /** True if the file did not exist. */
  isNew: boolean;
  /** True if a value has changed since the file was written: by hand, or by a fault of the disk. Told once. */
  isChanged: boolean;
}

/**
 * Returns the credentials of the services. They are read from `credentials.env` in the folder; missing ones are
 * generated and stored. A variable of the environment takes precedence and is not stored. Throws if an existing file
 * cannot be read.
 */
export async function loadCredentials(
  folder: string,
  services: readonly CredentialNeeds[],
  env: Readonly<Record<string, string | undefined>>,
  ids: IdSource,
): Promise<Credentials> {
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const path = join(folder, FILE_NAME);
  const isNew = !existsSync(path);
  const content = await readStored(path);
  const stored = content.values;
  const isChanged = acknowledgeChange(path, content);
  const names = services.flatMap(({ credentials, firstCredentials }) => [
    ...credentials,
    ...(firstCredentials?.names ?? []),
  ]);
  const kept = services.flatMap(({ firstCredentials: first }) =>
    first !== undefined && existsSync(join(folder, first.unless)) ? first.names : [],
  );
  const missing = names.filter(
    (name) => !kept.includes(name) && !stored.has(name) && (env[name] ?? "") === "",
  );
  if (missing.length > 0) {
    for (const name of missing) {
      stored.set(name, ids.token());
      content.madeAtMs.set(name, systemClock.now());
    }
    writeStored(path, content);
  }
  const credentials = Object.fromEntries(
    names.map((name) => [name, env[name] || stored.get(name) || ""]),
  );
  return { credentials, isNew, isChanged };
}

/** Reads the stored credentials without changing anything; empty if there is no file. */
export async function readCredentials(folder: string): Promise<ReadonlyMap<string, string>> {
  return (await readStored(join(folder, FILE_NAME))).values;
}

/** Reads the whole file without changing anything; empty if there is none. */
export function readCredentialFile(folder: string): Promise<StoredCredentials> {
  return readStored(join(folder, FILE_NAME));
}

/** Replaces the file: after a crash it has the content of before, or this one. */
export function writeCredentialFile(folder: string, content: StoredCredentials): void {
  writeStored(join(folder, FILE_NAME), content);
}

async function readStored(path: string): Promise<StoredCredentials> {
  const stored: StoredCredentials = { values: new Map(), madeAtMs: new Map(), former: new Map() };
  let text: string;
  try {
    text = await readFile(path, "utf8");
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return stored;
    throw error;
  }
  requireEnd(path, text);
  // A copied or unpacked file may have another mode.
  if (process.platform !== "win32" && ((await stat(path)).mode & 0o077) !== 0)
    await chmod(path, 0o600);
  for (const [index, line] of text.split(/\r?\n/).entries()) {
    if (line.startsWith("#")) readNote(line, stored);
    if (line === "" || line.startsWith("#")) continue;
    const match = LINE.exec(line);
    if (match === null)
      throw new Error(
        `${path}:${index + 1}: expected NAME=value: correct the line, or restore the file from a backup`,
      );
    stored.values.set(match[1]!, match[2]!);
  }
  return stored;
}

// Comments, so that shells and earlier versions can read the file.
function readNote(line: string, { madeAtMs, former }: StoredCredentials): void {
  const [, made = "", at = ""] = MADE_LINE.exec(line) ?? [];
  if (made !== "" && !Number.isNaN(Date.parse(at))) madeAtMs.set(made, Date.parse(at));
  const [, name = "", value = "", until = ""] = FORMER_LINE.exec(line) ?? [];
  const endsAtMs = Date.parse(until);
  if (name !== "" && !Number.isNaN(endsAtMs)) former.set(name, { value, endsAtMs });
}

// A value that is cut off would be another one, and a missing one would be generated again.
function requireEnd(path: string, text: string): void {
  const isMarked = text.includes(END_NOTE);
  // Lines may have been added below it.
  const isWhole = isMarked ? text.split(/\r?\n/).includes(END) : text.endsWith("\n");
  if (isWhole) return;
  throw new Error(
    `${path} is cut off: ${isMarked ? `it has no line "${END}"` : "its last line does not end"}; restore it from a backup, or complete it`,
  );
}

// A partly written file would lock the operator out.
function writeStored(path: string, stored: StoredCredentials): void {
  const { values, madeAtMs, former } = stored;
  const lines = [
    ...[...values].map(([name, value]) => `${name}=${value}\n`),
    ...[...madeAtMs].map(([name, atMs]) => `# made ${name} ${new Date(atMs).toISOString()}\n`),
    ...[...former].map(
      ([name, { value, endsAtMs }]) =>
        `# former ${name}=${value} until ${new Date(endsAtMs).toISOString()}\n`,
    ),
  ];
  const head = `# Generated on the first start. These credentials grant full access. ${END_NOTE} ${SUM_NOTE}\n`;
  replaceFileSync(path, `${head}${lines.join("")}# sum ${sumOf(stored)}\n${END}\n`);
}

// Returns true if the checksum is another one or damaged, and stores the present one. Files of earlier versions, or of the
// operator, have none.
function acknowledgeChange(path: string, stored: StoredCredentials): boolean {
  if (stored.values.size === 0) return false;
  const text = readFileSync(path, "utf8");
  const written = SUM_LINE.exec(text)?.[1];
  const line = `# sum ${sumOf(stored)}`;
  if (written === undefined ? !text.includes(SUM_NOTE) : line === `# sum ${written}`) return false;
  const isThere = written !== undefined;
  try {
    replaceFileSync(
      path,
      isThere ? text.replace(SUM_LINE, line) : text.replace(/^# end$/m, `${line}\n${END}`),
    );
  } catch {
    // It is reported again at the next start.
  }
  return true;
}

function sumOf({ values, former }: StoredCredentials): string {
  const accepted = [...former].map(([name, { value }]) => `former ${name}=${value}\n`);
  return createHash("sha256")
    .update([...values].map(([name, value]) => `${name}=${value}\n`).join(""))
    .update(accepted.join(""))
    .digest("hex");
}
