// The data of projects: tables, rows, changes and statements, asked by child processes that start with the first question.
import { PlatformError, createRetryLaterError } from "@platform/kernel/errors";
import {
  SqlChildren,
  SqlError,
  type SqlAnswer,
  type SqlLimits,
  type SqlQuestion,
  type SqlValue,
} from "@platform/kernel/sql-child";
import type { Clock } from "@platform/kernel/time";
import { readTables } from "./catalogue.ts";
import { toText, type DataTable } from "./table.ts";
import {
  type Cell,
  fromCell,
  type InputCell,
  isInvalidText,
  markInvalidText,
  toCell,
  toInput,
} from "./cells.ts";
import { DataStore } from "./data-store.ts";
import type { IsHidden } from "./hidden-columns.ts";
import { KnownTables } from "./known-tables.ts";
import {
  findProjectDatabase,
  listMigrationFiles,
  listProjectDatabases,
  type ProjectDatabase,
  type ProjectPlace,
} from "./project-data.ts";
import { buildDelete, buildInsert, buildUpdate, requireEditable } from "./row-change.ts";
import {
  matchKey,
  type PageRequest,
  type Position,
  type PositionCell,
  RowQueries,
  type RowQuery,
} from "./row-query.ts";
import { bindParameters, locateFault, readKind, removeLiterals } from "./statement.ts";
import { describeMigration } from "./new-migration.ts";
import { explainSlowPage } from "./slow-page.ts";
import { markParameter, quoteName, type SqlDialect } from "./dialect.ts";

/** Limits of a question. */
const LIMITS: SqlLimits = {
  rows: 1_000,
  bytes: 8_388_608,
  shownBytes: 65_536,
  timeMs: 5_000,
  memoryBytes: 128 * 1024 ** 2,
  valueBytes: 64 * 1024 ** 2,
  sqlBytes: 1_048_576,
};
const CHILDREN = 4;
/** Questions of all people that wait for a child. */
const WAITING_MAX = 32;
const WAIT_MS = 10_000;
const BUSY_RETRY_S = 2;
/** Size of a value that is downloaded whole. */
const VALUE_BYTES_MAX = 32 * 1024 ** 2;

/** Allowed use of the data pages. */
export type DataMode = "off" | "read" | "edit";

/** Options of {@link DataService}. */
export interface DataServiceOptions {
  /** Places of a project's data. Throws 404 if there is no such project. */
  readonly findPlace: (project: string) => ProjectPlace;
  readonly dataDir: string;
  readonly clock: Clock;
  readonly mode: DataMode;
  readonly isHidden: IsHidden;
  /** True if the audit log has the values of changes. */
  readonly keepsValues: boolean;
  /** Time of a question in ms. Default: 5 000. */
  readonly questionMs?: number;
}

/** Names a database. */
export interface DatabaseName {
  readonly project: string;
  readonly database: string;
}

/** Names a table. */
export interface TableName extends DatabaseName {
  readonly table: string;
}

/** A row: its key, and its values in the order of the table's columns. */
export interface DataRow {
  readonly key: Record<string, Cell> | null;
  readonly values: Cell[];
}

/** A row with the query that has found it, and its place in the query's rows. */
interface FoundRow {
  readonly row: DataRow;
  readonly query: RowQuery;
  readonly place: number;
}

/** A page of rows. */
export interface RowPage {
  readonly items: DataRow[];
  readonly next: Position | undefined;
  readonly isTruncated: boolean;
}

/** Effect of a change of rows. */
export interface ChangeReport {
  readonly rows: number;
  /** As in `SqlChanges`. */
  readonly others: number | null;
  readonly isKept: boolean;
  readonly key: Record<string, Cell> | null;
}

/** A statement to run. */
export interface StatementRequest {
  readonly sql: string;
  readonly parameters: Readonly<Record<string, InputCell>>;
  readonly write: { readonly expected?: number | undefined } | undefined;
  readonly signal: AbortSignal;
}

/** Answers questions about the data of projects. */
export class DataService {
  readonly #options: DataServiceOptions;
  readonly #reads: SqlChildren;
  readonly #writes: SqlChildren;
  readonly #known: KnownTables;
  #store: Promise<DataStore> | undefined;

