// The identity of a drive: its store, and its slot in the store.
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { syncFolder } from "@platform/kernel/files";
import { closeFile, openFile, renameFile, syncData, writeAll } from "../../disk/files.ts";
import { StoreError } from "../../model/store-error.ts";

/** The content of `drive.json`. */
export interface DriveIdentity {
  format: 1;
  /** The id of the store, the same on all its drives. */
  store: string;
  /** From 0; the placement of shards depends on it. */
  slot: number;
  /** Number of drives, and of data and parity shards of large bodies. */
  drives: number;
  data: number;
  parity: number;
}

/** A file of this name in an empty folder means that the folder replaces a lost drive. */
export const REPLACEMENT_MARK = "replace-drive";

const NAME = "drive.json";
const STAGED_NAME = `${NAME}.new`;
// Entries of a new file system, and leftovers of an interrupted identity write.
const IGNORED = new Set(["lost+found", REPLACEMENT_MARK, STAGED_NAME]);

/** Reads the identity of a drive; `undefined` if it has none. Throws `ServiceUnavailable` if it cannot be parsed. */
export function readIdentity(folder: string): DriveIdentity | undefined {
  const path = join(folder, NAME);
  if (!existsSync(path)) return undefined;
  try {
    const identity = JSON.parse(readFileSync(path, "utf8")) as DriveIdentity;
    if (identity.format === 1 && typeof identity.store === "string") return identity;
  } catch (error) {
    throw new StoreError("ServiceUnavailable", `${path} cannot be read`, {}, { cause: error });
  }
  throw new StoreError("ServiceUnavailable", `${path} has a newer format`);
}

/** True if a store has made the folder one of its drives. */
export function isDrive(folder: string): boolean {
  return existsSync(join(folder, NAME));
}

/** True if the folder is empty. */
export function isEmptyDrive(folder: string): boolean {
  return existsSync(folder) && readdirSync(folder).every((name) => IGNORED.has(name));
}

/** True if the operator has marked the empty folder as a replacement. */
export function isReplacement(folder: string): boolean {
  return isEmptyDrive(folder) && existsSync(join(folder, REPLACEMENT_MARK));
}

/** Writes an identity durably. */
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
