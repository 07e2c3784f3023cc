// Places of repositories: folders below the configured one.
import { realpathSync } from "node:fs";
import { basename, dirname, join, resolve, sep } from "node:path";
import { FolderStorage, type RepositoryStorage } from "@platform/kernel/backup";
import type { RepositoryAddress } from "../model/job.ts";
import { S3Error } from "../model/s3-error.ts";

/** Opens the storage of a repository, which may not exist yet. Throws InvalidArgument for a place that is not allowed. */
export type OpenRepositoryPlace = (address: RepositoryAddress) => RepositoryStorage;

/** Places below `backupDir`, after all links are resolved; relative paths begin there. */
export function createFolderPlaces(backupDir: string | undefined): OpenRepositoryPlace {
  return ({ path }) => {
    if (backupDir === undefined) {
      throw new S3Error("InvalidArgument", "Backups are not configured: backup_dir is not set.");
    }
    const root = readRealPath(resolve(backupDir));
    const folder = readRealPath(resolve(root, path));
    if (path === "" || path.includes("\0") || !folder.startsWith(root + sep)) {
      throw new S3Error("InvalidArgument", "repository.path: not below the backup_dir of storage.");
    }
    return new FolderStorage(folder);
  };
}

// The end of a path may not exist yet.
function readRealPath(path: string): string {
  try {
    return realpathSync(path);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    const parent = dirname(path);
    if (code === "ENOENT" && parent !== path) return join(readRealPath(parent), basename(path));
    throw new S3Error("InvalidArgument", "repository.path: cannot be read.");
  }
}
