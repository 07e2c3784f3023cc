// The data directory of `platform up`: created, checked, and locked by one process.
import { existsSync, mkdirSync, readFileSync, statSync } from "node:fs";
import { isAbsolute, join, relative } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { nameProgram, quoteShell } from "@platform/kernel/config";
import { FileLockedError, lockFile } from "@platform/kernel/files";
import { findFileHolder, holdsFile, type Holder } from "@platform/kernel/lifecycle";
import { writePrivateFile } from "./private-file.ts";

/** Format of the directory as a whole; each service versions its own files. */
const FORMAT = 1;
const LOCK = "platform.lock";
const MARKER = "platform.json";
const LOCK_ATTEMPTS = 4;
const LOCK_RETRY_MS = 50;
/** Time by which the clock may differ from that of the last run. */
const CLOCK_SKEW_MS = 60_000;

/** Record of the runs with this directory. */
interface Marker {
  format: number;
  /** Version of the last program that used it. */
  version: string;
  /** Epoch milliseconds, updated while the platform runs. */
  seen_ms: number;
}

/** The locked directory. */
export interface DataFolder {
  /** True if the platform has run with this directory before. */
  isUsed: boolean;
  /** Warnings for the operator. */
  notes: string[];
  /** Records that the platform is running. */
  touch(nowMs: number): void;
  release(): void;
}

/** Returns the lock if the directory exists, so that a running platform is named before its ports are. */
export async function lockExisting(path: string): Promise<(() => void) | undefined> {
  return existsSync(join(path, LOCK)) ? lock(path) : undefined;
}

/**
 * Creates the directory, locks it and checks its version. Throws errors for the operator: the directory is in use, was
 * written by a newer version, or cannot be written.
 */
export async function openDataFolder(
  path: string,
  options: { version: string; nowMs: number; lock: (() => void) | undefined },
): Promise<DataFolder> {
  const { version, nowMs } = options;
  create(path);
  const release = options.lock ?? (await lock(path));
  try {
    const marker = readMarker(join(path, MARKER));
    if (marker !== undefined) requireReadable(path, marker, version);
    const touch = (seenMs: number): void =>
      writePrivateFile(join(path, MARKER), { format: FORMAT, version, seen_ms: seenMs });
    const notes = checkClock(marker, nowMs);
    try {
      touch(nowMs);
    } catch (error) {
      // Stored data can only be deleted while the services run.
      if (marker === undefined || !isDiskFull(error)) throw error;
      notes.push(
        `the disk of ${JSON.stringify(formatFolder(path))} is full: delete data, or free some space`,
      );
    }
    return { isUsed: marker !== undefined, notes, touch, release };
  } catch (error) {
    release();
    throw explainFileError(error, path);
  }
}

/** True if another process has locked the directory. Throws the system's error if this user may not find out. */
export function isLocked(path: string): boolean {
  const file = join(path, LOCK);
  if (statSync(file, { throwIfNoEntry: false }) === undefined) return false;
  try {
    lockFile(file)();
    return false;
  } catch (error) {
    if (error instanceof FileLockedError) return true;
    throw error;
  }
}

/**
 * True if the process has locked the directory, false if another one has, and undefined if the system does not tell. The
 * number of a process that has ended may be that of any program.
 */
export function isLockedBy(path: string, pid: number): Promise<boolean | undefined> {
  return holdsFile(pid, join(path, LOCK));
}

/** The process that has locked the directory for longer than a command does; undefined if there is none or it is unknown. */
export async function findLockHolder(
  path: string,
): Promise<{ holder: Holder | undefined } | undefined> {
  for (let attempt = 1; ; attempt += 1) {
    if (!isLocked(path)) return undefined;
    // `platform status` holds it for a moment.
    if (attempt === LOCK_ATTEMPTS) return { holder: await findFileHolder(join(path, LOCK)) };
    await sleep(LOCK_RETRY_MS);
  }
}

/** True if a platform has used the directory. */
export function isUsedFolder(path: string): boolean {
  return existsSync(join(path, MARKER));
}

/** A folder as a user would type it. */
export function formatFolder(path: string): string {
  const short = relative(process.cwd(), path);
  if (short.startsWith("..") || isAbsolute(short)) return path;
  return short === "" ? "." : `./${short}`;
}

