// The checks of an index before it is written: that it is present, up to date, and intact.
import { existsSync, readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import type { StoreFolders } from "../disk/files.ts";
import { StoreError } from "../model/store-error.ts";
import { inspectIndex, measureIndex } from "./inspect.ts";
import { isBefore, readMark } from "./mark.ts";
import { isUnusedIndex, readPosition, type IndexPosition } from "./snapshot.ts";

/** The result of the check. `reason` is set if the index must not be written. */
export interface IndexState {
  position: IndexPosition | undefined;
  reason: string | undefined;
}

/** Checks the index of a folder. One larger than `inspectedBytesMax` is not read as a whole. */
export function judgeIndex(folders: StoreFolders, inspectedBytesMax: number): IndexState {
  const { index } = folders;
  const { mark } = readMark(index);
  const size = statSync(index, { throwIfNoEntry: false })?.size;
  if (size === undefined || size === 0) {
    const isNew = (mark?.commit ?? 0) === 0 && !hasBodies(folders) && !hasLog(index);
    const what = size === undefined ? "missing" : "empty";
    return { position: undefined, reason: isNew ? undefined : `it is ${what}` };
  }
  const position = readPosition(index);
  if (position === undefined) {
    const isNew = (mark?.commit ?? 0) === 0 && !hasBodies(folders) && isUnusedIndex(index);
    return { position, reason: isNew ? undefined : "it cannot be read" };
  }
  if (mark !== undefined && isBefore(position, mark)) {
    const reason = `it is older than it was: commit ${position.commit} of start ${position.commitGeneration}, where ${mark.commit} of start ${mark.commitGeneration} was acknowledged`;
    return { position, reason };
  }
  if (measureIndex(index) <= inspectedBytesMax) {
    const { findings } = inspectIndex(index);
    if (findings.length > 0) return { position, reason: findings.slice(0, 3).join("; ") };
  }
  return { position, reason: undefined };
}

/** Throws if the index of a folder must not be written; the message names the remedy. */
export function requireWholeIndex(folders: StoreFolders, inspectedBytesMax: number): void {
  const { reason } = judgeIndex(folders, inspectedBytesMax);
  if (reason === undefined) return;
  throw new StoreError(
    "ServiceUnavailable",
    `${folders.index} is damaged (${reason}). Nothing was changed. Run "platform-vaultd fsck" to see what can be restored`,
  );
}

/** The highest generation in the names of segments. */
export function findLastGeneration(folders: StoreFolders): number {
  const names = existsSync(folders.segments) ? readdirSync(folders.segments) : [];
  const ids = names.map((name) => Number.parseInt(name, 16)).filter(Number.isSafeInteger);
  return Math.floor(ids.reduce((max, id) => Math.max(max, id), 0) / 2 ** 32);
}

function hasBodies(folders: StoreFolders): boolean {
  // The copy of the buckets is written after the first of them was committed.
  if (existsSync(folders.buckets) || existsSync(folders.indexCopy)) return true;
  const isFilled = (folder: string) => existsSync(folder) && readdirSync(folder).length > 0;
  if (isFilled(folders.segments)) return true;
  if (!existsSync(folders.files)) return false;
  return readdirSync(folders.files).some((name) => isFilled(join(folders.files, name)));
}

// Commits that are only in the WAL: SQLite would delete it if the index is missing or empty.
function hasLog(index: string): boolean {
  return (statSync(`${index}-wal`, { throwIfNoEntry: false })?.size ?? 0) > 0;
}
