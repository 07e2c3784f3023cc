// The permissions of a statement, as SQLite's authorizer checks them while it compiles the statement.
import { constants } from "node:sqlite";

/** Functions that views and tables can be asked with: they only compute. Those of SQLite's interior and of files are not here. */
const FUNCTIONS: ReadonlySet<string> = new Set(
  `
  abs avg ceil ceiling changes char coalesce concat concat_ws count cume_dist current_date current_time
  current_timestamp date datetime degrees dense_rank exp first_value floor format glob group_concat hex if ifnull iif
  instr json json_array json_array_length json_each json_error_position json_extract json_group_array json_group_object
  json_insert json_object json_patch json_pretty json_quote json_remove json_replace json_set json_type json_valid
  julianday lag last_value lead length like likelihood likely ln log log10 log2 lower ltrim max median min mod nth_value
  ntile nullif octet_length percent_rank percentile percentile_cont percentile_disc pi pow power printf quote radians
  rank replace round row_number rtrim sign soundex sqrt strftime string_agg substr substring subtype sum time timediff
  total trim trunc typeof unhex unicode unistr unixepoch unlikely upper
  acos acosh asin asinh atan atan2 atanh cos cosh sin sinh tan tanh random randomblob zeroblob -> ->>
  `
    .trim()
    .split(/\s+/),
);

/** Those that start other work. */
const FORBIDDEN_FUNCTIONS: ReadonlySet<string> = new Set([
  "load_extension",
  "fts3_tokenizer",
  "sqlite_log",
  "writefile",
  "readfile",
  "edit",
]);

/** Pragmas that describe a schema; full-text search reads `data_version`. None of them has an effect without a value. */
const PRAGMAS: ReadonlySet<string> = new Set([
  "collation_list",
  "data_version",
  "database_list",
  "foreign_key_list",
  "function_list",
  "index_info",
  "index_list",
  "index_xinfo",
  "page_count",
  "page_size",
  "table_info",
  "table_list",
  "table_xinfo",
  "user_version",
  "encoding",
]);
/** Those whose value names a table or an index. */
const WITH_VALUE = /^(?:foreign_key_list|index_x?info|index_list|table_x?info|table_list)$/;

/** A table-valued function that opens no table. */
const LIST_FUNCTION = "json_each";

/** An access that SQLite asks about (https://sqlite.org/c3ref/c_alter_table.html). */
interface Access {
  readonly action: number;
  readonly first: string | null;
  readonly second: string | null;
  /** The database of a table: `main`, `temp`. */
  readonly database: string | null;
  /** The view that reads. */
  readonly accessor: string | null;
}

/** Decides about accesses. */
export type Permissions = (access: Access) => boolean;

/**
 * Permits reading the views `names` and nothing else. They select from views whose names contain the secret `inner`: a
 * subquery counts as the accessor of its tables, so the name of a view alone would open all tables to subqueries of that name.
 * `others` are the names of all tables and modules, in lower case.
 */
export function permitViews(
  names: ReadonlySet<string>,
  inner: string,
  others: ReadonlySet<string>,
): Permissions {
  return (access) => {
    if (access.action !== constants.SQLITE_READ) return permitComputing(access);
    const { first, database, accessor } = access;
    if (first === null) return false;
    if (accessor?.startsWith(inner) === true) return true;
    if (first === LIST_FUNCTION || isSubquery(access, others)) return true;
    return isIn("temp", database) && (names.has(first) || first.startsWith(inner));
  };
}

/** As {@link permitViews}, for the tables `names`; calls `onRead` with each one that is read. */
export function permitTables(
  names: ReadonlySet<string>,
  others: ReadonlySet<string>,
  onRead: (name: string) => void,
): Permissions {
  return (access) => {
    if (access.action !== constants.SQLITE_READ) return permitComputing(access);
    const { first, database } = access;
    if (first !== null && names.has(first) && isIn("main", database)) {
      onRead(first);
      return true;
    }
    return first === LIST_FUNCTION || isSubquery(access, others);
  };
}

// A named subquery (WITH) of which no column is read is asked about like a table. SQLite adds some
// modules, which are tables without a definition, only when they are named.
function isSubquery({ first, second, database }: Access, others: ReadonlySet<string>): boolean {
  if (second !== "" && second !== null) return false;
  if (database !== null && database !== "") return false;
  const name = (first ?? "").toLowerCase();
  return !others.has(name) && !/^(?:sqlite|pragma|json)_/.test(name);
}

// A table of which no column is read has the database that its author has written, if any: the search for it begins with
// `temp`, where no other tables are.
function isIn(wanted: "temp" | "main", database: string | null): boolean {
  return database === wanted || database === null || database === "";
}

function permitComputing({ action, second }: Access): boolean {
  if (action === constants.SQLITE_SELECT) return true;
  return action === constants.SQLITE_FUNCTION && FUNCTIONS.has((second ?? "").toLowerCase());
}

/** Permits reading all tables, recursion, and pragmas that describe the schema. */
export const permitReading: Permissions = ({ action, first, second }) => {
  switch (action) {
    case constants.SQLITE_SELECT:
    case constants.SQLITE_READ:
    case constants.SQLITE_RECURSIVE:
      return true;
    case constants.SQLITE_FUNCTION:
      return !FORBIDDEN_FUNCTIONS.has((second ?? "").toLowerCase());
    case constants.SQLITE_PRAGMA: {
      const name = (first ?? "").toLowerCase();
      return PRAGMAS.has(name) && (second === null || WITH_VALUE.test(name));
    }
    default:
      return false;
  }
};

/**
 * Permits reading as {@link permitReading}, and changing rows of tables. Triggers of the schema and foreign keys are asked about
 * in the same way.
 */
export const permitWriting: Permissions = (access) => {
  switch (access.action) {
    case constants.SQLITE_INSERT:
    case constants.SQLITE_UPDATE:
    case constants.SQLITE_DELETE:
      return access.database === "main" && !/^sqlite_/i.test(access.first ?? "sqlite_");
    default:
      return permitReading(access);
  }
};
