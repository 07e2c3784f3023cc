// `platform restore`: restores a backup of the whole platform to an empty data directory.
import { spawn } from "node:child_process";
import { mkdir } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import {
  BackupError,
  createProgressPrinter,
  loadManifest,
  readPassphrase,
  requireVacant,
  restoreBackup,
  verifyBackup,
  type BackupManifest,
} from "@platform/kernel/backup";
import { systemClock } from "@platform/kernel/time";
import { formatCommand, formatFolder } from "../data-folder/data-folder.ts";
import { BACKED_UP } from "../services/index.ts";
import type { ServiceEntry } from "../services/entry.ts";
import { readLines } from "../supervisor/line-splitter.ts";
import { PLATFORM_DATA_FORMAT } from "./backup.ts";

/** Options of {@link runRestore}. */
export interface RestoreOptions {
  /** Folder of the backup. */
  folder: string;
  /** Data directory to create; must be missing or empty. */
  data: string;
  passphraseFile: string | undefined;
  dryRun: boolean;
}

/**
 * Verifies the backup and all its parts, each with the program of its service; then restores them next to the data
 * directory, and renames that folder. Nothing is left behind if a step fails.
 */
export async function runRestore(options: RestoreOptions): Promise<number> {
  const startedMs = systemClock.monotonicMs();
  const folder = resolve(options.folder);
  const target = resolve(options.data);
  const { passphraseFile } = options;
  const source = {
    folder,
    service: "platform",
    dataFormats: { oldest: 1, newest: PLATFORM_DATA_FORMAT },
    onProgress: createProgressPrinter(print),
  };
  if (!options.dryRun) await requireVacant(target);
  const passphrase =
    passphraseFile === undefined ? undefined : await readPassphrase(passphraseFile);
  const parts = findParts(await explainPart(folder));
  const manifest = await verifyBackup(source);
  for (const entry of parts) await runPart(entry, options, join(folder, entry.name), undefined);
  if (options.dryRun) {
    print(`${formatFolder(folder)}: intact, of ${manifest.created_at}`);
    return 0;
  }
  await mkdir(dirname(target), { recursive: true, mode: 0o700 });
  await restoreBackup({
    ...source,
    passphrase,
    target,
    check: async (restored) => {
      for (const entry of putStorageLast(parts)) {
        await runPart(entry, options, join(folder, entry.name), join(restored, entry.name));
      }
    },
  });
  const seconds = ((systemClock.monotonicMs() - startedMs) / 1000).toFixed(1);
  print(`${formatFolder(target)}: restored the backup of ${manifest.created_at}, in ${seconds} s`);
  print(`start it with: ${formatCommand(target, "up")}`);
  return 0;
}

// A backup of a single service is restored by the service's own program.
async function explainPart(folder: string): Promise<BackupManifest> {
  const manifest = await loadManifest(folder);
  const entry = BACKED_UP.find(({ name }) => name === manifest.service);
  if (entry === undefined) return manifest;
  throw new BackupError(
    `${formatFolder(folder)} is a backup of ${entry.label} alone: restore the folder above it`,
  );
}

function findParts({ parts = [] }: BackupManifest): ServiceEntry[] {
  return parts.map((part) => {
    const entry = BACKED_UP.find(({ name }) => name === part.folder && name === part.service);
    if (entry !== undefined) return entry;
    throw new BackupError(`this version does not have the service ${part.service} of the backup`);
  });
}

// Storage may be restored to drives outside the data directory, which stay as they are if a later part fails.
function putStorageLast(parts: readonly ServiceEntry[]): ServiceEntry[] {
  return parts.toSorted(
    (one, other) => Number(one.name === "vault") - Number(other.name === "vault"),
  );
}

// Without a target only verifies.
async function runPart(
  entry: ServiceEntry,
  { passphraseFile }: RestoreOptions,
  folder: string,
  target: string | undefined,
): Promise<void> {
  const args = ["restore", folder];
  if (target === undefined) args.push("--dry-run");
  if (passphraseFile !== undefined) args.push("--passphrase-file", resolve(passphraseFile));
  const dataDir = `PLATFORM_${entry.name.toUpperCase()}_DATA_DIR`;
  const child = spawn(process.execPath, [fileURLToPath(entry.main), ...args], {
    // No configuration file of another program is in this folder.
    cwd: folder,
    env: { ...process.env, ...(target === undefined ? {} : { [dataDir]: target }) },
    stdio: ["ignore", "pipe", "pipe"],
  });
  const problems: string[] = [];
  readLines(child.stdout, (line) => print(`${entry.label}: ${shorten(line, target ?? folder)}`));
  readLines(child.stderr, (line) => problems.push(line.replace(/^platform-\w+: /, "")));
  const code = await new Promise<number | null>((resolve, reject) => {
    child.once("error", reject);
    child.once("close", resolve);
  });
  if (code === 0) return;
  throw new BackupError(`${entry.label}: ${problems.join("\n") || `exit code ${code}`}`);
}

// The program of a service begins its lines with the folder, which has a temporary name here.
function shorten(line: string, folder: string): string {
  return line.startsWith(folder) ? line.slice(line.indexOf(": ") + 2) : line;
}

function print(line: string): void {
  process.stdout.write(`${line}\n`);
}