  constructor(options: DataServiceOptions) {
    this.#options = options;
    const limits = { ...LIMITS, timeMs: options.questionMs ?? LIMITS.timeMs };
    const shared = { limits, waitingMax: WAITING_MAX, waitMs: WAIT_MS };
    this.#reads = new SqlChildren({ ...shared, children: CHILDREN });
    this.#writes = new SqlChildren({ ...shared, children: 1 });
    this.#known = new KnownTables(options.clock);
  }

  /** Allowed use of the pages. */
  get mode(): DataMode {
    return this.#options.mode;
  }

  /** The records; they are opened with the first use. */
  openStore(): Promise<DataStore> {
    const { dataDir, clock } = this.#options;
    return (this.#store ??= DataStore.open(dataDir, clock));
  }

  /** The databases of a project, with their migrations as far as they can be read. */
  async listDatabases(project: string) {
    this.#requireMode("read");
    const place = this.#options.findPlace(project);
    const databases = listProjectDatabases(place);
    const files = databases.length === 1 ? listMigrationFiles(place) : undefined;
    return await Promise.all(
      databases.map(async (database) => {
        const name = { project, database: database.name };
        const bytes = database.bytes ?? (await this.#readSize(name));
        const applied = await this.#readMigrations(name);
        const waiting = files?.filter((id) => !applied.includes(id));
        return { database, bytes, applied, waiting };
      }),
    );
  }

  /** The dialect of a database. Throws 404 if there is none. */
  find({ project, database }: DatabaseName): ProjectDatabase {
    this.#requireMode("read");
    return findProjectDatabase(this.#options.findPlace(project), database);
  }

  /** The tables of a database, with the numbers of their rows. */
  async listTables(name: DatabaseName): Promise<DataTable[]> {
    return await this.#readTables(name, true);
  }

  /** A table. Throws 404 if there is none. */
  async readTable(name: TableName): Promise<DataTable> {
    const tables = await this.#readTables(name, false);
    const table = tables.find((one) => one.name === name.table);
    if (table !== undefined) return table;
    throw new PlatformError("not_found", `The database has no table ${name.table}.`);
  }

  /** A page of rows. */
  async readRows(name: TableName, request: PageRequest): Promise<RowPage> {
    this.#requireMode("read");
    const known = this.#known.find(nameTenant(name), name.table);
    if (known !== undefined) {
      try {
        return await this.#readPage(name, known, request);
      } catch (error) {
        if (!canBeOutdated(error)) throw error;
      }
    }
    return await this.#readPage(name, await this.readTable(name), request);
  }

  async #readPage(name: TableName, table: DataTable, request: PageRequest): Promise<RowPage> {
    const { dialect } = this.find(name);
    const queries = new RowQueries(table, dialect).page({ ...request, limit: request.limit + 1 });
    const found: FoundRow[] = [];
    let isTruncated = false;
    for (const query of queries) {
      const wanted = request.limit + 1 - found.length;
      if (wanted <= 0 || isTruncated) break;
      const answer = await this.#ask(name, query).catch((error: unknown) => {
        throw explainSlowPage(error, table, request);
      });
      isTruncated = answer.isTruncated;
      const rows = answer.rows.slice(0, wanted).map((row) => toRow(table, row, dialect));
      found.push(...rows.map((row, place) => ({ row, query, place })));
    }
    const items = found.slice(0, request.limit);
    const isLast = found.length <= request.limit && !isTruncated;
    const next = isLast ? undefined : await this.#locate(name, table, items.at(-1), request);
    return { items: items.map(({ row }) => row), next, isTruncated };
  }

