// The databases of a project: SQLite files in its data folder, or the PostgreSQL of its DATABASE_URL.
import { existsSync, readdirSync, statSync } from "node:fs";
import { basename, join, resolve } from "node:path";
import { PlatformError } from "@platform/kernel/errors";
import type { SqlDatabase } from "@platform/kernel/sql-child";
import { listDatabases } from "../projects/former-databases.ts";
import type { SqlDialect } from "./dialect.ts";

/** Places of a project's data. */
export interface ProjectPlace {
  /** Folder of the project. */
  readonly folder: string;
  /** Folder of its SQLite files. */
  readonly dataFolder: string;
  /** Its DATABASE_URL. */
  readonly url: string | undefined;
}

/** A database of a project. */
export interface ProjectDatabase {
  /** Name of the file without its ending, or `postgres`. */
  readonly name: string;
  readonly dialect: SqlDialect;
  readonly target: SqlDatabase;
  /** Undefined for PostgreSQL. */
  readonly bytes: number | undefined;
}

const ENDING = ".sqlite";
const POSTGRES = "postgres";

/** Lists the databases; the one that DATABASE_URL names comes first. */
export function listProjectDatabases({ folder, dataFolder, url }: ProjectPlace): ProjectDatabase[] {
  const files = existsSync(dataFolder) ? listDatabases(dataFolder) : [];
  const found = files.map((file) => describeFile(join(dataFolder, file)));
  if (url === undefined || url === "") return found;
  if (!url.startsWith("sqlite:")) {
    const target = { kind: "postgres", url } as const;
    return [{ name: POSTGRES, dialect: "postgres", target, bytes: undefined }, ...found];
  }
  const path = resolve(folder, url.slice("sqlite:".length));
  return existsSync(path) && statSync(path).isFile() ? [describeFile(path), ...found] : found;
}

/** Finds a database. Throws 404 if there is none. */
export function findProjectDatabase(place: ProjectPlace, name: string): ProjectDatabase {
  const found = listProjectDatabases(place).find((one) => one.name === name);
  if (found === undefined) {
    throw new PlatformError("not_found", `The project has no database ${name}.`);
  }
  return found;
}

/** Names of the migrations in the project's folder `migrations`, without their endings. Undefined if there is none. */
export function listMigrationFiles({ folder }: ProjectPlace): string[] | undefined {
  const path = join(folder, "migrations");
  if (!existsSync(path)) return undefined;
  const names = readdirSync(path).filter((name) => name.endsWith(".sql"));
  const ids = names.map((name) => name.replace(/(?:\.(?:sqlite|postgres))?\.sql$/, ""));
  return [...new Set(ids)].toSorted();
}

function describeFile(path: string): ProjectDatabase {
  const bytes = [path, `${path}-wal`].reduce(
    (sum, one) => sum + (statSync(one, { throwIfNoEntry: false })?.size ?? 0),
    0,
  );
  const name = basename(path, ENDING);
  return { name, dialect: "sqlite", target: { kind: "file", path }, bytes };
}
