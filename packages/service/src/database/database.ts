// A declared database: opened when the service starts, migrated, queried with tagged templates.
import { AsyncLocalStorage } from "node:async_hooks";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Database as OpenDatabase } from "@platform/kernel/db";
import type { CompiledQuery, Kysely, QueryResult } from "kysely";
import { addTemplateFrame } from "../error/template-position.ts";
import { refuseGaps } from "./migration-names.ts";
import { readMigrationFolder, selectMigrations, type MigrationTexts } from "./migrations.ts";
import { buildStatement, readTemplate, type SqlArgument, type SqlPart } from "./sql.ts";

/** A row as the database returns it. */
export type Row = Record<string, unknown>;

/** Result of a statement that changes rows. */
export interface Changes {
  /** Number of rows that were inserted, updated or deleted. */
  readonly changes: number;
}

/**
 * Queries as template tags; values are bound parameters. The type of rows is the caller's claim; in service files without
 * one, `platform check` derives it from the migrations.
 *
 * ```ts
 * const note = await notes.one<Note>`select * from notes where id = ${id}`;
 * ```
 */
export interface Queries {
  /** The first row; undefined if there is none. */
  one<T extends object = Row>(
    strings: TemplateStringsArray | SqlPart,
    ...values: SqlArgument[]
  ): Promise<T | undefined>;
  /** All rows. Limit them in the statement. */
  all<T extends object = Row>(
    strings: TemplateStringsArray | SqlPart,
    ...values: SqlArgument[]
  ): Promise<T[]>;
  /** Executes a statement. A resolved promise means that its changes are on disk. */
  run(strings: TemplateStringsArray | SqlPart, ...values: SqlArgument[]): Promise<Changes>;
}

/** Options of a declared database. */
export interface DatabaseOptions {
  /** Name of the file; default: the declared name. A renamed declaration keeps its file with the old name here. */
  name?: string;
  /** Folder of `*.sql` files, or their texts by name; applied before the service is ready. */
  migrations?: string | URL | MigrationTexts;
  /** `postgres://…` or `sqlite:path`; default: the environment's DATABASE_URL, or a SQLite file in the data folder. */
  url?: string;
}

/** Place of the databases of a service. */
export interface DatabaseSettings {
  /** Value of DATABASE_URL. */
  readonly url: string | undefined;
  readonly dataFolder: string;
  /** Names of all databases of the service. */
  readonly declared: readonly string[];
  /** True in tests: all databases are in memory. */
  readonly inMemory: boolean;
  /** True starts without what a SQLite file has lost; default false. */
  readonly acceptLoss?: boolean;
}

type Tables = Record<string, never>;
type Executor = Pick<Kysely<Tables>, "executeQuery">;

interface Transaction {
  readonly executor: Executor;
  ended: boolean;
}

type CreateQuery = (text: string, values: unknown[]) => CompiledQuery;

const NAME = /^[a-z][a-z0-9_-]{0,62}$/;

/** Loads the modules that databases need; they are loaded with the first one otherwise. */
export const loadDatabases = () => import("./open.ts");

/** A database that was declared with `database()`. */
export class Database implements Queries {
  readonly name: string;
  readonly options: DatabaseOptions;
  readonly #readSettings: () => DatabaseSettings;
  readonly #current = new AsyncLocalStorage<Transaction>();
  #opened: Promise<OpenDatabase<Tables>> | undefined;
  /** Ends being the first process with the file. */
  #endFirst: (() => void) | undefined;
  /** Defined while a database is open. */
  #createQuery: CreateQuery | undefined;

  /** Throws a TypeError if the name is not allowed: it is the name of a file. */
  constructor(name: string, options: DatabaseOptions, readSettings: () => DatabaseSettings) {
    if (!NAME.test(name)) {
      throw new TypeError(
        `database "${name}": expected a lower-case name of letters, digits, - and _, up to 63 characters`,
      );
    }
    this.name = name;
    this.options = options;
    this.#readSettings = readSettings;
  }

  async one<T extends object = Row>(
    strings: TemplateStringsArray | SqlPart,
    ...values: SqlArgument[]
  ): Promise<T | undefined> {
    const { rows } = await this.#execute<T>("one", strings, values);
    return rows[0];
  }

  async all<T extends object = Row>(
    strings: TemplateStringsArray | SqlPart,
    ...values: SqlArgument[]
  ): Promise<T[]> {
    const { rows } = await this.#execute<T>("all", strings, values);
    return rows;
  }

  async run(strings: TemplateStringsArray | SqlPart, ...values: SqlArgument[]): Promise<Changes> {
    const result = await this.#execute("run", strings, values);
    return { changes: Number(result.numAffectedRows ?? 0n) };
  }

