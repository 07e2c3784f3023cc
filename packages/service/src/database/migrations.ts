// Migrations: the SQL files of a folder, in the order of their names.
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { DatabaseKind, Migration } from "@platform/kernel/db";
import { checkMigrationOrder, parseMigrationName } from "./migration-names.ts";
import { splitSql } from "./split-sql.ts";

/** SQL texts by file name; in programs built as one file. */
export type MigrationTexts = Readonly<Record<string, string>>;

const FILES_MAX = 9_999;

/** Reads the `*.sql` files of a folder. Throws if it is missing. */
export function readMigrationFolder(folder: string): MigrationTexts {
  let names: string[];
  try {
    names = readdirSync(folder).filter((name) => name.endsWith(".sql"));
  } catch (error) {
    throw new Error(`migrations: the folder ${folder} cannot be read`, { cause: error });
  }
  if (names.length > FILES_MAX) throw new Error(`migrations: ${folder} has too many files`);
  return Object.fromEntries(
    names.sort().map((name) => [name, readFileSync(join(folder, name), "utf8")]),
  );
}

/**
 * Selects the migrations of a database: `NAME.sqlite.sql` and `NAME.postgres.sql` replace `NAME.sql` on their database.
 * Throws an Error that names the file if a name or a text is invalid, or a number is used twice.
 */
export function selectMigrations(texts: MigrationTexts, kind: DatabaseKind): Migration[] {
  const names = Object.keys(texts).sort().map(parseMigrationName);
  checkMigrationOrder(names.toSorted((one, other) => one.number - other.number));
  return [...new Set(names.map(({ id }) => id))].map((id) => {
    const file = [`${id}.${kind}.sql`, `${id}.sql`].find((name) => Object.hasOwn(texts, name));
    if (file === undefined) {
      throw new Error(`migrations: ${id} has no ${id}.${kind}.sql and no ${id}.sql`);
    }
    const statements = splitFile(file, texts[file]!, kind);
    return { id, statements: () => statements };
  });
}

function splitFile(file: string, text: string, kind: DatabaseKind): readonly string[] {
  try {
    return splitSql(text, kind);
  } catch (error) {
    const { message } = error as SyntaxError;
    throw new Error(`migrations: ${file}: ${message}`, { cause: error });
  }
}
