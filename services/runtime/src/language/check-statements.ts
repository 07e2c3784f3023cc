// Statements of a file: prepared on an in-memory database with the migrations of its folder, which also yields the types
// of their rows.
import { dirname, resolve } from "node:path";
import type { Insertion } from "./declaration.ts";
import type { DatabaseBinding } from "./databases.ts";
import { checkInsert, describeString, isNumeric } from "./insert.ts";
import { describeRow } from "./row-type.ts";
import { SchemaCache, type Schema } from "./schema.ts";
import { findLineColumn, type SourceProblem } from "./source-problem.ts";
import type { SqlTemplate } from "./sql-template.ts";

/** A parsed file. */
interface Program {
  readonly path: string;
  readonly source: string;
  readonly databases: readonly DatabaseBinding[];
  readonly statements: readonly SqlTemplate[];
  /** Value of DATABASE_URL. */
  readonly databaseUrl: string | undefined;
}

/** Result of {@link checkStatements}. */
export interface CheckedStatements {
  readonly problems: readonly SourceProblem[];
  /** Type arguments of statements without one. */
  readonly rowTypes: readonly Insertion[];
  /** Names whose values are stored in integer columns; their types are not known here. */
  readonly integers: readonly IntegerValue[];
}

/** A name whose value is stored in an integer column. */
export interface IntegerValue {
  /** Offset of the last part of the name. */
  readonly nameAt: number;
  readonly column: string;
}

type Report = (offset: number, message: string, severity?: SourceProblem["severity"]) => void;

/**
 * Prepares the statements of databases whose migrations are a folder. Services of PostgreSQL are not checked: that would
 * need a server.
 */
export function checkStatements(program: Program, schemas = new SchemaCache()): CheckedStatements {
  const { path, source, databases, statements, databaseUrl = "" } = program;
  const problems: SourceProblem[] = [];
  const report: Report = (offset, message, severity = "error") =>
    void problems.push({ path, ...findLineColumn(source, offset), severity, message });
  const rowTypes: Insertion[] = [];
  const integers: IntegerValue[] = [];
  if (/^postgres(?:ql)?:/.test(databaseUrl) && statements.length > 0) {
    const at = databases[0]!.start;
    report(at, "statements are checked on SQLite only, and DATABASE_URL is PostgreSQL", "warning");
    return { problems, rowTypes, integers };
  }
  for (const { name, migrations } of databases) {
    if (migrations === undefined) continue;
    const opened = schemas.open(resolve(dirname(path), migrations.folder));
    if ("message" in opened) {
      report(migrations.offset, opened.message);
      continue;
    }
    for (const statement of statements) {
      if (statement.database !== name) continue;
      const before = problems.length;
      const type = checkStatement(statement, opened.schema, source, report);
      if (problems.length > before) continue;
      integers.push(...checkValues(statement, opened.schema, source, report));
      if (type !== undefined) rowTypes.push({ at: statement.typeAt, text: `<${type}>` });
    }
  }
  return { problems, rowTypes, integers };
}

/** Reports problems of an insert; returns the names whose values are stored in integer columns. */
function checkValues(
  { text, textStart, textEnd, values }: SqlTemplate,
  { database }: Schema,
  source: string,
  report: Report,
): IntegerValue[] {
  const { problems, integers } = checkInsert(text, database);
  for (const { at, message } of problems) {
    const found = source.slice(textStart, textEnd).indexOf(at);
    report(textStart + Math.max(0, found), message);
  }
  return integers.flatMap(({ value, column }): IntegerValue[] => {
    const node = values[value];
    if (node === undefined) return [];
    if (typeof node.value === "string" && !isNumeric(node.value)) {
      report(node.start, describeString(column));
    }
    const last = node.property ?? node;
    return last.type === "Identifier" ? [{ nameAt: last.start, column }] : [];
  });
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
    if (values.length > 0 && message.startsWith('near "?"')) return undefined;
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
