// `platform-pulse backup` and `restore`: copy the log while the broker is stopped.
import { existsSync } from "node:fs";
import { mkdir } from "node:fs/promises";
import { dirname, join, resolve, sep } from "node:path";
import { restoreBackup, writeBackup, type BackupProgress } from "@platform/kernel/backup";
import { checkLog, holdWholeLog, LOG_DATA_FORMATS, openNodeDisk } from "@platform/log";
import { PULSE_VERSION } from "../config.ts";
import { explainOpenError } from "./events.ts";
import { findLogFolder, type LogPlace } from "./folder.ts";
import { explainLocked, requireFolder } from "./maintenance.ts";

const SERVICE = "pulse";
/** Interval between two lines of progress. */
const PROGRESS_MS = 2_000;

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
        onProgress: createProgress(print, "copied"),
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
  ).catch((error: unknown) => explainLocked(explainOpenError(error), source));
  print(
    `${resolve(folder)}: complete, ${manifest.files.length} files with every message that was acknowledged before the broker stopped.`,
  );
  print("Not included: the configuration, users_file, TLS files and the folder quarantine.");
}

/** Restores a backup to the configured log folder, which must be empty or missing. */
export async function restoreFolder(
  config: LogPlace,
  folder: string,
  print: (line: string) => void,
): Promise<void> {
  const target = findLogFolder(config);
  if (existsSync(folder)) {
    await mkdir(dirname(resolve(target)), { recursive: true, mode: 0o750 });
  }
  const manifest = await restoreBackup({
    folder,
    target,
    service: SERVICE,
    dataFormats: LOG_DATA_FORMATS,
    onProgress: createProgress(print, "restored"),
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
    `${target}: restored, ${manifest.files.length} files of the backup of ${manifest.created_at}.`,
  );
}

function isInside(folder: string, parent: string): boolean {
  return `${resolve(folder)}${sep}`.startsWith(`${resolve(parent)}${sep}`);
}

function createProgress(print: (line: string) => void, verb: string) {
  let printedMs = performance.now();
  return ({ bytes, bytesTotal }: BackupProgress) => {
    const nowMs = performance.now();
    if (nowMs - printedMs < PROGRESS_MS) return;
    printedMs = nowMs;
    print(`${verb} ${toMebibytes(bytes)} of ${toMebibytes(bytesTotal ?? bytes)} MiB`);
  };
}

function toMebibytes(bytes: number): string {
  return (bytes / 1024 / 1024).toFixed(1);
}
