// Schemas of databases: an in-memory database to which the migrations of a folder are applied, once per change of them.
import { readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { readMigrationFolder, selectMigrations } from "@platform/service/host";
import { RowTypes } from "./row-type.ts";

/** A migrated database. */
export interface Schema {
  readonly database: DatabaseSync;
  readonly types: RowTypes;
}

/** A schema, or the message about a migration that fails. */
export type SchemaResult = { readonly schema: Schema } | { readonly message: string };

interface Entry {
  readonly stamp: string;
  readonly result: SchemaResult;
}

const SCHEMAS_MAX = 64;

/** Schemas by folder. */
export class SchemaCache {
  readonly #entries = new Map<string, Entry>();

  /** Returns the schema of a folder; migrations are applied again if a file has changed. */
  open(folder: string): SchemaResult {
    const stamp = describeFiles(folder);
    const known = this.#entries.get(folder);
    if (known?.stamp === stamp) return known.result;
    this.#remove(folder);
    const oldest =
      this.#entries.size >= SCHEMAS_MAX ? this.#entries.keys().next().value : undefined;
    if (oldest !== undefined) this.#remove(oldest);
    const result = applyMigrations(folder);
    this.#entries.set(folder, { stamp, result });
    return result;
  }

  close(): void {
    for (const folder of this.#entries.keys()) this.#remove(folder);
  }

  #remove(folder: string): void {
    const result = this.#entries.get(folder)?.result;
    if (result !== undefined && "schema" in result) result.schema.database.close();
    this.#entries.delete(folder);
  }
}

/** Names, sizes and times of the files of a folder. */
function describeFiles(folder: string): string {
  try {
    const names = readdirSync(folder).filter((name) => name.endsWith(".sql"));
    const describe = (name: string): string => {
      const { size, mtimeMs, ino } = statSync(join(folder, name));
      return `${name} ${size} ${mtimeMs} ${ino}`;
    };
    return names.sort().map(describe).join("\n");
  } catch {
    // The read of the migrations reports it.
    return "unreadable";
  }
}

function applyMigrations(folder: string): SchemaResult {
  const database = new DatabaseSync(":memory:", { enableForeignKeyConstraints: false });
  let id = "";
  try {
    for (const migration of selectMigrations(readMigrationFolder(folder), "sqlite")) {
      ({ id } = migration);
      for (const statement of migration.statements(undefined as never, "sqlite")) {
        database.exec(statement);
      }
    }
    return { schema: { database, types: new RowTypes(database) } };
  } catch (error) {
    const { message } = error as Error;
    database.close();
    return { message: id === "" ? message : `migration ${id}: ${message}` };
  }
}
