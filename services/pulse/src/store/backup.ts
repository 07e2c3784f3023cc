// Backups of the log: of a stopped broker by `platform-pulse backup`, of a running one by snapshots; and `restore`.
import { existsSync } from "node:fs";
import { mkdir, open, rm } from "node:fs/promises";
import { dirname, join, resolve, sep } from "node:path";
import {
  createProgressPrinter,
  formatCount,
  readPassphrase,
  restoreBackup,
  verifyBackup,
  writeBackup,
  type BackupTarget,
  type Snapshot,
} from "@platform/kernel/backup";
import { PlatformError } from "@platform/kernel/errors";
import {
  checkLog,
  holdWholeLog,
  LOG_DATA_FORMATS,
  LogError,
  openNodeDisk,
  type ColdStore,
  type Log,
  type WholeLog,
} from "@platform/log";
import { PULSE_VERSION, type PulseConfig } from "../config.ts";
import { openObjectStore } from "../offload/offload.ts";
import { explainOpenError } from "./events.ts";
import { findLogFolder, type LogPlace } from "./folder.ts";
import { explainLocked, requireFolder } from "./maintenance.ts";

const SERVICE = "pulse";
const FETCH_BYTES = 8 * 1024 * 1024;
/** Names of objects that a backup prints. */
const OBJECTS_SHOWN_MAX = 20;

export interface BackupFolderOptions {
  /** Folder of the backup. */
  folder: string;
  /** Also copies the segments that are only in object storage. */
  include_offloaded?: boolean;
}

/** Copies the log of a stopped broker to a new folder. Rejects if the log is open, damaged or missing. */
export async function backupFolder(
  config: PulseConfig,
  { folder, include_offloaded: isWhole = false }: BackupFolderOptions,
  print: (line: string) => void,
): Promise<void> {
  const source = requireFolder(config);
  if (isInside(folder, source)) throw new Error(`${folder} is inside the log's own folder`);
  print(`${source}: checking`);
  let left: WholeLog["objects"] = [];
  const manifest = await holdWholeLog(openNodeDisk(source), ({ report, files, objects, journal }) =>
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
        const copied = isWhole ? objects : [];
        left = isWhole ? [] : objects;
        await target.expect([...files, ...copied].reduce((sum, { bytes }) => sum + bytes, 0));
        for (const { path, bytes } of files) {
          await target.addFile(path, join(source, path), bytes);
        }
        await copyObjects(config, target, copied);
        const { topics, partitions } = report;
        return { topics, partitions, journal, offloaded: sumUp(left) };
      },
    ),
  ).catch((error: unknown) => explainLocked(explainOpenError(error, config), source));
  print(
    `${resolve(folder)}: complete, ${formatCount(manifest.files.length, "file")} with every message that was acknowledged before the broker stopped.`,
  );
  if (left.length > 0) printLeft(left, print);
  print("Not included: the configuration, users_file, TLS files and the folder quarantine.");
}

// In a restored log they are files again.
async function copyObjects(
  config: PulseConfig,
  target: BackupTarget,
  objects: WholeLog["objects"],
): Promise<void> {
  if (objects.length === 0) return;
  const store = await openObjectStore(config);
  if (store === undefined) throw new Error("no object storage is configured to copy segments from");
  const part = join(target.folder, "segment.part");
  try {
    for (const { object, path, bytes } of objects) {
      await fetchObject(store, { object, bytes }, part);
      await target.addFile(path, part, bytes);
    }
  } finally {
    store.close();
    await rm(part, { force: true });
  }
}

async function fetchObject(
  store: ColdStore,
  { object, bytes }: { object: string; bytes: number },
  path: string,
): Promise<void> {
  const file = await open(path, "w", 0o600);
  try {
    const memory = Buffer.allocUnsafeSlow(Math.min(bytes, FETCH_BYTES));
    for (let at = 0; at < bytes; at += FETCH_BYTES) {
      const part = memory.subarray(0, Math.min(bytes - at, FETCH_BYTES));
      await store.read(object, at, part);
      await file.writeFile(part);
    }
  } finally {
    await file.close();
  }
}

function sumUp(objects: readonly { bytes: number }[]) {
  return { segments: objects.length, bytes: objects.reduce((sum, { bytes }) => sum + bytes, 0) };
}

function printLeft(objects: WholeLog["objects"], print: (line: string) => void): void {
  const { segments, bytes } = sumUp(objects);
  print(`In object storage and not copied: ${formatCount(segments, "segment")}, ${bytes} bytes.`);
  for (const { object } of objects.slice(0, OBJECTS_SHOWN_MAX)) print(`  ${object}`);
  if (segments > OBJECTS_SHOWN_MAX) print(`  and ${segments - OBJECTS_SHOWN_MAX} more`);
  print("A restored log reads them there and never removes them; --include-offloaded copies them.");
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
  const offloaded = sumUp([...log.objects()]);
  return {
    mark: { topics, partitions, journal: { ...journal }, offloaded },
    bytes,
    files,
    release,
  };
}

function isInside(folder: string, parent: string): boolean {
  return `${resolve(folder)}${sep}`.startsWith(`${resolve(parent)}${sep}`);
}
