// `platform backup`: saves a running platform to a folder.
import { existsSync } from "node:fs";
import { readdir } from "node:fs/promises";
import { join, resolve } from "node:path";
import {
  BackupError,
  BackupKey,
  createProgressPrinter,
  fetchBackup,
  formatCount,
  formatSize,
  readPassphrase,
  receiveBackup,
  writeBackup,
  type BackupManifest,
} from "@platform/kernel/backup";
import { systemClock } from "@platform/kernel/time";
import { readCredentials } from "../credentials/credentials.ts";
import { formatCommand, formatFolder } from "../data-folder/data-folder.ts";
import { noteBackup } from "../data-folder/last-backup.ts";
import { readRunning, type RunningState } from "../data-folder/running-file.ts";
import { BACKUP_TOKEN } from "../services/backup.ts";
import { findReport, formatListenerUrl, type ServiceEntry } from "../services/entry.ts";
import { BACKED_UP } from "../services/index.ts";
import { STORE_FOLDER } from "../data/data-store.ts";
import { VARIABLES_FOLDER } from "../projects/own-variables.ts";
import { RECORDS_FILE } from "../projects/records.ts";
import { addProjectDatabases } from "./project-databases.ts";

/** Version of the data directory as a whole, in the manifest of its backups. */
export const PLATFORM_DATA_FORMAT = 1;
/** Files of the data directory that belong to no service that sends its own backup. */
const OWN_FILES = ["credentials.env", "platform.json", RECORDS_FILE];
/** Configuration of the gateway, credentials and variables of projects, and the key of the audit log of their data. */
const FOLDERS = [
  { folder: "gate", file: /\.(?:json|pem|key|crt)$/ },
  { folder: "applications", file: /\.env$/ },
  { folder: STORE_FOLDER, file: /\.key$/ },
  { folder: VARIABLES_FOLDER, file: /\.(?:json|key)$/ },
];
/** Exit code after ctrl-c. */
const EXIT_INTERRUPTED = 130;

/** Options of {@link runBackup}. */
export interface BackupOptions {
  /** Folder of the backup; must be missing or empty. */
  folder: string;
  data: string;
  passphraseFile: string | undefined;
  version: string;
}

/** Saves the services in the order of `BACKED_UP`, and then the files of the platform itself. */
export async function runBackup(options: BackupOptions): Promise<number> {
  const startedMs = systemClock.monotonicMs();
  const data = resolve(options.data);
  const sources = findSources(data);
  const token = sources.length === 0 ? "" : await readToken(data);
  const passphrase =
    options.passphraseFile === undefined ? undefined : await readPassphrase(options.passphraseFile);
  const stop = new AbortController();
  // The incomplete folder is removed before the process exits.
  process.once("SIGINT", () => stop.abort());
  process.once("SIGTERM", () => stop.abort());
  const createKey = () => (passphrase === undefined ? undefined : BackupKey.create(passphrase));
  try {
    const manifest = await writeBackup(
      {
        folder: options.folder,
        service: "platform",
        version: options.version,
        dataFormat: PLATFORM_DATA_FORMAT,
        nowMs: systemClock.now(),
        key: await createKey(),
      },
      async (target) => {
        const marks: Record<string, BackupManifest["mark"]> = {};
        for (const { entry, url } of sources) {
          const folder = join(target.folder, entry.name);
          const { signal } = stop;
          const part = await receivePart(entry, {
            url,
            token,
            folder,
            key: await createKey(),
            signal,
          });
          target.addPart(entry.name, part);
          marks[entry.name] = { at: part.created_at, mark: part.mark };
        }
        for (const path of await listOwnFiles(data)) await target.addFile(path, join(data, path));
        await addProjectDatabases(data, target, print);
        return marks;
      },
    );
    const seconds = ((systemClock.monotonicMs() - startedMs) / 1000).toFixed(1);
    print(`${formatFolder(resolve(options.folder))}: complete, in ${seconds} s`);
    printContents(manifest, passphrase !== undefined);
    noteBackup(data, systemClock.now());
    return 0;
  } catch (error) {
    if (!stop.signal.aborted) throw error;
    process.stderr.write("platform: interrupted; the incomplete backup was removed\n");
    return EXIT_INTERRUPTED;
  }
}

