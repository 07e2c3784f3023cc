// What a drive says of itself: which store it belongs to, and which of the store's places it fills.
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import {
  closeFile,
  openFile,
  renameFile,
  syncData,
  syncFolder,
  writeAll,
} from "../../disk/files.ts";
import { StoreError } from "../../model/store-error.ts";

/** The content of `drive.json`. */
export interface DriveIdentity {
  format: 1;
  /** Of the store; all its drives have the same. */
  store: string;
  /** From 0 on; where shards go is computed from it. */
  slot: number;
  /** How many drives the store has, and into what it cuts what is large. */
  drives: number;
  data: number;
  parity: number;
}

/** A file of this name in an empty folder says that the folder is to take the place of a lost drive. */
export const REPLACEMENT_MARK = "replace-drive";

const NAME = "drive.json";
const STAGED_NAME = `${NAME}.new`;
// What a new file system has in its root, and what an identity leaves behind whose writing was cut short.
const IGNORED = new Set(["lost+found", REPLACEMENT_MARK, STAGED_NAME]);

/** Reads a drive's identity; undefined where there is none. Throws `ServiceUnavailable` where it cannot be understood. */
export function readIdentity(folder: string): DriveIdentity | undefined {
  const path = join(folder, NAME);
  if (!existsSync(path)) return undefined;
  try {
    const identity = JSON.parse(readFileSync(path, "utf8")) as DriveIdentity;
    if (identity.format === 1 && typeof identity.store === "string") return identity;
  } catch (error) {
    throw new StoreError("ServiceUnavailable", `${path} cannot be read`, {}, { cause: error });
  }
  throw new StoreError("ServiceUnavailable", `${path} is of a newer format`);
}

/** Whether a store has made the folder one of its drives. */
export function isDrive(folder: string): boolean {
  return existsSync(join(folder, NAME));
}

/** Whether nothing lies in the folder yet. */
export function isEmptyDrive(folder: string): boolean {
  return existsSync(folder) && readdirSync(folder).every((name) => IGNORED.has(name));
}

/** Whether somebody has said that the empty folder may be filled. */
export function isReplacement(folder: string): boolean {
  return isEmptyDrive(folder) && existsSync(join(folder, REPLACEMENT_MARK));
}

/** Writes an identity, durably. */
export async function writeIdentity(folder: string, identity: DriveIdentity): Promise<void> {
  const staged = join(folder, STAGED_NAME);
  const fd = await openFile(staged, "w");
  try {
    await writeAll(fd, [Buffer.from(`${JSON.stringify(identity)}\n`)], 0);
    await syncData(fd);
  } finally {
    await closeFile(fd);
  }
  await renameFile(staged, join(folder, NAME));
  await syncFolder(folder);
}
