// Pages of rows: sorted by one column and the key, continued behind the last row of the page before.
//
//   asc on SQLite, desc on PostgreSQL      rows without a value ─► rows with one
//   desc on SQLite, asc on PostgreSQL      rows with a value ─► rows without one
//
// The two parts are queries of their own, in the order of the database's indexes, which each of them can use.
import { PlatformError } from "@platform/kernel/errors";
import type { SqlValue } from "@platform/kernel/sql-child";
import { z } from "zod";
import type { DataTable } from "./table.ts";
import { type InputCell, fromCell, inputCellSchema } from "./cells.ts";
import { compareColumn, markParameter, nameSame, quoteName, type SqlDialect } from "./dialect.ts";

/** Values above this size are not read with a page. */
const WHOLE_BYTES_MAX = 262_144;

const OPERATIONS = [
  "eq",
  "ne",
  "lt",
  "le",
  "gt",
  "ge",
  "contains",
  "starts",
  "null",
  "set",
] as const;
const SIGNS = { eq: "=", ne: "<>", lt: "<", le: "<=", gt: ">", ge: ">=" } as const;
/** Types of SQLite whose columns prefer numbers. */
const NUMBER_TYPE = /int|real|floa|doub|num|dec/i;
/** Types of PostgreSQL whose values may be long. */
const LONG_TYPE = /^(?:text|character|json|xml|bytea|"?citext|tsvector)/;

/** A condition of a filter. */
export const conditionSchema = z.strictObject({
  column: z.string().max(1_024),
  op: z.enum(OPERATIONS),
  value: inputCellSchema.optional(),
});
/** A condition of a filter. */
export type Condition = z.output<typeof conditionSchema>;

/** A value of a position: bytes for a text of SQLite that is not valid UTF-8, which no string holds. */
const positionCellSchema = z.union([
  inputCellSchema,
  z.strictObject({ raw: z.base64().max(WHOLE_BYTES_MAX * 2) }),
]);
/** A value of a position. */
export type PositionCell = z.output<typeof positionCellSchema>;

/** The last row of a page. */
export const positionSchema = z.object({
  /** True if it is in the part of rows without a value in the sorted column. */
  isNull: z.boolean(),
  value: positionCellSchema,
  key: z.array(positionCellSchema),
});
/** The last row of a page. */
export type Position = z.output<typeof positionSchema>;

/** A wanted page. */
export interface PageRequest {
  readonly filter: readonly Condition[];
  readonly sort: { readonly column: string; readonly isDescending: boolean } | undefined;
  readonly after: Position | undefined;
  readonly limit: number;
}

/** A query, and the parts of its rows. */
export interface RowQuery {
  readonly sql: string;
  readonly parameters: SqlValue[];
  /** True for the part of rows without a value in the sorted column. */
  readonly isNull: boolean;
  /** The statement without its columns and its limit. */
  readonly rest: string;
}

/** Builds a table's queries. Its columns in the rows: the key, the shown values, and the sizes of long ones. */
export class RowQueries {
  readonly #table: DataTable;
  readonly #dialect: SqlDialect;

  constructor(table: DataTable, dialect: SqlDialect) {
    this.#table = table;
    this.#dialect = dialect;
  }

  /** The queries of a page, to be asked until it is full. Throws 400 for columns that do not exist or are hidden. */
  page(request: PageRequest): RowQuery[] {
    const { sort, after } = request;
    const column = sort === undefined ? undefined : this.#find(sort.column);
    const isDescending = sort?.isDescending === true;
    if (column === undefined || !column.nullable) {
      return [this.#build(request, column?.name, isDescending, undefined)];
    }
    const nullsFirst = (this.#dialect === "sqlite") !== isDescending;
    const parts = nullsFirst ? [true, false] : [false, true];
    const from = after === undefined ? 0 : parts.indexOf(after.isNull);
    return parts.slice(from).map((isNull, index) => {
      const rest = index === 0 ? request : { ...request, after: undefined };
      return this.#build(rest, column.name, isDescending, isNull);
    });
  }

  /** The query of the row with a key. */
  row(key: Readonly<Record<string, InputCell>>): RowQuery {
    const parameters: SqlValue[] = [];
    const where = this.#matchKey(key, parameters);
    const rest = ` from ${this.#name} where ${where}`;
    return { sql: `select ${this.#listColumns()}${rest}`, parameters, isNull: false, rest };
  }

  /** The query of the bytes of the texts of a row's key and sorted value, at its place in a query of SQLite. */
  bytes(
    { rest, parameters }: RowQuery,
    sort: string | undefined,
    place: number,
  ): Pick<RowQuery, "sql" | "parameters"> {
    const names = (this.#table.key ?? []).map((name) => this.#keyName(name));
    if (sort !== undefined) names.push(quoteName(sort));
    const list = names.map(
      (name) => `case typeof(${name}) when 'text' then cast(${name} as blob) end`,
    );
    return { sql: `select ${list.join(", ")}${rest} limit 1 offset ${place}`, parameters };
  }

  /** The condition that finds the row with a key; values are added to `parameters`. Throws 400 if the key is not whole. */
  #matchKey(key: Readonly<Record<string, InputCell>>, parameters: SqlValue[]): string {
    return matchKey(this.#table, this.#dialect, key, parameters);
  }

  #build(
    { filter, after, limit }: PageRequest,
    column: string | undefined,
    isDescending: boolean,
    isNull: boolean | undefined,
  ): RowQuery {
    const parameters: SqlValue[] = [];
    const conditions = filter.map((condition) => this.#condition(condition, parameters));
    const key = this.#table.key ?? [];
    const sorts = column !== undefined && isNull !== true;
    if (isNull === true) conditions.push(`${quoteName(column!)} is null`);
    if (isNull === false) conditions.push(`${quoteName(column!)} is not null`);
    if (after !== undefined) {
      const sign = isDescending ? "<" : ">";
      const bind = (cell: PositionCell): string => this.#bindPosition(cell, parameters);
      const keys = `(${key.map((name) => this.#keyName(name)).join(", ")})`;
      if (sorts) {
        const name = quoteName(column);
        const value = this.#adaptPosition(after.value, column);
        const first = bind(value);
        // The first condition alone is one that an index can use.
        conditions.push(`${name} ${sign}= ${first}`);
        const second = bind(value);
        conditions.push(
          `(${name} ${sign} ${second} or ${keys} ${sign} (${after.key.map(bind).join(", ")}))`,
        );
      } else conditions.push(`${keys} ${sign} (${after.key.map(bind).join(", ")})`);
    }
    const direction = isDescending ? " desc" : "";
    // With the table's name: alone, PostgreSQL takes the name for that of a shown value, which is null if it is long, and
    // which no index has.
    const order = [
      ...(sorts ? [quoteName(column)] : []),
      ...key.map((name) => this.#keyName(name)),
    ].map((name) => `${this.#name}.${name}${direction}`);
    const where = conditions.length === 0 ? "" : ` where ${conditions.join(" and ")}`;
    const by = order.length === 0 ? "" : ` order by ${order.join(", ")}`;
    const rest = ` from ${this.#name}${where}${by}`;
    const sql = `select ${this.#listColumns()}${rest} limit ${limit}`;
    return { sql, parameters, isNull: isNull === true, rest };
  }

  get #name(): string {
    return quoteName(this.#table.name);
  }

  #keyName(name: string): string {
    return name === this.#table.row_id ? name : quoteName(name);
  }

  #listColumns(): string {
    const { key, columns } = this.#table;
    const keys = (key ?? []).map((name) => this.#selectKey(name));
    const shown = columns.flatMap((column) => this.#selectShown(column));
    return [...keys, ...shown].join(", ");
  }

  #selectKey(name: string): string {
    const text = name === "ctid" && this.#table.row_id === "ctid" ? "ctid::text" : "";
    return text === "" ? this.#keyName(name) : text;
  }

  // A long value is replaced by null, and its size stands behind it.
  #selectShown({ name, type, hidden }: DataTable["columns"][number]): string[] {
    const column = quoteName(name);
    if (hidden) return [`case when ${column} is null then null else 1 end`, "null"];
    if (this.#dialect === "sqlite") {
      const isLong = `octet_length(${column}) > ${WHOLE_BYTES_MAX}`;
      return [
        `case when ${isLong} then null else ${column} end`,
        `case when ${isLong} then typeof(${column}) || ' ' || octet_length(${column}) end`,
      ];
    }
    if (!LONG_TYPE.test(type)) return [column, "null"];
    const size = type === "bytea" ? `octet_length(${column})` : `octet_length(${column}::text)`;
    const kind = type === "bytea" ? "blob" : "text";
    return [
      `case when ${size} > ${WHOLE_BYTES_MAX} then null else ${column} end`,
      `case when ${size} > ${WHOLE_BYTES_MAX} then '${kind} ' || ${size} end`,
    ];
  }

  #condition({ column: wanted, op, value }: Condition, parameters: SqlValue[]): string {
    const column = this.#find(wanted);
    const name = quoteName(column.name);
    if (op === "null") return `${name} is null`;
    if (op === "set") return `${name} is not null`;
    if (value === undefined || value === null) {
      throw new PlatformError("validation_failed", `The condition on ${wanted} needs a value.`);
    }
    if (op !== "contains" && op !== "starts") {
      return `${compareColumn(this.#dialect, column)} ${SIGNS[op]} ${this.#bind(this.#adapt(value, column.type), parameters)}`;
    }
    const text = (typeof value === "object" ? JSON.stringify(value) : String(value)).replaceAll(
      /[\\%_]/g,
      (sign) => `\\${sign}`,
    );
    const pattern = this.#bind(op === "starts" ? `${text}%` : `%${text}%`, parameters);
    if (this.#dialect === "sqlite") return `${name} like ${pattern} escape '\\'`;
    return `${name}::text ilike ${pattern}`;
  }

  // Texts of a form are compared with numbers of columns without a type.
  #adapt(value: InputCell, type: string): InputCell {
    if (this.#dialect !== "sqlite" || typeof value !== "string") return value;
    if (NUMBER_TYPE.test(type) && /^-?\d{1,15}$/.test(value)) return Number(value);
    return readInfinity(this.#dialect, { type }, value);
  }

  #bind(cell: InputCell, parameters: SqlValue[]): string {
    parameters.push(fromCell(cell));
    return markParameter(this.#dialect, parameters.length);
  }

  #adaptPosition(cell: PositionCell, column: string): PositionCell {
    if (cell === null || typeof cell === "object") return cell;
    return readInfinity(this.#dialect, findColumn(this.#table, column), cell);
  }

  #bindPosition(cell: PositionCell, parameters: SqlValue[]): string {
    if (cell === null || typeof cell !== "object" || !("raw" in cell)) {
      return this.#bind(cell, parameters);
    }
    return `cast(${this.#bind({ blob: cell.raw }, parameters)} as text)`;
  }

  #find(name: string): DataTable["columns"][number] {
    return findColumn(this.#table, name);
  }
}

/** JSON has no infinity, which is shown as a text; SQLite finds it as a number only. */
export function readInfinity<Value extends InputCell>(
  dialect: SqlDialect,
  { type }: Pick<DataTable["columns"][number], "type">,
  value: Value,
): Value | number {
  const isInfinite = value === "Infinity" || value === "-Infinity";
  return dialect === "sqlite" && isInfinite && NUMBER_TYPE.test(type) ? Number(value) : value;
}

/** Finds a column. Throws 400 if there is none, or its values are hidden. */
export function findColumn(table: DataTable, name: string): DataTable["columns"][number] {
  const column = table.columns.find((one) => one.name === name);
  if (column === undefined) {
    throw new PlatformError("validation_failed", `${table.name} has no column ${name}.`);
  }
  if (column.hidden) {
    throw new PlatformError("forbidden", `The values of ${name} are hidden.`);
  }
  return column;
}

/** The condition that finds the row with a key; values are added to `parameters`. Throws 400 if the key is not whole. */
export function matchKey(
  { key, row_id: rowId, columns, name: table }: DataTable,
  dialect: SqlDialect,
  values: Readonly<Record<string, InputCell>>,
  parameters: SqlValue[],
): string {
  if (key === null) {
    throw new PlatformError("validation_failed", `Rows of ${table} have no key.`);
  }
  const parts = key.map((name) => {
    const value = values[name];
    if (value === undefined) {
      throw new PlatformError("validation_failed", `The key has no value of ${name}.`);
    }
    const column = columns.find((one) => one.name === name);
    const isNumber = column !== undefined && typeof value === "string";
    parameters.push(fromCell(isNumber ? readInfinity(dialect, column, value) : value));
    const mark = markParameter(dialect, parameters.length);
    if (rowId !== null || column === undefined) {
      return `${name} = ${mark}${name === "ctid" ? "::tid" : ""}`;
    }
    return `${compareColumn(dialect, column)} ${nameSame(dialect)} ${mark}`;
  });
  return parts.join(" and ");
}
