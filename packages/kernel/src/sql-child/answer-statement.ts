// Answers one question: compiles the statement with its permissions, fills the tables that it reads, and runs it.
import { constants, type StatementSync } from "node:sqlite";
import { locateSyntaxError } from "./error-place.ts";
import type { Ask, ChildResponse, DatabaseOutline } from "./messages.ts";
import { openQuestionDatabase, type OpenDatabase, quoteName } from "./open-database.ts";
import type { SqlAnswer, SqlColumn, SqlValue } from "./question.ts";
import { readRows } from "./read-rows.ts";
import { SqlError } from "./sql-error.ts";
import { isBlank, isExplanation } from "./statement-text.ts";

/** The link to the service. */
export interface ServiceLink {
  send(response: ChildResponse): void;
  /** The next rows of the table that was requested with `fill`; `undefined` after the last ones. */
  receive(): Promise<readonly (readonly SqlValue[])[] | undefined>;
  /** True if the process should end: it keeps much memory, or gives way to all other work. */
  isSpent(): boolean;
}

// Result codes (https://sqlite.org/rescode.html)
const SQLITE_ERROR = 1;
const SQLITE_BUSY = 5;
const SQLITE_NOMEM = 7;
const SQLITE_TOOBIG = 18;
const SQLITE_CONSTRAINT = 19;
const SQLITE_MISMATCH = 20;
const SQLITE_AUTH = 23;
const SQLITE_RANGE = 25;
/** SQLITE_IOERR, SQLITE_CORRUPT, SQLITE_CANTOPEN, SQLITE_NOTADB */
const DAMAGE: ReadonlySet<number> = new Set([10, 11, 14, 26]);
/** SQLite's messages for statements that exceed a limit of its compiler. */
const TOO_COMPLEX = /too (?:many|large|complex)|parser stack overflow|pattern too complex/i;

/** Answers a question; the last message is `done` or `failed`. */
export async function answerStatement(ask: Ask, link: ServiceLink): Promise<void> {
  const begunMs = performance.now();
  let opened: OpenDatabase | undefined;
  try {
    requireSize(ask);
    const answered = await answerElsewhere(ask, link);
    if (answered !== undefined) {
      const elapsed = performance.now() - begunMs;
      link.send({ type: "done", isSpent: link.isSpent(), ...answered, elapsedMs: elapsed });
      return;
    }
    opened = openQuestionDatabase(ask.database as SqliteOutline, ask.limits);
    const { database } = opened;
    const { statement, trusted } = compile(opened, ask);
    await fillTables(opened, ask, trusted, link);
    const columns = describeColumns(statement, ask.database.kind);
    const isTruncated = readRows(statement, ask.parameters, ask.limits, (rows) => {
      link.send({ type: "rows", rows });
    });
    database.close();
    opened = undefined;
    const elapsedMs = performance.now() - begunMs;
    link.send({ type: "done", isSpent: link.isSpent(), columns, isTruncated, elapsedMs });
  } catch (error) {
    const { kind, message, limit, position } = explain(error, ask);
    const text = opened?.clean(message) ?? message;
    link.send({ type: "failed", isSpent: link.isSpent(), kind, message: text, limit, position });
  } finally {
    opened?.database.close();
  }
}

type SqliteOutline = Exclude<Ask["database"], { kind: "postgres" }>;

// Changes, and other databases: their modules are loaded with the first of them.
async function answerElsewhere(
  ask: Ask,
  link: ServiceLink,
): Promise<Omit<SqlAnswer, "rows" | "elapsedMs"> | undefined> {
  const send = (rows: SqlAnswer["rows"]): void => link.send({ type: "rows", rows });
  if (ask.database.kind === "postgres") {
    const { answerPostgres } = await import("./answer-postgres.ts");
    return answerPostgres(ask, ask.database.url, send);
  }
  if (ask.write === undefined) return undefined;
  if (ask.database.kind !== "file") throw new SqlError("forbidden", "Only SELECT is allowed.");
  const { changeFile } = await import("./change-file.ts");
  return changeFile(ask, ask.database.path, ask.write, send);
}

function requireSize({ sql, limits }: Ask): void {
  if (Buffer.byteLength(sql) <= limits.sqlBytes) return;
  throw new SqlError("limit", `The statement is longer than ${limits.sqlBytes} bytes.`, {
    limit: "statement",
  });
}

