// `platform-vaultd restore`: restores a backup to the data folder of a stopped store.
import { DatabaseSync } from "node:sqlite";
import { copyFile, mkdir, open, rm, writeFile } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import {
  BackupError,
  createProgressPrinter,
  loadManifest,
  readPassphrase,
  restoreBackup,
  verifyBackup,
  requireOpen,
  requireWholeSnapshot,
  restoreSnapshot,
} from "@platform/kernel/backup";
import { isEmptyDrive, REPLACEMENT_MARK } from "../blob/drive/identity.ts";
import type { VaultConfig } from "../config.ts";
import { inspectIndex } from "../index/inspect.ts";
import { FORMAT_VERSION } from "../index/schema.ts";
import { isRepository, openFolder, type RepositoryConfig } from "./repository.ts";
import { nameDriveFolder, type DrivesMark } from "../upkeep/store-snapshot.ts";

const INDEX_NAME = "index.sqlite";

/** The keys of a restore. */
export type RestoreConfig = Pick<VaultConfig, "data_dir" | "drives" | "drive_parity"> &
  RepositoryConfig;

export interface RestoreStoreOptions {
  /** Folder of the backup. */
  folder: string;
  passphrase_file?: string | undefined;
  /** Only verifies the backup. */
  dry_run: boolean;
  /** Id of a snapshot, if the folder is a repository. Default: the last one. */
  snapshot?: string | undefined;
}

/**
 * Restores a backup, or a snapshot of a repository, to the configured data folder, which must be missing or empty, and to
 * the configured drives, which must be as many as those of the backup, and empty.
 */
export async function restoreStore(
  config: RestoreConfig,
  options: RestoreStoreOptions,
  print: (line: string) => void,
): Promise<void> {
  if (isRepository(options.folder)) await restoreFromRepository(config, options, print);
  else await restoreFolder(config, options, print);
}

async function restoreFolder(
  config: Pick<VaultConfig, "data_dir" | "drives" | "drive_parity">,
  options: RestoreStoreOptions,
  print: (line: string) => void,
): Promise<void> {
  const { folder, passphrase_file: file, snapshot } = options;
  if (snapshot !== undefined) throw new BackupError(`${folder} is not a repository`);
  const source = {
    folder,
    service: "vault",
    dataFormats: { oldest: 1, newest: FORMAT_VERSION },
    passphrase: file === undefined ? undefined : await readPassphrase(file),
    onProgress: createProgressPrinter(print),
  };
  if (options.dry_run) {
    const { files, created_at } = await verifyBackup(source);
    print(`${folder}: intact, ${files.length} files of ${created_at}.`);
    return;
  }
  const several = readDrivesMark((await loadManifest(folder)).mark);
  await restoreWith(config, several, print, async (target) => {
    const { files, created_at } = await restoreBackup({ ...source, ...target });
    return `${files.length} files of the backup of ${created_at}`;
  });
}

async function restoreFromRepository(
  config: RestoreConfig,
  options: RestoreStoreOptions,
  print: (line: string) => void,
): Promise<void> {
  const repository = await openFolder(config, options);
  const snapshot = await repository.load(options.snapshot);
  const { files, point } = snapshot.mark;
  const onProgress = createProgressPrinter(print);
  if (options.dry_run) {
    await requireWholeSnapshot(repository, { onProgress }, snapshot);
    print(`${options.folder}: snapshot ${snapshot.id} is intact, ${files} files.`);
    return;
  }
  requireOpen(repository);
  await restoreWith(config, readDrivesMark(point), print, async (target) => {
    await restoreSnapshot(repository, snapshot, { ...target, onProgress });
    return `${files} files of the snapshot ${snapshot.id}`;
  });
}

/** Options of a restore that say where its files go. */
type Target = Required<Pick<Parameters<typeof restoreBackup>[0], "target" | "check" | "elsewhere">>;

async function restoreWith(
  config: Pick<VaultConfig, "data_dir" | "drives" | "drive_parity">,
  several: DrivesMark | undefined,
  print: (line: string) => void,
  restore: (target: Target) => Promise<string>,
): Promise<void> {
  requireDrives(config, several);
  await mkdir(dirname(resolve(config.data_dir)), { recursive: true, mode: 0o700 });
  let index = "";
  const restored = await restore({
    target: config.data_dir,
    check: (folder) => {
      print("checking the index");
      index = join(folder, INDEX_NAME);
      return checkIndex(index);
    },
    elsewhere: (several?.slots ?? []).map((slot) => ({
      path: nameDriveFolder(slot),
      target: config.drives[slot]!,
      last: "drive.json",
      complete: (staged) => copyDurably(index, join(staged, INDEX_NAME)),
    })),
  });
  if (several !== undefined) await finishDrives(config, several, print);
  print(`${config.data_dir}: restored, ${restored}.`);
}

function readDrivesMark(mark: unknown): DrivesMark | undefined {
  return (mark as { several?: DrivesMark }).several;
}

function requireDrives(
  { drives, drive_parity: parity }: Pick<VaultConfig, "drives" | "drive_parity">,
  several: DrivesMark | undefined,
): void {
  if (several === undefined && drives.length > 0) {
    throw new BackupError("the backup is of a store in data_dir: unset drives to restore it");
  }
  if (several === undefined) return;
  if (drives.length === several.drives && parity === several.parity) {
    const used = drives.find((folder) => !isEmptyDrive(folder));
    if (used === undefined) return;
    throw new BackupError(`${used} must exist and be empty to restore into it`);
  }
  throw new BackupError(
    `the backup is of a store on ${several.drives} drives, of which ${several.parity} may be lost: set drives to as many empty folders, and drive_parity to ${several.parity}; configured are ${drives.length} and ${parity}`,
  );
}

// Drives that were absent during the backup are rebuilt from the others at the next start.
async function finishDrives(
  { data_dir: dataDir, drives }: Pick<VaultConfig, "data_dir" | "drives">,
  { slots }: DrivesMark,
  print: (line: string) => void,
): Promise<void> {
  await rm(join(dataDir, INDEX_NAME));
  for (const [slot, target] of drives.entries()) {
    if (slots.includes(slot)) continue;
    await writeFile(join(target, REPLACEMENT_MARK), "");
    print(`${target}: was absent during the backup, and is rebuilt when storage starts`);
  }
}

async function copyDurably(from: string, to: string): Promise<void> {
  await copyFile(from, to);
  const file = await open(to, "r+");
  try {
    await file.sync();
  } finally {
    await file.close();
  }
}

function checkIndex(path: string): Promise<void> {
  const [finding] = inspectIndex(path).findings;
  if (finding !== undefined)
    return Promise.reject(new BackupError(`the restored index is damaged: ${finding}`));
  forgetStoreId(path);
  return Promise.resolve();
}

// The store that was backed up may still run: this one gets an id of its own, and never deletes what is under the other's.
function forgetStoreId(path: string): void {
  const index = new DatabaseSync(path);
  try {
    const { user_version: format } = index.prepare("pragma user_version").get() as {
      user_version: number;
    };
    if (format < 6) return;
    index.exec("pragma journal_mode = delete");
    index.exec(
      "insert or replace into facts select 'former store', value from facts where name = 'store'",
    );
    index.exec("delete from facts where name = 'store' or name like 'adopted %'");
    index.exec("delete from tasks where kind = 'delete-remote'");
  } finally {
    index.close();
  }
}
