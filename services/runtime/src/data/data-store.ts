// Records about the data pages: the audit log of queries and changes, the history of statements, and saved queries.
import { randomBytes } from "node:crypto";
import { existsSync, mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { AuditLog, createAuditMigrations, type AuditTables } from "@platform/kernel/audit";
import { openDatabase, type Database, type Migration } from "@platform/kernel/db";
import { replaceFileSync } from "@platform/kernel/files";
import type { Clock } from "@platform/kernel/time";

/** Folder in the data directory. */
export const STORE_FOLDER = "console";
/** The database of the records. */
export const STORE_FILE = "console.sqlite";
/** The key of the audit log, beside its database: who can write the database cannot forge the log. */
const STORE_KEY = "audit.key";

const AUDIT_TABLE = "data_audit";
const KEY_BYTES = 32;
/** Statements that are kept per person. */
const HISTORY_MAX = 500;
/** Queries that are kept per database. */
const SAVED_MAX = 500;

/** A statement of the history. */
export interface HistoryRow {
  id: number;
  actor: string;
  project: string;
  db: string;
  sql_text: string;
  at: number;
}

/** A saved query. */
export interface SavedRow {
  project: string;
  db: string;
  name: string;
  sql_text: string;
  actor: string;
  at: number;
}

interface Tables {
  data_history: HistoryRow;
  data_queries: SavedRow;
}

const MIGRATIONS: readonly Migration[] = [
  ...createAuditMigrations(AUDIT_TABLE),
  {
    id: "0003-queries",
    statements: (t) => [
      `create table data_history (id ${t.integer} primary key, actor ${t.text} not null, project ${t.text} not null,
        db ${t.text} not null, sql_text ${t.text} not null, at ${t.integer} not null)`,
      "create index data_history_by_actor on data_history (actor, id)",
      `create table data_queries (project ${t.text} not null, db ${t.text} not null, name ${t.text} not null,
        sql_text ${t.text} not null, actor ${t.text} not null, at ${t.integer} not null, primary key (project, db, name))`,
    ],
  },
];

/** The records of a data directory. */
export class DataStore {
  readonly audit: AuditLog;
  readonly #database: Database<Tables>;
  readonly #clock: Clock;

  private constructor(database: Database<Tables>, key: Buffer, clock: Clock) {
    this.#database = database;
    this.#clock = clock;
    this.audit = new AuditLog({
      // The log knows its tables by their names.
      database: database as unknown as Database<AuditTables>,
      table: AUDIT_TABLE,
      clock,
      secret: key,
    });
  }

  /** Opens the records, which are created with the first use. */
  static async open(dataDir: string, clock: Clock): Promise<DataStore> {
    const folder = join(dataDir, STORE_FOLDER);
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    const key = readKey(join(folder, STORE_KEY));
    const url = `sqlite:${join(folder, STORE_FILE)}`;
    const database = openDatabase<Tables>({ url, service: "console" });
    await database.migrate(MIGRATIONS);
    return new DataStore(database, key, clock);
  }

  /** Adds a statement; the oldest of its author beyond 500 are forgotten, and one that is repeated is kept once. */
  async remember(entry: Omit<HistoryRow, "id" | "at">): Promise<void> {
    const { db } = this.#database;
    const own = db.selectFrom("data_history").where("actor", "=", entry.actor);
    const last = await own.selectAll().orderBy("id", "desc").limit(1).executeTakeFirst();
    if (
      last?.sql_text === entry.sql_text &&
      last.project === entry.project &&
      last.db === entry.db
    ) {
      return;
    }
    const { top } = await db
      .selectFrom("data_history")
      .select(({ fn }) => fn.max("id").as("top"))
      .executeTakeFirstOrThrow();
    const row = { ...entry, id: (top ?? 0) + 1, at: this.#clock.now() };
    await db.insertInto("data_history").values(row).execute();
    const oldest = await own
      .select("id")
      .orderBy("id", "desc")
      .offset(HISTORY_MAX)
      .limit(1)
      .executeTakeFirst();
    if (oldest === undefined) return;
    await db
      .deleteFrom("data_history")
      .where("actor", "=", entry.actor)
      .where("id", "<=", oldest.id)
      .execute();
  }

  /** The statements of a person on a database, newest first. */
  async listHistory(actor: string, project: string, name: string): Promise<HistoryRow[]> {
    return await this.#database.db
      .selectFrom("data_history")
      .selectAll()
      .where("actor", "=", actor)
      .where("project", "=", project)
      .where("db", "=", name)
      .orderBy("id", "desc")
      .execute();
  }

  /** Saved queries of a database. */
  async listSaved(project: string, name: string): Promise<SavedRow[]> {
    return await this.#database.db
      .selectFrom("data_queries")
      .selectAll()
      .where("project", "=", project)
      .where("db", "=", name)
      .orderBy("name")
      .limit(SAVED_MAX)
      .execute();
  }

  /** Saves a query under its name. */
  async save(row: Omit<SavedRow, "at">): Promise<void> {
    const value = { ...row, at: this.#clock.now() };
    await this.#database.db
      .insertInto("data_queries")
      .values(value)
      .onConflict((conflict) => conflict.columns(["project", "db", "name"]).doUpdateSet(value))
      .execute();
  }

  /** Removes a saved query; false if there is none. */
  async remove(project: string, db: string, name: string): Promise<boolean> {
    const { numDeletedRows } = await this.#database.db
      .deleteFrom("data_queries")
      .where("project", "=", project)
      .where("db", "=", db)
      .where("name", "=", name)
      .executeTakeFirstOrThrow();
    return numDeletedRows > 0n;
  }

  async close(): Promise<void> {
    await this.#database.close();
  }
}

function readKey(path: string): Buffer {
  if (!existsSync(path)) replaceFileSync(path, `${randomBytes(KEY_BYTES).toString("base64url")}\n`);
  return Buffer.from(readFileSync(path, "utf8").trim(), "base64url");
}