/** A command of `platform` for this data directory, to be typed in the working directory. */
export function formatCommand(dataDir: string, command: string): string {
  const shown = formatFolder(dataDir);
  return `${nameProgram("platform")} ${command}${shown === "./data" ? "" : ` --data ${quoteShell(shown)}`}`;
}

/** True if a file could not be written because its disk is full. */
export function isDiskFull(error: unknown): boolean {
  const code = error instanceof Error && "code" in error ? error.code : undefined;
  return code === "ENOSPC" || code === "EDQUOT";
}

/** Explains why a file in the data directory cannot be used; other errors are returned unchanged. */
export function explainFileError(error: unknown, path: string): Error {
  const code = error instanceof Error && "code" in error ? error.code : undefined;
  const place = error instanceof Error && "path" in error ? String(error.path) : path;
  const shown = JSON.stringify(formatFolder(place));
  switch (code) {
    case "EACCES":
    case "EPERM":
      return new Error(
        `no permission for ${shown}: run as its owner (uid ${findOwner(place) ?? "unknown"}), or choose another folder with --data`,
        { cause: error },
      );
    case "EROFS":
      return new Error(`${shown} is on a read-only disk: choose another folder with --data`, {
        cause: error,
      });
    case "EEXIST":
    case "ENOTDIR":
      return new Error(`${shown} is not a folder: choose another one with --data`, {
        cause: error,
      });
    case "ENOSPC":
    case "EDQUOT":
      return new Error(`the disk of ${shown} is full: free some space and start again`, {
        cause: error,
      });
    default:
      return error instanceof Error ? error : new Error(String(error));
  }
}

function create(path: string): void {
  try {
    mkdirSync(path, { recursive: true, mode: 0o700 });
  } catch (error) {
    throw explainFileError(error, path);
  }
}

async function lock(path: string): Promise<() => void> {
  const file = join(path, LOCK);
  try {
    return await lockSoon(file);
  } catch (error) {
    if (!(error instanceof FileLockedError)) throw explainFileError(error, file);
    const holder = await findFileHolder(file);
    const by = holder === undefined ? "" : ` (process ${holder.pid})`;
    throw new Error(
      `another platform is running with the data folder ${JSON.stringify(formatFolder(path))}${by}; stop it first, or choose another folder with --data`,
      { cause: error },
    );
  }
}

// `platform status` holds the lock for a moment.
async function lockSoon(file: string): Promise<() => void> {
  for (let attempt = 1; attempt < LOCK_ATTEMPTS; attempt += 1) {
    try {
      return lockFile(file);
    } catch (error) {
      if (!(error instanceof FileLockedError)) throw error;
      await sleep(LOCK_RETRY_MS);
    }
  }
  return lockFile(file);
}

function readMarker(path: string): Marker | undefined {
  if (!existsSync(path)) return undefined;
  try {
    const marker = JSON.parse(readFileSync(path, "utf8")) as Partial<Marker>;
    const { format, version, seen_ms } = marker;
    if (typeof format === "number" && typeof version === "string" && typeof seen_ms === "number")
      return { format, version, seen_ms };
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
  }
  throw new Error(
    `${path} is damaged: restore it from a backup, or delete it if this version wrote the folder`,
  );
}

function requireReadable(path: string, marker: Marker, version: string): void {
  if (marker.format <= FORMAT && compareVersions(marker.version, version) <= 0) return;
  throw new Error(
    `the data folder ${JSON.stringify(formatFolder(path))} was written by platform ${marker.version}, and this is platform ${version}: install ${marker.version} or newer, or restore a backup of this version into another folder`,
  );
}

// Patch releases do not change formats.
function compareVersions(left: string, right: string): number {
  const [major = 0, minor = 0] = left.split(".").map(Number);
  const [otherMajor = 0, otherMinor = 0] = right.split(".").map(Number);
  return major - otherMajor || minor - otherMinor;
}

function checkClock(marker: Marker | undefined, nowMs: number): string[] {
  if (marker === undefined || marker.seen_ms <= nowMs + CLOCK_SKEW_MS) return [];
  const seen = new Date(marker.seen_ms).toISOString();
  return [
    `the clock is behind the last run (${seen}): check it with date or timedatectl; tokens and certificates may be invalid until it is right`,
  ];
}

function findOwner(path: string): number | undefined {
  for (let place = path; ; place = join(place, "..")) {
    try {
      return statSync(place).uid;
    } catch {
      // It is missing, or its folder may not be entered.
      if (join(place, "..") === place) return undefined;
    }
  }
}