interface Source {
  entry: ServiceEntry;
  url: string;
}

// A service that is not running would be missing in the backup.
function findSources(data: string): Source[] {
  const running = readRunning(data);
  if (running === undefined) {
    throw new BackupError(
      `the platform is not running with ${formatFolder(data)}: start it with "${formatCommand(data, "up")}", backups are taken from running services`,
    );
  }
  return BACKED_UP.flatMap((entry) => {
    const url = findUrl(data, entry, running);
    if (url !== undefined) return [{ entry, url }];
    if (!existsSync(join(data, entry.name))) return [];
    throw new BackupError(
      `${entry.label} is not running, but ${formatFolder(join(data, entry.name))} exists: start it, or move the folder away`,
    );
  });
}

function findUrl(
  data: string,
  entry: ServiceEntry,
  { services }: RunningState,
): string | undefined {
  const service = services.find(({ name }) => name === entry.name);
  if (service === undefined) return undefined;
  const listener = findReport(service.listeners, entry.backup!.listener);
  if (service.state === "running" && listener !== undefined) return formatListenerUrl(listener);
  throw new BackupError(
    `${entry.label} is ${service.state}: see "${formatCommand(data, `logs ${entry.label}`)}"`,
  );
}

async function readToken(data: string): Promise<string> {
  const token = process.env[BACKUP_TOKEN] || (await readCredentials(data)).get(BACKUP_TOKEN);
  if (token !== undefined) return token;
  throw new BackupError(
    `${formatFolder(join(data, "credentials.env"))} has no ${BACKUP_TOKEN}: restart the platform, which generates it`,
  );
}

interface PartOptions {
  url: string;
  token: string;
  folder: string;
  key: BackupKey | undefined;
  signal: AbortSignal;
}

async function receivePart(entry: ServiceEntry, options: PartOptions): Promise<BackupManifest> {
  const { folder, key } = options;
  const say = (text: string): void => print(`${entry.label}: ${text}`);
  say("saving");
  try {
    const { stream, bytesTotal } = await fetchBackup({ ...options, verifiesCertificate: false });
    const onProgress = createProgressPrinter(say);
    const manifest = await receiveBackup(
      { folder, service: entry.name, key, bytesTotal, onProgress },
      stream,
    );
    const bytes = manifest.files.reduce((sum, { size }) => sum + size, 0);
    say(`${formatCount(manifest.files.length, "file")}, ${formatSize(bytes)}`);
    return manifest;
  } catch (cause) {
    if (!(cause instanceof BackupError)) throw cause;
    throw new BackupError(`${entry.label}: ${cause.message}`, { cause });
  }
}

// Sockets, logs and locks are not part of a backup.
async function listOwnFiles(data: string): Promise<string[]> {
  const own = OWN_FILES.filter((path) => existsSync(join(data, path)));
  const lists = FOLDERS.map(({ folder, file }) => listFolder(data, folder, file));
  return [...own, ...(await Promise.all(lists)).flat()];
}

async function listFolder(data: string, folder: string, file: RegExp): Promise<string[]> {
  if (!existsSync(join(data, folder))) return [];
  const entries = await readdir(join(data, folder), { withFileTypes: true });
  return entries
    .filter((entry) => entry.isFile() && file.test(entry.name))
    .map(({ name }) => `${folder}/${name}`)
    .sort();
}

function printContents({ parts = [] }: BackupManifest, isEncrypted: boolean): void {
  const names = BACKED_UP.filter(({ name }) => parts.some(({ service }) => service === name)).map(
    ({ label }) => label,
  );
  print(`contains ${[...names, "credentials", "gateway configuration"].join(", ")}`);
  if (isEncrypted) return;
  print("it is not encrypted, and contains private keys: keep it where only you can read it");
}

function print(line: string): void {
  process.stdout.write(`${line}\n`);
}
