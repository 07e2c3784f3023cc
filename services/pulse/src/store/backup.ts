// Backups of the log: of a stopped broker by `platform-pulse backup`, of a running one by snapshots; and `restore`.
import { existsSync } from "node:fs";
import { mkdir } from "node:fs/promises";
import { dirname, join, resolve, sep } from "node:path";
import {
  createProgressPrinter,
  formatCount,
  readPassphrase,
  restoreBackup,
  verifyBackup,
  writeBackup,
  type Snapshot,
} from "@platform/kernel/backup";
import { PlatformError } from "@platform/kernel/errors";
import {
  checkLog,
  holdWholeLog,
  LOG_DATA_FORMATS,
  LogError,
  openNodeDisk,
  type Log,
} from "@platform/log";
import { PULSE_VERSION } from "../config.ts";
import { explainOpenError } from "./events.ts";
import { findLogFolder, type LogPlace } from "./folder.ts";
import { explainLocked, requireFolder } from "./maintenance.ts";

const SERVICE = "pulse";

/** Copies the log of a stopped broker to a new folder. Rejects if the log is open, damaged or missing. */
export async function backupFolder(
  config: LogPlace,
  folder: string,
  print: (line: string) => void,
): Promise<void> {
  const source = requireFolder(config);
  if (isInside(folder, source)) throw new Error(`${folder} is inside the log's own folder`);
  print(`${source}: checking`);
  const manifest = await holdWholeLog(openNodeDisk(source), ({ report, files, journal }) =>
    writeBackup(
      {
        folder,
        service: SERVICE,
        version: PULSE_VERSION,
        dataFormat: LOG_DATA_FORMATS.newest,
        nowMs: Date.now(),
        onProgress: createProgressPrinter(print),
      },
      async (target) => {
        await target.expect(files.reduce((sum, { bytes }) => sum + bytes, 0));
        for (const { path, bytes } of files) {
          await target.addFile(path, join(source, path), bytes);
        }
        const { topics, partitions } = report;
        return { topics, partitions, journal };
      },
    ),
  ).catch((error: unknown) => explainLocked(explainOpenError(error, config), source));
  print(
    `${resolve(folder)}: complete, ${formatCount(manifest.files.length, "file")} with every message that was acknowledged before the broker stopped.`,
  );
  print("Not included: the configuration, users_file, TLS files and the folder quarantine.");
}

export interface RestoreFolderOptions {
  /** Folder of the backup. */
  folder: string;
  passphrase_file?: string | undefined;
  /** Only verifies the backup. */
  dry_run: boolean;
}

/** Restores a backup to the configured log folder, which must be empty or missing. */
export async function restoreFolder(
  config: LogPlace,
  options: RestoreFolderOptions,
  print: (line: string) => void,
): Promise<void> {
  const { folder, passphrase_file: file } = options;
  const target = findLogFolder(config);
  const source = {
    folder,
    service: SERVICE,
    dataFormats: LOG_DATA_FORMATS,
    passphrase: file === undefined ? undefined : await readPassphrase(file),
    onProgress: createProgressPrinter(print),
  };
  if (options.dry_run) {
    const { files, created_at } = await verifyBackup(source);
    print(`${folder}: intact, ${formatCount(files.length, "file")} of ${created_at}.`);
    return;
  }
  if (existsSync(folder)) {
    await mkdir(dirname(resolve(target)), { recursive: true, mode: 0o750 });
  }
  const manifest = await restoreBackup({
    ...source,
    target,
    check: async (restored) => {
      print("checking");
      const report = await checkLog(openNodeDisk(restored));
      const [damage] = report.damaged;
      if (damage !== undefined) {
        throw new Error(`the restored log is damaged (${damage.file}: ${damage.reason})`);
      }
    },
  });
  print(
    `${target}: restored, ${formatCount(manifest.files.length, "file")} of the backup of ${manifest.created_at}.`,
  );
}

/** Takes a snapshot of the log of a running broker. */
export async function takeLogSnapshot(log: Log): Promise<Snapshot> {
  const snapshot = await log.snapshot().catch((error: unknown) => {
    if (!(error instanceof LogError)) throw error;
    throw new PlatformError("unavailable", `There is no backup: ${error.message}.`);
  });
  const { topics, partitions, journal, files, release } = snapshot;
  const bytes = files.reduce((sum, file) => sum + file.bytes, 0);
  return { mark: { topics, partitions, journal: { ...journal } }, bytes, files, release };
}

function isInside(folder: string, parent: string): boolean {
  return `${resolve(folder)}${sep}`.startsWith(`${resolve(parent)}${sep}`);
}
