// The file with the secrets that a service generates at its first start.
import { createHash, randomBytes } from "node:crypto";
import {
  chmodSync,
  existsSync,
  linkSync,
  mkdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { dirname } from "node:path";
import { syncFolderSync } from "../files/index.ts";

const SECRET_BYTES = 32;

/**
 * Reads a file with named secrets. Without it, the secrets are generated and written, readable by the owner only. Throws if
 * the file is damaged, and with `isNeeded` if it is missing, because existing data is encrypted with it.
 */
export function loadSecretFile<Name extends string>(
  path: string,
  names: readonly Name[],
  isNeeded = false,
): Record<Name, string> {
  if (!existsSync(path)) {
    if (isNeeded)
      throw new Error(
        `${path} is missing: restore it from a backup, because data is encrypted with it`,
      );
    createFile(path, names);
  }
  if (process.platform !== "win32" && (statSync(path).mode & 0o077) !== 0) chmodSync(path, 0o600);
  const stored = parse(readFileSync(path, "utf8"));
  if (hasAll(stored, names) && isAsWritten(stored)) return stored;
  throw new Error(
    `${path} is damaged: restore it from a backup, because data is encrypted with it`,
  );
}

// The link fails if the file exists: of two processes that start concurrently one wins, and both read the same file. File
// and folder are synced before anything is encrypted with the secrets.
function createFile(path: string, names: readonly string[]): void {
  const folder = dirname(path);
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const generate = (): string => `base64:${randomBytes(SECRET_BYTES).toString("base64")}`;
  const secrets = Object.fromEntries(names.map((name) => [name, generate()]));
  const fresh = { version: 1, ...secrets, sum: sumOf(secrets) };
  const draft = `${path}.${process.pid}.new`;
  try {
    writeFileSync(draft, `${JSON.stringify(fresh)}\n`, { mode: 0o600, flush: true });
    linkSync(draft, path);
    syncFolderSync(folder);
  } catch (error) {
    if (!(error instanceof Error && "code" in error && error.code === "EEXIST")) throw error;
  } finally {
    rmSync(draft, { force: true });
  }
}

// A flipped bit would be another key. Files of earlier versions have no checksum.
function isAsWritten(stored: Readonly<Record<string, unknown>>): boolean {
  const { sum, version: _, ...secrets } = stored;
  return sum === undefined || sum === sumOf(secrets);
}

function sumOf(secrets: Readonly<Record<string, unknown>>): string {
  return createHash("sha256").update(JSON.stringify(secrets)).digest("hex");
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function hasAll<Name extends string>(
  stored: unknown,
  names: readonly Name[],
): stored is Record<Name, string> {
  if (typeof stored !== "object" || stored === null) return false;
  const entries = new Map<string, unknown>(Object.entries(stored));
  return names.every((name) => typeof entries.get(name) === "string");
}
