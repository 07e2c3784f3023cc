// Places of repositories: folders below the configured one, and buckets of remotes.
import { realpathSync } from "node:fs";
import { basename, dirname, join, resolve, sep } from "node:path";
import { FolderStorage, type RepositoryStorage } from "@platform/kernel/backup";
import type { RepositoryAddress } from "../model/job.ts";
import { findGeoRefusal } from "../model/geo.ts";
import { S3Error } from "../model/s3-error.ts";
import type { Store } from "../object-store.ts";
import type { RemoteService } from "../store/remote-service.ts";
import { RemoteStorage } from "./remote-storage.ts";

/** Opens the storage of a repository, which may not exist yet. Throws InvalidArgument for a place that is not allowed. */
export type OpenRepositoryPlace = (address: RepositoryAddress) => RepositoryStorage;

/** Places below `backupDir`, after all links are resolved (relative paths begin there), and in remotes. */
export function createPlaces(backupDir: string | undefined, store: Store): OpenRepositoryPlace {
  const openFolder = createFolderPlaces(backupDir);
  return (address) =>
    "path" in address ? openFolder(address) : openRemotePlace(store.remotes, address);
}

/** A repository in a bucket of a registered remote. Throws InvalidArgument if there is no such remote. */
function openRemotePlace(
  remotes: Pick<RemoteService, "find">,
  { remote: name, bucket, prefix }: RemoteAddress,
): RemoteStorage {
  const remote = remotes.find(name);
  if (remote === undefined)
    throw new S3Error("InvalidArgument", `repository.remote: there is no remote ${name}.`);
  return new RemoteStorage({
    client: () => remote.client(bucket),
    place: `${name}:${bucket}/${prefix}`,
    prefix: `${remote.settings.prefix}${prefix}`,
    now: Date.now,
  });
}

/**
 * Decides whether all bytes of a store may go to a remote: by the rules of its buckets, and by those under which versions were
 * written. Throws AccessDenied with the first bucket that has another rule.
 */
export async function requireBackupAllowed(
  store: Store,
  address: RepositoryAddress,
): Promise<void> {
  if ("path" in address) return;
  const region = store.remotes.find(address.remote)?.settings.region;
  const destination = { exit: "backup", region } as const;
  for (const { name, settings } of store.buckets.list()) {
    const refusal = findGeoRefusal(undefined, settings.geoPlacement, destination);
    if (refusal !== undefined) throw new S3Error("AccessDenied", `${name}: ${refusal}`);
  }
  for (const mark of await store.listGeoMarks()) {
    const refusal = findGeoRefusal(mark, undefined, destination);
    if (refusal !== undefined) throw new S3Error("AccessDenied", refusal);
  }
}

type RemoteAddress = Exclude<RepositoryAddress, { path: string }>;

function createFolderPlaces(backupDir: string | undefined) {
  return ({ path }: { readonly path: string }): RepositoryStorage => {
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