  /** The position of a row. Undefined without a key, or with a value that is too long to continue behind it. */
  async #locate(
    name: TableName,
    table: DataTable,
    last: FoundRow | undefined,
    { sort }: PageRequest,
  ): Promise<Position | undefined> {
    if (last === undefined || last.row.key === null) return undefined;
    const { row, query, place } = last;
    const index = table.columns.findIndex(({ name: column }) => column === sort?.column);
    const cells = [...Object.values(row.key!), ...(index === -1 ? [] : [row.values[index]!])];
    const texts = cells.some(isInvalidText)
      ? await this.#ask(name, new RowQueries(table, "sqlite").bytes(query, sort?.column, place))
      : undefined;
    const values = cells.map((cell, at) =>
      isInvalidText(cell) ? readRaw(texts?.rows[0]?.[at]) : toInput(cell),
    );
    if (values.includes(undefined)) return undefined;
    const key = values.slice(0, Object.keys(row.key!).length) as PositionCell[];
    return { isNull: query.isNull, value: values[key.length] ?? null, key };
  }

  /** The row with a key; undefined if there is none. */
  async readRow(
    name: TableName,
    key: Readonly<Record<string, InputCell>>,
  ): Promise<DataRow | undefined> {
    const table = await this.readTable(name);
    const query = new RowQueries(table, this.find(name).dialect).row(key);
    const { rows } = await this.#ask(name, query);
    return rows[0] === undefined ? undefined : toRow(table, rows[0], this.find(name).dialect);
  }

  /** A whole value, also of a hidden column. Throws 404 if there is no such row, and 413 if it is too large. */
  async readValue(
    name: TableName,
    key: Readonly<Record<string, InputCell>>,
    column: string,
  ): Promise<SqlValue> {
    const table = await this.readTable(name);
    const { dialect } = this.find(name);
    if (!table.columns.some((one) => one.name === column)) {
      throw new PlatformError("not_found", `${table.name} has no column ${column}.`);
    }
    const parameters: SqlValue[] = [];
    const where = matchKey(table, dialect, key, parameters);
    const sql = `select ${quoteName(column)} from ${quoteName(table.name)} where ${where}`;
    const limits = { bytes: VALUE_BYTES_MAX, shownBytes: VALUE_BYTES_MAX };
    const { rows, isTruncated } = await this.#ask(name, { sql, parameters }, { limits });
    if (isTruncated) {
      throw new PlatformError("payload_too_large", `${column} has more than 32 MiB in this row.`);
    }
    const value = rows[0]?.[0];
    if (value === undefined) throw new PlatformError("not_found", "There is no such row.");
    return value as SqlValue;
  }

  /** Inserts a row. */
  async insert(
    name: TableName,
    values: Readonly<Record<string, InputCell>>,
  ): Promise<ChangeReport> {
    const { table, dialect } = await this.#prepareChange(name);
    return await this.#change(name, table, buildInsert(table, dialect, values), 1);
  }

  /** Changes a row. Throws 409 with the present one if it has other values than `before`. */
  async update(name: TableName, row: Parameters<typeof buildUpdate>[2]): Promise<ChangeReport> {
    const { table, dialect } = await this.#prepareChange(name);
    const report = await this.#change(name, table, buildUpdate(table, dialect, row), 1);
    if (!report.isKept) throw await this.#explainConflict(name, row.key);
    return report;
  }

  /** Deletes a row, or with `isTrial` counts the rows that fall with it. */
  async delete(
    name: TableName,
    row: Parameters<typeof buildDelete>[2],
    isTrial: boolean,
  ): Promise<ChangeReport> {
    const { table, dialect } = await this.#prepareChange(name);
    const statement = buildDelete(table, dialect, row);
    const report = await this.#change(name, table, statement, isTrial ? undefined : 1);
    if (report.rows !== 1) throw await this.#explainConflict(name, row.key);
    return report;
  }

  /** Runs a statement of a person. Throws 422 with the reason if the database refuses it. */
  async run(
    name: DatabaseName,
    { sql, parameters, write, signal }: StatementRequest,
  ): Promise<SqlAnswer> {
    const { dialect } = this.find(name);
    const kind = readKind(sql, dialect);
    if (kind === "schema") {
      const { folder } = this.#options.findPlace(name.project);
      const now = new Date(this.#options.clock.now());
      throw new PlatformError(
        "unprocessable",
        "Migrations own the schema: make a migration with this statement.",
        {
          fields: {
            reason: "schema",
            migration: await describeMigration(folder, sql, dialect, now),
          },
        },
      );
    }
    if (write !== undefined) this.#requireMode("edit");
    const values = Object.fromEntries(
      Object.entries(parameters).map(([key, value]) => [key, fromCell(value)]),
    );
    const locate = ({ message, position }: SqlError): number | null =>
      locateFault({ sql, dialect, message, position });
    return await this.#ask(name, bindParameters(sql, values, dialect), { write, signal, locate });
  }

  /** The plan of a statement, as lines with their depth. */
  async explain(
    name: DatabaseName,
    { sql, parameters, signal }: Omit<StatementRequest, "write">,
  ): Promise<{ depth: number; text: string }[]> {
    const { dialect } = this.find(name);
    const prefix = dialect === "sqlite" ? "explain query plan " : "explain ";
    const statement = { sql: `${prefix}${sql}`, parameters, write: undefined, signal };
    const answer = await this.run(name, statement).catch((error: unknown) => {
      throw moveFault(error, -prefix.length);
    });
    return dialect === "sqlite" ? readSqlitePlan(answer) : readPostgresPlan(answer);
  }

  /** The text of a statement for the audit log. */
  describe(name: DatabaseName, sql: string): string {
    return removeLiterals(sql, this.find(name).dialect);
  }

  /** Values of a change for the audit log; only names unless the operator wants the values. */
  describeValues(
    table: string,
    values: Readonly<Record<string, InputCell>>,
  ): Readonly<Record<string, unknown>> {
    const { keepsValues, isHidden } = this.#options;
    const names = Object.keys(values);
    if (!keepsValues) return { table, columns: names };
    const shown = names.filter((name) => !isHidden(name)).map((name) => [name, values[name]]);
    return { table, columns: names, values: Object.fromEntries(shown) };
  }

  /** Ends all questions. */
  async close(): Promise<void> {
    await Promise.all([this.#reads.close(), this.#writes.close()]);
    const store = await this.#store?.catch(() => undefined);
    await store?.close();
  }

  #requireMode(wanted: "read" | "edit"): void {
    const { mode } = this.#options;
    if (mode === "edit" || mode === wanted) return;
    throw new PlatformError(
      "forbidden",
      mode === "off"
        ? "Data pages are off: PLATFORM_RUNTIME_CONSOLE_DATA turns them on."
        : "Data can only be read: PLATFORM_RUNTIME_CONSOLE_DATA=edit allows changes.",
    );
  }

  async #readTables(name: DatabaseName, counts: boolean): Promise<DataTable[]> {
    const { dialect } = this.find(name);
    // A description that is cut could not be read.
    const limits = { rows: 100_000, shownBytes: LIMITS.bytes };
    const ask = (sql: string, parameters: readonly SqlValue[] = []): Promise<SqlAnswer> =>
      this.#ask(name, { sql, parameters }, { limits });
    const tables = await readTables(ask, dialect, { counts });
    const { isHidden } = this.#options;
    const shown = tables.map((table) => ({
      ...table,
      columns: table.columns.map((column) => ({ ...column, hidden: isHidden(column.name) })),
    }));
    this.#known.keep(nameTenant(name), shown);
    return shown;
  }

  async #readSize(name: DatabaseName): Promise<number | undefined> {
    const sql = "select pg_database_size(current_database())";
    const answer = await this.#ask(name, { sql, parameters: [] }).catch(() => undefined);
    return answer === undefined ? undefined : Number(answer.rows[0]?.[0]);
  }

  // There is no such table before the first migration.
  async #readMigrations(name: DatabaseName): Promise<string[]> {
    const { dialect } = this.find(name);
    const where = dialect === "sqlite" ? ` where scope = ${markParameter(dialect, 1)}` : "";
    const sql = `select id from platform_migrations${where} order by id`;
    const parameters = dialect === "sqlite" ? [name.database] : [];
    const answer = await this.#ask(name, { sql, parameters }).catch(() => undefined);
    return (answer?.rows ?? []).map(([id]) => toText(id));
  }

  async #prepareChange(name: TableName) {
    this.#requireMode("edit");
    const table = await this.readTable(name);
    requireEditable(table);
    return { table, dialect: this.find(name).dialect };
  }

  async #change(
    name: TableName,
    table: DataTable,
    statement: Pick<RowQuery, "sql" | "parameters">,
    expected: number | undefined,
  ): Promise<ChangeReport> {
    const { rows, changes } = await this.#ask(name, statement, { write: { expected } });
    const found = rows[0];
    const names = table.key ?? [];
    const key =
      found === undefined
        ? null
        : Object.fromEntries(names.map((column, index) => [column, toCell(found[index]!)]));
    return { ...changes!, key };
  }

  async #explainConflict(
    name: TableName,
    key: Readonly<Record<string, InputCell>>,
  ): Promise<PlatformError> {
    const present = await this.readRow(name, key);
    if (present === undefined) {
      return new PlatformError("conflict", "The row was deleted meanwhile.", {
        fields: { present: null },
      });
    }
    return new PlatformError("conflict", "The row was changed meanwhile.", {
      fields: { present: present.values },
    });
  }

  async #ask(
    name: DatabaseName,
    { sql, parameters }: { sql: string; parameters: readonly SqlValue[] },
    more: {
      write?: SqlQuestion["write"] | undefined;
      limits?: SqlQuestion["limits"];
      signal?: AbortSignal;
      /** The place of a fault in the text of its author. */
      locate?: (error: SqlError) => number | null;
    } = {},
  ): Promise<SqlAnswer> {
    const { target } = this.find(name);
    const { signal, write, limits } = more;
    const question = {
      tenant: nameTenant(name),
      sql,
      parameters,
      ...(write === undefined ? {} : { write }),
      ...(limits === undefined ? {} : { limits }),
    };
    const children = write === undefined ? this.#reads : this.#writes;
    try {
      return await children.ask(question, () => ({ database: target }), signal);
    } catch (error) {
      throw explain(error, more.locate);
    }
  }
}

