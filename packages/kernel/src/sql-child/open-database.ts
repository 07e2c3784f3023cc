// The database of a question, with the permissions of its statement.
import { randomBytes } from "node:crypto";
import { pathToFileURL } from "node:url";
import { DatabaseSync } from "node:sqlite";
import type { DatabaseOutline } from "./messages.ts";
import { type Permissions, permitReading, permitTables, permitViews } from "./permissions.ts";
import type { SqlLimits } from "./question.ts";

/** Time to wait for the lock of another process. */
const BUSY_MS = 1_000;
const LIMITS = {
  attach: 0,
  column: 2_000,
  compoundSelect: 100,
  exprDepth: 500,
  functionArg: 127,
  likePatternLength: 10_000,
  triggerDepth: 0,
  variableNumber: 1_000,
  // About 10 MB of instructions.
  vdbeOp: 250_000,
};

/** Depth of the triggers and foreign keys of a change. */
const TRIGGER_DEPTH = 100;

/** An open database. */
export interface OpenDatabase {
  readonly database: DatabaseSync;
  readonly permissions: Permissions;
  /** Names of the tables that the statements compiled so far read. */
  readonly read: ReadonlySet<string>;
  /** Removes secret names from a message. */
  readonly clean: (message: string) => string;
}

/** Opens the database of a question. Errors are those of SQLite. */
export function openQuestionDatabase(
  outline: Exclude<DatabaseOutline, { kind: "postgres" }>,
  limits: SqlLimits,
): OpenDatabase {
  switch (outline.kind) {
    case "views":
      return openViews(outline, limits);
    case "tables":
      return openTables(outline, limits);
    case "file":
      return {
        database: open(outline.path, limits),
        permissions: permitReading,
        read: new Set(),
        clean: (message) => message,
      };
    default:
      throw outline satisfies never;
  }
}

function openViews(
  { path, isSnapshot, views }: Extract<DatabaseOutline, { kind: "views" }>,
  limits: SqlLimits,
): OpenDatabase {
  const database = open(isSnapshot ? locateSnapshot(path) : path, limits);
  try {
    // A file that only this process has open needs no shared memory for its log.
    if (isSnapshot) database.exec("pragma locking_mode = exclusive");
    const others = listTables(database);
    const inner = `v${randomBytes(16).toString("hex")}_`;
    for (const { name, select } of views) {
      database.exec(`create temp view ${quoteName(inner + name)} as ${select}`);
      database.exec(
        `create temp view ${quoteName(name)} as select * from temp.${quoteName(inner + name)}`,
      );
    }
    return {
      database,
      permissions: permitViews(new Set(views.map(({ name }) => name)), inner, others),
      read: new Set(),
      clean: (message) => message.replaceAll(inner, ""),
    };
  } catch (error) {
    database.close();
    throw error;
  }
}

function openTables(
  { tables }: Extract<DatabaseOutline, { kind: "tables" }>,
  limits: SqlLimits,
): OpenDatabase {
  const database = open(":memory:", limits, false);
  const others = listTables(database);
  for (const { name, columns } of tables) {
    database.exec(`create table ${quoteName(name)} (${columns.map(quoteName).join(", ")})`);
  }
  const read = new Set<string>();
  return {
    database,
    permissions: permitTables(new Set(tables.map(({ name }) => name)), others, (name) =>
      read.add(name),
    ),
    read,
    clean: (message) => message,
  };
}

// In lower case, with the modules that have a table without a definition.
function listTables(database: DatabaseSync): Set<string> {
  const rows = database
    .prepare("select name from sqlite_schema union select name from pragma_module_list")
    .all();
  return new Set(rows.map((row) => String(row["name"]).toLowerCase()));
}

/** Quotes the name of a table or column. */
export function quoteName(name: string): string {
  return `"${name.replaceAll('"', '""')}"`;
}

/** Opens a file whose rows a statement changes. Its triggers and foreign keys run. */
export function openForChange(path: string, limits: SqlLimits): DatabaseSync {
  const database = open(path, limits, false, TRIGGER_DEPTH);
  database.exec("pragma foreign_keys = on; pragma synchronous = full");
  return database;
}

function open(
  location: string,
  limits: SqlLimits,
  readOnly = true,
  triggerDepth = LIMITS.triggerDepth,
): DatabaseSync {
  const database = new DatabaseSync(location, {
    readOnly,
    defensive: true,
    timeout: BUSY_MS,
    enableDoubleQuotedStringLiterals: false,
    limits: { ...LIMITS, triggerDepth, length: limits.valueBytes, sqlLength: limits.sqlBytes },
  });
  database.exec("pragma temp_store = memory");
  database.exec("pragma trusted_schema = off");
  return database;
}

function locateSnapshot(path: string): string {
  const url = pathToFileURL(path);
  if (process.platform !== "win32") url.searchParams.set("vfs", "unix-none");
  return url.href;
}
