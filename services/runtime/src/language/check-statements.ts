// Statements of a service file: prepared on an in-memory database with the file's migrations, which also yields the types
// of their rows.
import { dirname, resolve } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { readMigrationFolder, selectMigrations } from "@platform/service/host";
import type { Compiled, Insertion } from "./compile.ts";
import type { StoreDeclaration } from "./declaration.ts";
import { describeRow, RowTypes } from "./row-type.ts";
import { findLineColumn, type SourceProblem } from "./source-problem.ts";
import type { SqlTemplate } from "./sql-template.ts";
import { findFolder } from "./verify.ts";

/** A compiled file. */
interface Program {
  readonly path: string;
  readonly source: string;
  readonly compiled: Compiled;
  /** Value of DATABASE_URL. */
  readonly databaseUrl: string | undefined;
}

/** Result of {@link checkStatements}. */
export interface CheckedStatements {
  readonly problems: readonly SourceProblem[];
  /** Type arguments of statements without one. */
  readonly rowTypes: readonly Insertion[];
}

type Report = (offset: number, message: string, severity?: SourceProblem["severity"]) => void;

/** A migrated database; the last `migrations` in the file may belong to it. */
interface Schema {
  readonly database: DatabaseSync;
  readonly types: RowTypes;
}

/**
 * Prepares the statements of databases whose migrations are a folder. Services of PostgreSQL are not checked: that would
 * need a server.
 */
export function checkStatements(program: Program): CheckedStatements {
  const { path, source, compiled, databaseUrl = "" } = program;
  const problems: SourceProblem[] = [];
  const report: Report = (offset, message, severity = "error") =>
    void problems.push({ path, ...findLineColumn(source, offset), severity, message });
  const rowTypes: Insertion[] = [];
  const databases = compiled.declarations.filter(({ kind }) => kind === "database");
  if (/^postgres(?:ql)?:/.test(databaseUrl) && compiled.statements.length > 0) {
    const at = databases[0]!.start;
    report(at, "statements are checked on SQLite only, and DATABASE_URL is PostgreSQL", "warning");
    return { problems, rowTypes };
  }
  for (const [index, declaration] of databases.entries()) {
    const schema = openSchema(program, declaration as StoreDeclaration, index === 0, report);
    if (schema === undefined) continue;
    for (const statement of compiled.statements) {
      if (statement.database !== (declaration as StoreDeclaration).name) continue;
      const type = checkStatement(statement, schema, source, report);
      if (type !== undefined) rowTypes.push({ at: statement.typeAt, text: `<${type}>` });
    }
    schema.database.close();
  }
  return { problems, rowTypes };
}

/** Applies the migrations of a database; undefined without a folder of them, or if one fails. */
function openSchema(
  { path, source, compiled }: Program,
  declaration: StoreDeclaration,
  isFirst: boolean,
  report: Report,
): Schema | undefined {
  const shared = compiled.declarations.find(({ kind }) => kind === "migrations");
  const found =
    (isFirst && shared && findFolder(shared, source)) || findFolder(declaration, source);
  if (found === undefined) return undefined;
  const database = new DatabaseSync(":memory:", { enableForeignKeyConstraints: false });
  let id = "";
  try {
    const texts = readMigrationFolder(resolve(dirname(path), found.folder));
    for (const migration of selectMigrations(texts, "sqlite")) {
      ({ id } = migration);
      for (const statement of migration.statements(undefined as never, "sqlite")) {
        database.exec(statement);
      }
    }
    return { database, types: new RowTypes(database) };
  } catch (error) {
    const { message } = error as Error;
    report(found.offset, id === "" ? message : `migration ${id}: ${message}`);
    database.close();
    return undefined;
  }
}

/** Reports a statement that cannot be prepared; returns the type of its rows where the author has written none. */
function checkStatement(
  statement: SqlTemplate,
  { database, types }: Schema,
  source: string,
  report: Report,
): string | undefined {
  const { text, method, isTyped, values } = statement;
  try {
    const columns = database.prepare(text).columns();
    if (method === "run" || isTyped) return undefined;
    return describeRow(columns, text, types);
  } catch (error) {
    const { message } = error as Error;
    // An expression may be a part of the statement, sql`…`, which the text here does not contain.
    if (values > 0 && message.startsWith('near "?"')) return undefined;
    report(findPlace(statement, source, message), message);
    return undefined;
  }
}

/** The offset of the name in a message of SQLite, or the start of the text. */
function findPlace({ textStart, textEnd }: SqlTemplate, source: string, message: string): number {
  const named = /near "([^"]+)"|(?:no such \w+|no column named|ambiguous column name):? (\S+)/;
  const [, near, name] = named.exec(message) ?? [];
  const word = near ?? name?.replace(/^.*\./, "");
  const text = source.slice(textStart, textEnd);
  const at =
    word === undefined ? -1 : text.search(new RegExp(`(?<!\\w)${RegExp.escape(word)}(?!\\w)`));
  const start = text.length - text.trimStart().length;
  return textStart + (at === -1 ? start : at);
}
