// Backups of identity: a copy of the database in use, and the secrets that it depends on.
import { existsSync } from "node:fs";
import { mkdir, mkdtemp, readdir, rm } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import { DatabaseSync } from "node:sqlite";
import {
  BackupError,
  createProgressPrinter,
  loadManifest,
  openSnapshotFile,
  readPassphrase,
  readSnapshotFile,
  restoreBackup,
  verifyBackup,
  type BackupManifest,
  type Snapshot,
} from "@platform/kernel/backup";
import { dumpDatabase, loadDump } from "@platform/kernel/db";
import type { AuthConfig } from "../config.ts";
import { DATA_FORMAT, type AuthDatabase } from "../database/schema.ts";

const SERVICE = "auth";
const DATABASE_FILE = "auth.db";
const DUMP_FILE = "auth.dump";
const SECRETS_FILE = "secrets.json";
/** Prefix of the folders with copies that are being sent. */
const STAGING_PREFIX = "backup-";
/** Tables of the service in a PostgreSQL database, which other programs may use as well. */
const TABLES = ["auth_*", "platform_migrations"];

/** Configuration keys that determine where the data is. */
export type AuthPlace = Pick<AuthConfig, "data_dir" | "database_url">;

/** Takes a snapshot of a running service. */
export async function takeAuthSnapshot(
  config: AuthPlace,
  database: AuthDatabase,
): Promise<Snapshot> {
  const { data_dir: dataDir } = config;
  await mkdir(dataDir, { recursive: true, mode: 0o700 });
  const staging = await mkdtemp(join(dataDir, STAGING_PREFIX));
  const release = () => rm(staging, { recursive: true, force: true });
  try {
    // Read before the copy, which therefore contains at least these events.
    const mark = { database: database.kind, audit_events: await readAuditEnd(database) };
    const name = database.kind === "sqlite" ? DATABASE_FILE : DUMP_FILE;
    const file = join(staging, name);
    await dumpDatabase({ url: findDatabaseUrl(config), file, tables: TABLES });
    const files = [await openSnapshotFile(name, file)];
    const secrets = await readSnapshotFile(SECRETS_FILE, join(dataDir, SECRETS_FILE));
    if (secrets !== undefined) files.push(secrets);
    return { mark, bytes: files.reduce((sum, { bytes }) => sum + bytes, 0), files, release };
  } catch (error) {
    await release();
    throw error;
  }
}

/** Removes copies that a killed process has left. */
export async function clearStaging({ data_dir: dataDir }: AuthPlace): Promise<void> {
  if (!existsSync(dataDir)) return;
  for (const name of await readdir(dataDir)) {
    const isCopy = name.startsWith(STAGING_PREFIX) && name.length === STAGING_PREFIX.length + 6;
    if (isCopy) await rm(join(dataDir, name), { recursive: true, force: true });
  }
}

/** Options of `restoreAuth`. */
export interface RestoreAuthOptions {
  /** Folder of the backup. */
  folder: string;
  passphrase_file?: string | undefined;
  /** Only verifies the backup. */
  dry_run: boolean;
}

/**
 * Restores a backup to the configured data folder, which must be missing or empty, and on PostgreSQL to the configured
 * database, which must not have tables of the service.
 */
export async function restoreAuth(
  config: AuthPlace,
  options: RestoreAuthOptions,
  print: (line: string) => void,
): Promise<void> {
  const { folder, passphrase_file: file } = options;
  const source = {
    folder,
    service: SERVICE,
    dataFormats: { oldest: 1, newest: DATA_FORMAT },
    passphrase: file === undefined ? undefined : await readPassphrase(file),
    onProgress: createProgressPrinter(print),
  };
  if (options.dry_run) {
    const manifest = await verifyBackup(source);
    requireSameDatabase(config, manifest);
    print(`${folder}: intact, ${manifest.files.length} files of ${manifest.created_at}.`);
    return;
  }
  requireSameDatabase(config, await loadManifest(folder));
  await mkdir(dirname(resolve(config.data_dir)), { recursive: true, mode: 0o700 });
  const { created_at } = await restoreBackup({
    ...source,
    target: config.data_dir,
    check: (restored) => checkRestored(config, restored, print),
  });
  print(`${config.data_dir}: restored from the backup of ${created_at}.`);
}

async function checkRestored(
  config: AuthPlace,
  restored: string,
  print: (line: string) => void,
): Promise<void> {
  const dump = join(restored, DUMP_FILE);
  if (!existsSync(dump)) {
    checkDatabase(join(restored, DATABASE_FILE));
    return;
  }
  print("loading the database");
  await loadDump({ url: findDatabaseUrl(config), file: dump });
  await rm(dump);
}

function checkDatabase(path: string): void {
  const database = new DatabaseSync(path);
  try {
    const verdict = database.prepare("pragma quick_check").get()?.["quick_check"];
    if (verdict === "ok") return;
    throw new BackupError(`the restored database is damaged: ${String(verdict)}`);
  } finally {
    database.close();
  }
}

// Before anything is written: a copy of SQLite cannot be loaded into PostgreSQL, nor the other way round.
function requireSameDatabase(config: AuthPlace, { files }: BackupManifest): void {
  const url = config.database_url;
  const isDump = files.some(({ path }) => path === DUMP_FILE);
  if (isDump && url?.startsWith("postgres") !== true) {
    throw new BackupError("the backup is of a PostgreSQL database: set database_url");
  }
  if (!isDump && url !== undefined) {
    throw new BackupError(
      `the backup is of a SQLite database, which is restored to ${DATABASE_FILE} in the data folder: unset database_url`,
    );
  }
}

function findDatabaseUrl({ data_dir: dataDir, database_url: url }: AuthPlace): string {
  return url ?? `sqlite:${join(dataDir, DATABASE_FILE)}`;
}

async function readAuditEnd(database: AuthDatabase): Promise<number> {
  const row = await database.db.selectFrom("auth_audit_head").select("seq").executeTakeFirst();
  return row?.seq ?? 0;
}