function nameTenant({ project, database }: DatabaseName): string {
  return `${project}/${database}`;
}

/** True for an error that a column or table which is there no longer, or not yet, can have caused. */
function canBeOutdated(error: unknown): boolean {
  if (!(error instanceof PlatformError)) return false;
  return error.status === 400 || (error.status === 422 && error.fields["reason"] === "invalid");
}

function explain(error: unknown, locate?: (error: SqlError) => number | null): unknown {
  if (!(error instanceof SqlError)) return error;
  const { kind, message, limit } = error;
  const position = kind === "invalid" ? (locate?.(error) ?? null) : null;
  switch (kind) {
    case "busy":
      return createRetryLaterError("overloaded", message, BUSY_RETRY_S);
    case "damaged":
    case "failed":
      return new PlatformError("unavailable", `The database cannot be read: ${message}`, {
        cause: error,
      });
    case "invalid":
    case "forbidden":
    case "limit":
      return new PlatformError("unprocessable", message, {
        fields: {
          reason: kind,
          ...(limit === undefined ? {} : { limit }),
          ...(position === null ? {} : { position }),
        },
        cause: error,
      });
    default:
      return kind satisfies never;
  }
}

/** Moves the place of a fault by the length of a text that its author has not written. */
function moveFault(error: unknown, by: number): unknown {
  if (!(error instanceof PlatformError)) return error;
  const { position } = error.fields;
  if (typeof position !== "number") return error;
  return new PlatformError("unprocessable", error.message, {
    fields: { ...error.fields, position: Math.max(0, position + by) },
    cause: error,
  });
}

