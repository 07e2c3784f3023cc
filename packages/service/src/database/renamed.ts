// A database whose declaration was renamed: its file has the old name, and an empty one in its place would hide the data.
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { pathToFileURL } from "node:url";
import { checksumMigration, type Migration } from "@platform/kernel/db";

const ENDING = ".sqlite";

/** A declared database that has a file of its name. */
export interface NamedFile {
  name: string;
  folder: string;
  /** Names of all databases of the service. */
  declared: readonly string[];
  /** Empty if it has none. */
  migrations: readonly Migration[];
}

/**
 * Throws if the file does not exist, but one of a database that is no longer declared: with a migration in common, or, if
 * the database has no migrations, without any of its own. An empty file counts as existing.
 */
export function refuseRenamed({ name, folder, declared, migrations }: NamedFile): void {
  const file = join(folder, name + ENDING);
  if (existsSync(file) || !existsSync(folder)) return;
  const own = migrations.map(
    (migration) => `${migration.id} ${checksumMigration(migration, "sqlite")}`,
  );
  const old = readdirSync(folder)
    .filter((entry) => entry.endsWith(ENDING) && !declared.includes(entry.slice(0, -ENDING.length)))
    .map((entry) => join(folder, entry))
    .find((path) => {
      const applied = readApplied(path);
      if (applied === undefined) return false;
      return own.length === 0 ? applied.length === 0 : own.some((item) => applied.includes(item));
    });
  if (old === undefined) return;
  throw new Error(
    `${file} does not exist, but ${old}, which no database of the service has: if the database was renamed, rename the file while nothing uses it (mv ${old} ${file}); to start with an empty one, create it (touch ${file})`,
  );
}

/**
 * Gives the migrations of a renamed file to its new name, so that they are not applied again. Without effect unless all of
 * them belong to one other name.
 */
export function adoptMigrations(name: string, file: string): void {
  const old = findOwner(file);
  if (old === undefined || old === name) return;
  const database = new DatabaseSync(file, { timeout: 5_000 });
  try {
    database
      .prepare("update platform_migrations set scope = ? || substr(scope, ?)")
      .run(name, old.length + 1);
  } finally {
    database.close();
  }
}

// The name to which all migrations of a file belong.
function findOwner(file: string): string | undefined {
  return readFile(file, (database) => {
    if (!hasHistory(database)) return undefined;
    const rows = database.prepare("select distinct scope from platform_migrations").all();
    // A part of a service has a scope of its own: `notes/schedules`.
    const names = new Set(rows.map(({ scope }) => String(scope).split("/", 1)[0]!));
    return names.size === 1 ? [...names][0] : undefined;
  });
}

// Undefined for a file that is no database, or an empty one.
function readApplied(path: string): string[] | undefined {
  return readFile(path, (database) => {
    const [first] = database.prepare("select 1 from sqlite_master limit 1").all();
    if (first === undefined) return undefined;
    if (!hasHistory(database)) return [];
    // Those of parts, such as the leases of schedules, are the same in all services.
    const own = "select id, checksum from platform_migrations where instr(scope, '/') = 0";
    const rows = database.prepare(own).all();
    return rows.map(({ id, checksum }) => `${String(id)} ${String(checksum)}`);
  });
}

// Undefined if the file cannot be read as a database.
function readFile<T>(path: string, read: (database: DatabaseSync) => T): T | undefined {
  try {
    // Without a log the file is at rest: it can be read without leaving one.
    const url = pathToFileURL(path);
    if (!existsSync(`${path}-wal`)) url.searchParams.set("immutable", "1");
    const database = new DatabaseSync(url, { readOnly: true, timeout: 5_000 });
    try {
      return read(database);
    } finally {
      database.close();
    }
  } catch {
    return undefined;
  }
}

function hasHistory(database: DatabaseSync): boolean {
  const found = "select 1 from sqlite_master where type = 'table' and name = 'platform_migrations'";
  return database.prepare(found).get() !== undefined;
}
