// `platform-vaultd restore`: restores a backup to the data folder of a stopped store.
import { mkdir } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import {
  BackupError,
  createProgressPrinter,
  readPassphrase,
  restoreBackup,
  verifyBackup,
} from "@platform/kernel/backup";
import type { VaultConfig } from "../config.ts";
import { inspectIndex } from "../index/inspect.ts";
import { FORMAT_VERSION } from "../index/schema.ts";

/** Options of `restoreStore`. */
export interface RestoreStoreOptions {
  /** Folder of the backup. */
  folder: string;
  passphrase_file?: string | undefined;
  /** Only verifies the backup. */
  dry_run: boolean;
}

/** Restores a backup to the configured data folder, which must be missing or empty. */
export async function restoreStore(
  config: Pick<VaultConfig, "data_dir" | "drives">,
  options: RestoreStoreOptions,
  print: (line: string) => void,
): Promise<void> {
  if (config.drives.length > 0) {
    throw new BackupError("backups are of a store in data_dir: unset drives to restore one");
  }
  const { folder, passphrase_file: file } = options;
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
  await mkdir(dirname(resolve(config.data_dir)), { recursive: true, mode: 0o700 });
  const { files, created_at } = await restoreBackup({
    ...source,
    target: config.data_dir,
    check: (restored) => {
      print("checking the index");
      return checkIndex(join(restored, "index.sqlite"));
    },
  });
  print(`${config.data_dir}: restored, ${files.length} files of the backup of ${created_at}.`);
}

function checkIndex(path: string): Promise<void> {
  const [finding] = inspectIndex(path).findings;
  if (finding === undefined) return Promise.resolve();
  return Promise.reject(new BackupError(`the restored index is damaged: ${finding}`));
}
