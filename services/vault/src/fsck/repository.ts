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
} from "@platform/kernel/backup";
import { identifyStore, loadMasterKey } from "../access/secret-box.ts";
import { backUp, describeRepository } from "../backup/back-up.ts";
import { isDrive } from "../blob/drive/identity.ts";
import { toStoreOptions, type VaultConfig } from "../config.ts";
import { StoreFolders } from "../disk/files.ts";
import { openStore } from "../open-store.ts";

/** A repository on the command line. */
export interface RepositoryFolder {
  folder: string;
  passphrase_file?: string | undefined;
}

/** True if a folder is a repository, and not a backup. */
export function isRepository(folder: string): boolean {
  return existsSync(join(folder, HEAD_NAME));
}

/** Opens the repository in a folder. */
export async function openFolder({
  folder,
  passphrase_file: file,
}: RepositoryFolder): Promise<Repository> {
  const passphrase = file === undefined ? undefined : await readPassphrase(file);
  return Repository.open(describeRepository(new FolderStorage(resolve(folder)), passphrase));
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
  const masterKey =
    config.master_key === undefined
      ? loadMasterKey(join(config.data_dir, "access", "master.key"), true)
      : Buffer.from(config.master_key, "base64");
  const store = await openStore(toStoreOptions(config));
  try {
    const { snapshot } = await backUp({
      storage: new FolderStorage(resolve(folder)),
      passphrase,
      owner: identifyStore(masterKey),
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
  options: RepositoryFolder,
  print: (line: string) => void,
): Promise<number> {
  const repository = await openFolder(options);
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