  /**
   * Runs `work` in a transaction: all queries of this database inside it belong to it, also those of functions that it
   * calls. An error rolls back and is thrown. After a conflict with another transaction `work` is repeated, so it must
   * have no effects except on the database. A transaction inside a transaction is a part of it.
   */
  async transaction<T>(work: (queries: Queries) => Promise<T>): Promise<T> {
    if (this.#current.getStore()?.ended === false) return work(this);
    const database = await this.open();
    return database.transaction(async (executor) => {
      const current: Transaction = { executor, ended: false };
      try {
        return await this.#current.run(current, () => work(this));
      } finally {
        current.ended = true;
      }
    });
  }

  /**
   * Opens and migrates the database; the first query does so too.
   * @internal
   */
  open(): Promise<OpenDatabase<Tables>> {
    return (this.#opened ??= this.#open());
  }

  /** The migrations in their order, without applying any. */
  async listMigrations(): Promise<{ id: string; isApplied: boolean }[]> {
    const database = await this.#connect();
    try {
      const steps = selectMigrations(this.#readMigrations() ?? {}, database.kind);
      const applied = await this.#readApplied(database);
      return steps.map(({ id }) => ({ id, isApplied: applied.has(id) }));
    } finally {
      await database.close();
      if (this.#opened === undefined) this.#releaseFile();
    }
  }

  /** Health check: undefined if the database responds. */
  async check(): Promise<string | undefined> {
    return (await this.open()).check();
  }

  /** Closes the database if it was opened; the next query opens it again. */
  async close(): Promise<void> {
    const opened = this.#opened;
    this.#opened = undefined;
    // The error of a failed opening was thrown to its callers.
    const database = await opened?.catch(() => undefined);
    await database?.close();
    this.#releaseFile();
  }

  async #open(): Promise<OpenDatabase<Tables>> {
    const database = await this.#connect();
    try {
      const texts = this.#readMigrations();
      if (texts !== undefined) {
        const steps = selectMigrations(texts, database.kind);
        const ids = steps.map(({ id }) => id);
        refuseGaps(ids, await this.#readApplied(database));
        await database.migrate(steps);
      }
      return database;
    } catch (error) {
      await database.close();
      this.#releaseFile();
      throw new Error(`database ${this.name}: ${(error as Error).message}`, { cause: error });
    }
  }

  async #connect(): Promise<OpenDatabase<Tables>> {
    const { CompiledQuery, openDatabase, ...renamed } = await loadDatabases();
    this.#createQuery = CompiledQuery.raw;
    const {
      url,
      inMemory,
      dataFolder: folder,
      declared,
      acceptLoss = false,
    } = this.#readSettings();
    const chosen = this.options.url ?? (inMemory ? "sqlite::memory:" : url);
    const { name } = this;
    const sqlite = { acceptLoss };
    if (chosen !== undefined) return openDatabase<Tables>({ url: chosen, service: name, sqlite });
    const file = join(folder, `${name}.sqlite`);
    const migrations = selectMigrations(this.#readMigrations() ?? {}, "sqlite");
    renamed.refuseRenamed({ name, folder, declared, migrations });
    renamed.adoptMigrations(name, file);
    // Pages have checksums only if one process writes them all the time.
    this.#endFirst ??= renamed.becomeFirst(file);
    const processes = this.#endFirst === undefined ? "many" : "guests";
    try {
      const url = `sqlite:${file}`;
      return openDatabase<Tables>({ url, service: name, sqlite: { ...sqlite, processes } });
    } catch (error) {
      this.#releaseFile();
      throw error;
    }
  }

  #releaseFile(): void {
    this.#endFirst?.();
    this.#endFirst = undefined;
  }

  #readMigrations(): MigrationTexts | undefined {
    const { migrations } = this.options;
    if (migrations === undefined) return undefined;
    if (migrations instanceof URL) return readMigrationFolder(fileURLToPath(migrations));
    return typeof migrations === "string" ? readMigrationFolder(migrations) : migrations;
  }

  async #execute<T>(
    method: "one" | "all" | "run",
    strings: TemplateStringsArray | SqlPart,
    parameters: SqlArgument[],
  ): Promise<QueryResult<T>> {
    const name = `${this.name}.${method}`;
    const part = readTemplate(name, strings, parameters);
    const opened = this.#opened ?? this.open();
    const { db, kind } = await opened;
    try {
      const { text, values } = buildStatement(part, kind);
      const query = this.#createQuery!(text, [...values]);
      return await (this.#findExecutor(db).executeQuery(query) as Promise<QueryResult<T>>);
    } catch (error) {
      addTemplateFrame(error, part.strings, name);
      throw error;
    }
  }

  #findExecutor(db: Executor): Executor {
    const transaction = this.#current.getStore();
    if (transaction === undefined) return db;
    if (!transaction.ended) return transaction.executor;
    throw new Error(`database ${this.name}: a query ran after its transaction; await it inside`);
  }

  /** Ids of applied migrations; none if the kernel's history does not exist yet. */
  async #readApplied({ db, kind }: OpenDatabase<Tables>): Promise<Set<string>> {
    const history = "platform_migrations";
    const tables = await db.introspection.getTables();
    if (!tables.some(({ name }) => name === history)) return new Set();
    const mark = kind === "postgres" ? "$1" : "?";
    const text = `select id from ${history} where scope = ${mark}`;
    const { rows } = await db.executeQuery<{ id: string }>(this.#createQuery!(text, [this.name]));
    return new Set(rows.map(({ id }) => id));
  }
}
