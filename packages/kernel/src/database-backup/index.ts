// Backups of services whose state is one database: a copy of it while it is in use, and the files that it depends on. Apart
// from `backup`, so that services without such a database do not load the libraries of databases.
import { existsSync } from "node:fs";
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import { DatabaseSync } from "node:sqlite";
import {
  BackupError,
  createProgressPrinter,
  formatCount,
  loadManifest,
  openSnapshotFile,
  readPassphrase,
  readSnapshotFile,
  restoreBackup,
  verifyBackup,
  type BackupManifest,
  type Snapshot,
} from "../backup/index.ts";
import {
  dumpDatabase,
  loadDump,
  openDatabase,
  readHistory,
  writeHistory,
  type AppliedMigration,
  type Database,
} from "../db/index.ts";

/** Prefix of the folders with copies that are being sent. */
const STAGING_PREFIX = "backup-";
const STAGING_SUFFIX_LENGTH = 6;
/** The service's migrations, which share a table with those of other services in the same PostgreSQL database. */
const HISTORY_FILE = "migrations.json";

/** A service and the place of its data. */
export interface DatabaseState {
  /** Short name of the service: its tables begin with `<service>_`, and its SQLite file is `<service>.db`. */
  service: string;
  /** Version of the tables, in the manifest of backups. Backups of newer versions are rejected. */
  dataFormat: number;
  dataDir: string;
  /** As for `openDatabase`; undefined for SQLite in the data folder. */
  databaseUrl: string | undefined;
  /** Files of the data folder that the database depends on, such as keys; missing ones are left out. */
  files?: readonly string[];
}

/** Takes a snapshot of a running service. `mark` describes everything that is certainly in it. */
export async function takeDatabaseSnapshot<Tables>(
  state: DatabaseState,
  database: Pick<Database<Tables>, "kind" | "db">,
  mark: Readonly<Record<string, string | number>> = {},
): Promise<Snapshot> {
  const { dataDir, files: names = [] } = state;
  await mkdir(dataDir, { recursive: true, mode: 0o700 });
  const staging = await mkdtemp(join(dataDir, STAGING_PREFIX));
  const release = () => rm(staging, { recursive: true, force: true });
  try {
    const copies = await copyDatabase(state, database, staging);
    const files = await Promise.all(
      copies.map((name) => openSnapshotFile(name, join(staging, name))),
    );
    for (const name of names) {
      const file = await readSnapshotFile(name, join(dataDir, name));
      if (file !== undefined) files.push(file);
    }
    const bytes = files.reduce((sum, file) => sum + file.bytes, 0);
    return { mark: { database: database.kind, ...mark }, bytes, files, release };
  } catch (error) {
    await release();
    throw error;
  }
}

/** Removes copies that a killed process has left. */
export async function clearDatabaseCopies({
  dataDir,
}: Pick<DatabaseState, "dataDir">): Promise<void> {
  if (!existsSync(dataDir)) return;
  for (const name of await readdir(dataDir)) {
    const { length } = STAGING_PREFIX;
    const isCopy =
      name.startsWith(STAGING_PREFIX) && name.length === length + STAGING_SUFFIX_LENGTH;
    if (isCopy) await rm(join(dataDir, name), { recursive: true, force: true });
  }
}

/** Options of `restoreDatabaseBackup`, as `createRestoreKeys` of the configuration names them. */
export interface RestoreDatabaseOptions {
  /** Folder of the backup. */
  folder: string;
  passphrase_file?: string | undefined;
  /** Only verifies the backup. */
  dry_run: boolean;
}

/**
 * Restores a backup to the data folder, which must be missing or empty, and on PostgreSQL to the database, which must not
 * have tables of the service.
 */
export async function restoreDatabaseBackup(
  state: DatabaseState,
  options: RestoreDatabaseOptions,
  print: (line: string) => void,
): Promise<void> {
  const { folder, passphrase_file: file } = options;
  const source = {
    folder,
    service: state.service,
    dataFormats: { oldest: 1, newest: state.dataFormat },
    passphrase: file === undefined ? undefined : await readPassphrase(file),
    onProgress: createProgressPrinter(print),
  };
  if (options.dry_run) {
    const manifest = await verifyBackup(source);
    requireSameDatabase(state, manifest);
    print(
      `${folder}: intact, ${formatCount(manifest.files.length, "file")} of ${manifest.created_at}.`,
    );
    return;
  }
  requireSameDatabase(state, await loadManifest(folder));
  await mkdir(dirname(resolve(state.dataDir)), { recursive: true, mode: 0o700 });
  const { created_at } = await restoreBackup({
    ...source,
    target: state.dataDir,
    check: (restored) => activate(state, restored, print),
  });
  print(`${state.dataDir}: restored from the backup of ${created_at}.`);
}

// Returns the names of the copies.
async function copyDatabase<Tables>(
  state: DatabaseState,
  { kind, db }: Pick<Database<Tables>, "kind" | "db">,
  staging: string,
): Promise<string[]> {
  const { service } = state;
  const name = kind === "sqlite" ? nameFile(state) : nameDump(state);
  const url = findUrl(state);
  await dumpDatabase({ url, file: join(staging, name), tables: [`${service}_*`] });
  if (kind === "sqlite") return [name];
  const history = await readHistory(db, service);
  await writeFile(join(staging, HISTORY_FILE), JSON.stringify(history), { mode: 0o600 });
  return [name, HISTORY_FILE];
}

async function activate(
  state: DatabaseState,
  restored: string,
  print: (line: string) => void,
): Promise<void> {
  const dump = join(restored, nameDump(state));
  if (!existsSync(dump)) {
    checkDatabase(join(restored, nameFile(state)));
    return;
  }
  print("loading the database");
  const url = findUrl(state);
  await loadDump({ url, file: dump });
  await rm(dump);
  const history = join(restored, HISTORY_FILE);
  // Earlier backups have the whole table of migrations in their dump.
  if (!existsSync(history)) return;
  const database = openDatabase<Record<never, never>>({ url, service: state.service });
  try {
    const applied = JSON.parse(await readFile(history, "utf8")) as AppliedMigration[];
    await writeHistory(database, applied);
  } finally {
    await database.close();
  }
  await rm(history);
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
function requireSameDatabase(state: DatabaseState, { files }: BackupManifest): void {
  const { databaseUrl: url } = state;
  const isDump = files.some(({ path }) => path === nameDump(state));
  if (isDump && url?.startsWith("postgres") !== true) {
    throw new BackupError("the backup is of a PostgreSQL database: set database_url");
  }
  if (!isDump && url !== undefined) {
    throw new BackupError(
      `the backup is of a SQLite database, which is restored to ${nameFile(state)} in the data folder: unset database_url`,
    );
  }
}

function findUrl(state: DatabaseState): string {
  return state.databaseUrl ?? `sqlite:${join(state.dataDir, nameFile(state))}`;
}

function nameFile({ service }: DatabaseState): string {
  return `${service}.db`;
}

function nameDump({ service }: DatabaseState): string {
  return `${service}.dump`;
}