/** A compiled statement, and the switch that lets this program change the database below it. */
interface Compiled {
  readonly statement: StatementSync;
  readonly trusted: (work: () => void) => void;
}

function compile(
  { database, permissions }: OpenDatabase,
  { sql, database: { kind } }: Ask,
): Compiled {
  if (sql.includes("\0")) throw new SqlError("invalid", "The statement contains a NUL character.");
  if (isBlank(sql)) throw new SqlError("invalid", "The statement is empty.");
  if (kind !== "file" && isExplanation(sql)) {
    throw new SqlError("forbidden", "EXPLAIN is not available.");
  }
  let isTrusted = false;
  // Setting it a second time would compile the statement again.
  database.setAuthorizer((action, first, second, name, accessor) =>
    isTrusted || permissions({ action, first, second, database: name, accessor })
      ? constants.SQLITE_OK
      : constants.SQLITE_DENY,
  );
  const statement = database.prepare(sql);
  if (!isBlank(sql, statement.sourceSQL.length)) {
    throw new SqlError("forbidden", "Only one statement is allowed.");
  }
  if (statement.columns().length === 0) throw new SqlError("forbidden", "Only SELECT is allowed.");
  statement.setReturnArrays(true);
  statement.setReadBigInts(true);
  const trusted: Compiled["trusted"] = (work) => {
    isTrusted = true;
    try {
      work();
    } finally {
      isTrusted = false;
    }
  };
  return { statement, trusted };
}

function describeColumns(statement: StatementSync, kind: DatabaseOutline["kind"]): SqlColumn[] {
  return statement.columns().map(({ name, type }) => {
    return kind === "file" && type !== null ? { name, type } : { name };
  });
}

async function fillTables(
  { database, read }: OpenDatabase,
  { database: outline }: Ask,
  trusted: Compiled["trusted"],
  link: ServiceLink,
): Promise<void> {
  if (outline.kind !== "tables" || read.size === 0) return;
  trusted(() => database.exec("begin"));
  for (const { name, columns } of outline.tables.filter((table) => read.has(table.name))) {
    link.send({ type: "fill", table: name });
    const marks = columns.map(() => "?").join(", ");
    for (;;) {
      link.send({ type: "next" });
      const rows = await link.receive();
      if (rows === undefined) break;
      trusted(() => {
        const insert = database.prepare(`insert into ${quoteName(name)} values (${marks})`);
        for (const row of rows) insert.run(...row);
      });
    }
  }
  trusted(() => database.exec("commit"));
}

function explain(error: unknown, { sql, database: { kind }, write }: Ask): SqlError {
  if (error instanceof SqlError) return error;
  const message = error instanceof Error ? error.message : String(error);
  const code = (error as { errcode?: unknown } | undefined)?.errcode;
  if (typeof code !== "number")
    return new SqlError(isParameterError(error) ? "invalid" : "failed", message);
  const primary = code & 0xff;
  switch (primary) {
    case SQLITE_AUTH:
      // The message of SQLite names tables that the author of the statement shall not see.
      return new SqlError(
        "forbidden",
        kind === "file"
          ? write === undefined
            ? "Only reading is allowed."
            : "Only INSERT, UPDATE and DELETE on tables are allowed."
          : "Only SELECT on the listed views is allowed.",
      );
    case SQLITE_NOMEM:
      return new SqlError("limit", "The statement needs too much memory.", { limit: "memory" });
    case SQLITE_TOOBIG:
      return new SqlError("limit", "A value is too long.", { limit: "value" });
    case SQLITE_BUSY:
      return new SqlError("busy", "Another process is changing the database.");
    case SQLITE_ERROR:
    case SQLITE_CONSTRAINT:
    case SQLITE_MISMATCH:
    case SQLITE_RANGE:
      if (!TOO_COMPLEX.test(message)) {
        return new SqlError("invalid", message, { position: locateSyntaxError(sql, message) });
      }
      return new SqlError("limit", `The statement is too complex: ${message}.`, {
        limit: "complexity",
      });
    default:
      return new SqlError(DAMAGE.has(primary) ? "damaged" : "failed", message);
  }
}

// Of node:sqlite: a parameter that is missing, unknown, or of a type that SQLite does not have.
function isParameterError(error: unknown): boolean {
  const code = (error as { code?: unknown } | undefined)?.code;
  return typeof code === "string" && code.startsWith("ERR_INVALID_");
}
