// The running platforms of this user: one file each in the user's state folder, so that a project's `up` finds them. Only
// files that this user alone can write are believed: a caller sends its variables to what they name.
import { createHash } from "node:crypto";
import { lstatSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync } from "node:fs";
import { homedir } from "node:os";
import { isAbsolute, join, resolve } from "node:path";
import { isUsedFolder } from "./data-folder.ts";
import { readRunning, type RunningState } from "./running-file.ts";
import { writePrivateFile } from "./private-file.ts";

const FILES_MAX = 1_000;

/** A running platform with its state. `dataDir` is absolute. */
export interface ListedPlatform {
  dataDir: string;
  state: RunningState;
}

/**
 * Adds a platform to the list; returns a function that removes it. A folder that cannot be written, as in a container
 * without a home, is no reason not to start: the platform is then found by `--data` only.
 */
export function listPlatform(dataDir: string): () => void {
  const folder = getFolder();
  const name = createHash("sha256").update(dataDir).digest("hex").slice(0, 32);
  const path = join(folder, `${name}.json`);
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    writePrivateFile(path, { data_dir: dataDir });
  } catch {
    return () => undefined;
  }
  return () => rmSync(path, { force: true });
}

/** The running platforms of this user. Entries of platforms that were killed are removed. */
export function findPlatforms(): ListedPlatform[] {
  const folder = getFolder();
  if (!isPrivate(folder)) return [];
  return readdirSync(folder)
    .filter((name) => name.endsWith(".json"))
    .toSorted()
    .slice(0, FILES_MAX)
    .flatMap((name) => readEntry(join(folder, name)) ?? []);
}

/**
 * The data directory of a command, as an absolute path: `./data` without a platform is that of the platform which the project
 * in the working directory has joined.
 */
export function locatePlatform(data: string): string {
  const dataDir = resolve(data);
  if (dataDir !== resolve("data") || isUsedFolder(dataDir)) return dataDir;
  return findHost(process.cwd())?.dataDir ?? dataDir;
}

/** The platform that runs the project in a folder. */
export function findHost(folder: string): ListedPlatform | undefined {
  return findPlatforms().find(({ state }) =>
    state.services.some(({ project }) => project?.folder === folder),
  );
}

function readEntry(path: string): ListedPlatform | undefined {
  if (!isPrivate(path)) return undefined;
  const dataDir = readFolder(path);
  if (dataDir === undefined || !isPrivate(dataDir)) return undefined;
  try {
    const state = readRunning(dataDir);
    if (state !== undefined) return { dataDir, state };
  } catch {
    // It is being started or stopped, or by another version.
    return undefined;
  }
  rmSync(path, { force: true });
  return undefined;
}

function readFolder(path: string): string | undefined {
  try {
    const { data_dir: folder } = JSON.parse(readFileSync(path, "utf8")) as { data_dir?: unknown };
    return typeof folder === "string" && isAbsolute(folder) ? folder : undefined;
  } catch {
    return undefined;
  }
}

// True if only this user can write it. Where the system has no users, folders below the home are private.
function isPrivate(path: string): boolean {
  const found = lstatSync(path, { throwIfNoEntry: false });
  if (found === undefined) return false;
  const target = found.isSymbolicLink() ? statSync(path, { throwIfNoEntry: false }) : found;
  if (target === undefined) return false;
  const user = process.getuid?.();
  return user === undefined || (target.uid === user && (target.mode & 0o022) === 0);
}

function getFolder(): string {
  const state = process.env["XDG_STATE_HOME"] || join(homedir(), ".local", "state");
  return join(state, "platform", "running");
}
