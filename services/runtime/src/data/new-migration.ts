// A statement about the schema as the file of a migration, which its author adds to the project.
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import type { SqlDialect } from "./dialect.ts";
import { readTokens } from "./sql-tokens.ts";

const FOLDER = "migrations";
const WORDS_MAX = 6;
/** Words of a statement that say nothing about it. */
const FILLERS: ReadonlySet<string> = new Set(
  "if not exists or replace temporary temp cascade restrict on to set".split(" "),
);

/** A file to add to a project. */
export interface NewMigration {
  /** Relative to the project's folder. */
  readonly path: string;
  readonly text: string;
}

/** Describes the next migration of a project with this statement. */
export async function describeMigration(
  folder: string,
  sql: string,
  dialect: SqlDialect,
  now: Date,
): Promise<NewMigration> {
  // Loaded on request: it is the larger part of what projects are made of.
  const { nameNextMigration, parseMigrationName } = await import("@platform/service/host");
  const path = join(folder, FOLDER);
  const files = existsSync(path) ? readdirSync(path).filter((name) => name.endsWith(".sql")) : [];
  const names = files.flatMap((file) => {
    try {
      return [parseMigrationName(file)];
    } catch {
      // The project says so when it starts.
      return [];
    }
  });
  const file = nameNextMigration(names, nameWords(sql, dialect), now);
  const text = `${sql.trim().replace(/;+$/, "")};\n`;
  return { path: `${FOLDER}/${file}`, text };
}

/** `create-table-tags` of `create table if not exists "Tags" (…)`. */
function nameWords(sql: string, dialect: SqlDialect): string {
  const words: string[] = [];
  for (const { kind, text } of readTokens(sql, dialect)) {
    if (words.length === WORDS_MAX || (kind === "sign" && text === "(")) break;
    if (kind !== "word" && kind !== "name") continue;
    const word = text.toLowerCase().replaceAll(/[^a-z0-9]/g, "");
    if (word !== "" && !FILLERS.has(word)) words.push(word.slice(0, 30));
  }
  return words.length === 0 ? "change" : words.join("-");
}
