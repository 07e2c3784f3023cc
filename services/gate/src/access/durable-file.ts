// Reads, removes and creates files and folders so that changes survive a crash: on disk before the call returns.
import { mkdir, readFile, rm, stat } from "node:fs/promises";
import { dirname } from "node:path";
import { PlatformError } from "@platform/kernel/errors";
import { syncFolder } from "@platform/kernel/files";

/** Returns the text of a file, undefined if it does not exist. Throws if it is larger than `bytesMax` or not readable. */
export async function readTextFile(path: string, bytesMax: number): Promise<string | undefined> {
  try {
    const { size } = await stat(path);
    if (size > bytesMax) throw new Error(`it has more than ${bytesMax} bytes`);
    return await readFile(path, "utf8");
  } catch (cause) {
    if (getErrorCode(cause) === "ENOENT") return undefined;
    throw cause;
  }
}

/** Removes a file if it exists. */
export async function removeFile(path: string): Promise<void> {
  await rm(path, { force: true });
  await syncFolder(dirname(path));
}

/** Creates a folder that only its owner may read. */
export async function makeFolder(path: string): Promise<void> {
  const created = await mkdir(path, { recursive: true, mode: 0o700 });
  if (created !== undefined) await syncFolder(dirname(created));
}

/** The answer to a change that cannot be stored: `insufficient_storage` on a full disk, else `conflict`. */
export function toStorageError(path: string, cause: unknown): PlatformError {
  const code = getErrorCode(cause) ?? (cause instanceof Error ? cause.message : String(cause));
  const isFull = code === "ENOSPC" || code === "EDQUOT";
  const remedy = isFull
    ? "The disk is full: free some space."
    : "Make the folder writable, or start the gateway with --ephemeral.";
  return new PlatformError(
    isFull ? "insufficient_storage" : "conflict",
    `the change was refused because it would be lost on a restart: ${path} cannot be written (${code}). ${remedy}`,
    { cause },
  );
}

/** The system's code of an error, such as ENOENT. */
function getErrorCode(cause: unknown): string | undefined {
  return cause instanceof Error && "code" in cause && typeof cause.code === "string"
    ? cause.code
    : undefined;
}