// The key comes first; each shown value is followed by the size of a long one.
function toRow(table: DataTable, values: SqlAnswer["rows"][number], dialect: SqlDialect): DataRow {
  const names = table.key ?? [];
  const format = (value: SqlAnswer["rows"][number][number]): Cell =>
    dialect === "sqlite" ? markInvalidText(toCell(value)) : toCell(value);
  const key = Object.fromEntries(names.map((name, index) => [name, format(values[index]!)]));
  return {
    key: table.key === null ? null : key,
    values: table.columns.map(({ hidden }, index) => {
      const at = names.length + 2 * index;
      const value = values[at]!;
      if (hidden) return value === null ? null : { hidden: true };
      const long = values[at + 1];
      return typeof long === "string" ? describeLong(long) : format(value);
    }),
  };
}

// `text 300000`
function describeLong(text: string): Cell {
  const [kind = "", bytes = ""] = text.split(" ");
  return kind === "blob" ? { blob: "", bytes: Number(bytes) } : { text: "", bytes: Number(bytes) };
}

function readRaw(value: unknown): PositionCell | undefined {
  if (!(value instanceof Uint8Array)) return undefined;
  return { raw: Buffer.from(value).toString("base64") };
}

function readSqlitePlan({ rows }: SqlAnswer): { depth: number; text: string }[] {
  const depths = new Map<unknown, number>([[0, -1]]);
  return rows.map(([id, parent, , detail]) => {
    const depth = (depths.get(parent) ?? -1) + 1;
    depths.set(id, depth);
    return { depth, text: toText(detail) };
  });
}

// `  ->  Index Scan …`; each level is indented by 6 characters.
function readPostgresPlan({ rows }: SqlAnswer): { depth: number; text: string }[] {
  return rows.map(([line]) => {
    const text = toText(line);
    const blanks = text.length - text.trimStart().length;
    return { depth: Math.ceil(blanks / 6), text: text.trim().replace(/^->\s*/, "") };
  });
}
