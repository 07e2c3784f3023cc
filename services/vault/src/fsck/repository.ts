// `platform-vaultd backup` and `repository check`: repositories of a stopped store.
import { existsSync } from "node:fs";
import { join, resolve } from "node:path";
import {
  BackupError,
  checkRepository,
  createProgressPrinter,
  FolderStorage,
  formatCount,
  formatSize,
  HEAD_NAME,
  readPassphrase,
  Repository,
  type RepositoryStorage,
} from "@platform/kernel/backup";
import { S3Client } from "@platform/s3";
import { backUp, describeRepository } from "../backup/back-up.ts";
import { RemoteStorage } from "../backup/remote-storage.ts";
import { isDrive } from "../blob/drive/identity.ts";
import { toStoreOptions, type VaultConfig } from "../config.ts";
import { StoreFolders } from "../disk/files.ts";
import { openKeys } from "../keys/open-keys.ts";
import { openStore } from "../open-store.ts";

/** A repository on the command line. */
export interface RepositoryFolder {
  folder: string;
  passphrase_file?: string | undefined;
}

/** The keys of the service that has a repository which is no folder. */
export type RepositoryConfig = Partial<
  Pick<
    VaultConfig,
    "repository_endpoint" | "repository_region" | "repository_access_key" | "repository_secret_key"
  >
>;

const BUCKET_URL = "s3://";

/** True if a folder is a repository, and not a backup. */
export function isRepository(folder: string): boolean {
  return folder.startsWith(BUCKET_URL) || existsSync(join(folder, HEAD_NAME));
}

/** Opens the repository in a folder, or in a bucket. */
export async function openFolder(
  config: RepositoryConfig,
  { folder, passphrase_file: file }: RepositoryFolder,
): Promise<Repository> {
  const passphrase = file === undefined ? undefined : await readPassphrase(file);
  return Repository.open(describeRepository(openStorage(config, folder), passphrase));
}

function openStorage(config: RepositoryConfig, folder: string): RepositoryStorage {
  if (!folder.startsWith(BUCKET_URL)) return new FolderStorage(resolve(folder));
  const [bucket = "", ...rest] = folder.slice(BUCKET_URL.length).split("/");
  const { repository_endpoint: endpoint, repository_region: region = "us-east-1" } = config;
  const { repository_access_key: accessKey, repository_secret_key: secretKey } = config;
  if (endpoint === undefined || accessKey === undefined || secretKey === undefined || bucket === "")
    throw new BackupError(
      `${folder}: expected s3://BUCKET/PREFIX, and repository_endpoint, repository_access_key and repository_secret_key`,
    );
  const client = new S3Client({
    endpoint: new URL(endpoint),
    region,
    bucket,
    credentials: () => ({ accessKey, secretKey }),
  });
  return new RemoteStorage({
    client: () => client,
    place: folder,
    prefix: rest.join("/"),
    now: Date.now,
  });
}

/** Adds a snapshot of the configured store. Rejects if a process has it open. */
export async function backUpStopped(
  config: VaultConfig,
  { folder, passphrase_file: file }: RepositoryFolder,
  print: (line: string) => void,
): Promise<void> {
  const passphrase = file === undefined ? undefined : await readPassphrase(file);
  const hasStore =
    existsSync(new StoreFolders(config.data_dir).index) || config.drives.some(isDrive);
  if (!hasStore) throw new BackupError(`${config.data_dir} is not the data folder of a store`);
  const { ring } = await openKeys(config, { isWriting: false });
  const store = await openStore(toStoreOptions(config));
  try {
    const { snapshot } = await backUp({
      storage: openStorage(config, folder),
      passphrase,
      owner: ring.owner,
      takeSnapshot: () => store.snapshot(),
      nowMs: Date.now(),
      onProgress: createProgressPrinter(print),
    });
    const { files, bytes, added } = snapshot.mark;
    print(
      `${folder}: snapshot ${snapshot.id}, ${formatCount(files, "file")}, ${formatSize(bytes)}, of which ${formatSize(added)} were stored`,
    );
  } finally {
    await store.close();
  }
}

/** Verifies a repository. Resolves to the exit code. */
export async function checkFolder(
  config: RepositoryConfig,
  options: RepositoryFolder,
  print: (line: string) => void,
): Promise<number> {
  const repository = await openFolder(config, options);
  const onProgress = createProgressPrinter(print);
  const result = await checkRepository(repository, { onProgress });
  for (const problem of result.problems) print(`damaged: ${problem}`);
  for (const id of result.snapshots) print(`snapshot ${id}`);
  const { objects, bytes, unused } = result;
  print(`${formatCount(objects, "object")} were read, ${formatSize(bytes)}`);
  if (unused > 0) {
    print(`${formatCount(unused, "object")} of interrupted backups: the next one removes them`);
  }
  if (!result.isComplete) {
    print(
      "it is encrypted: without --passphrase-file it is not known whether an object is missing",
    );
  }
  if (result.problems.length > 0) return 1;
  print("everything is intact");
  return 0;
}
