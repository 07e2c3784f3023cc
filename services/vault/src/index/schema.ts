// The index: its tables, its format version, and its connections.
import { DatabaseSync, type StatementSync } from "node:sqlite";
import { locateExclusively } from "@platform/kernel/files";
import { StoreError } from "../model/store-error.ts";
import { recountUsage, USAGE_TABLE } from "./usage-rows.ts";

/**
 * Incremented by each change that an older program would misread. 2 added the seals of rows (`seal.ts`), 3 the usage of
 * buckets, 4 vectors and tasks, 5 jobs, runs of triggers and the age of tasks, 6 remotes and bodies in them, 7 the keys that
 * blobs name.
 */
export const FORMAT_VERSION = 7;

/** Bytes of a page of the index. */
export const PAGE_BYTES = 8192;
/** Default limit of the index's log (its WAL), in bytes. */
export const LOG_BYTES_MAX = 1024 ** 3;

/** Size of the log above which the writer itself restarts it, far below the limit at which readers are ended. */
export function findRestartBytes(logBytesMax: number): number {
  return Math.min(128 * 1024 * 1024, Math.floor(logBytesMax / 8));
}

/**
 * Columns that a live object (`current`) and an older version or delete marker (`versions`) share. `seq` is the order of
 * commits; `version` is `null` (the text) for the null version; `detail` is JSON with everything that listings do not need.
 */
const VERSION_COLUMN_TYPES = {
  bucket: "integer not null",
  key: "blob not null",
  seq: "integer not null",
  version: "text not null",
  size: "integer not null",
  etag: "text not null",
  modified: "integer not null",
  blob: "integer",
  class: "text not null",
  checksum: "text",
  owner: "text",
  tags: "text",
  retain_mode: "text",
  retain_until: "integer",
  hold: "integer not null default 0",
  detail: "text not null",
};
// The exact text is part of the format: `inspect.ts` compares it with the definitions in a database.
const VERSION_COLUMN_DEFINITIONS = Object.entries(VERSION_COLUMN_TYPES)
  .map(([name, type]) => `\n  ${name} ${type}`)
  .join(",");

/** The names of these columns, with their seal. */
export const VERSION_COLUMNS = [...Object.keys(VERSION_COLUMN_TYPES), "seal"].join(", ");

const TABLES_OF_FORMAT_1 = `
create table meta (name text primary key, value integer not null) without rowid;
create table buckets (id integer primary key autoincrement, name text not null unique, document text not null);
create table current (${VERSION_COLUMN_DEFINITIONS}, primary key (bucket, key)) without rowid;
create index current_by_time on current (bucket, modified);
create table versions (
  ${VERSION_COLUMN_DEFINITIONS},
  marker integer not null,
  noncurrent_since integer,
  primary key (bucket, key, seq desc)
) without rowid;
create unique index versions_by_id on versions (bucket, key, version);
create index versions_by_time on versions (bucket, noncurrent_since);
create table blobs (
  id integer primary key,
  refs integer not null,
  kind text not null,
  size integer not null,
  stored integer not null,
  segment integer,
  position integer,
  extent integer not null,
  cipher text,
  data blob
);
create index blobs_by_segment on blobs (segment) where segment is not null;
create table blob_parts (
  blob integer not null,
  start integer not null,
  number integer not null,
  part integer not null,
  size integer not null,
  etag text not null,
  modified integer not null,
  checksum text,
  primary key (blob, number)
) without rowid;
create table segments (id integer primary key, bytes integer not null, live integer not null);
create table garbage (blob integer primary key);
create table uploads (
  id integer primary key autoincrement,
  upload_id text not null unique,
  bucket integer not null,
  key blob not null,
  created integer not null,
  detail text not null,
  completed integer,
  result text
);
create index uploads_by_key on uploads (bucket, key, id) where completed is null;
create index uploads_by_time on uploads (bucket, created) where completed is null;
create index uploads_by_end on uploads (completed) where completed is not null;
create table parts (
  upload integer not null,
  number integer not null,
  blob integer not null,
  size integer not null,
  etag text not null,
  modified integer not null,
  checksum text,
  primary key (upload, number)
) without rowid;
create table events (id integer primary key autoincrement, record text not null);
`;

/** The tables whose rows are sealed. */
const SEALED_TABLES = ["buckets", "current", "versions", "blobs", "blob_parts", "parts"] as const;

// Constant time, regardless of the size of the tables: existing rows have no seal until they are written again.
const SEAL_COLUMNS = SEALED_TABLES.map((table) => `alter table ${table} add column seal integer;`);

/**
 * Vectors of versions, little-endian floats; `id` is in the order of commits. Tasks are work that a commit has caused and that a
 * later one ends; they are unique by what they are about, so that there are no more of them than versions.
 */
const TABLES_OF_FORMAT_4 = `
create table vectors (
  id integer primary key,
  bucket integer not null,
  key blob not null,
  version text not null,
  data blob not null,
  seal integer not null
);
create unique index vectors_by_version on vectors (bucket, key, version);
create index vectors_by_bucket on vectors (bucket, id);
create table tasks (
  id integer primary key autoincrement,
  kind text not null,
  rule text not null,
  bucket integer not null,
  key blob not null,
  version text not null,
  seq integer not null,
  due integer not null,
  attempts integer not null,
  state text not null,
  detail text,
  unique (kind, rule, bucket, key, version)
);
create index tasks_by_due on tasks (state, kind, due);
`;

/**
 * Jobs with the lines of their reports (NDJSON, several in a row), and the last runs of triggers. `sequence` is that of the
 * start: a job sees the versions up to it. Adding the column and the tables takes constant time; the indexes of tasks, the
 * time for reading the waiting ones.
 */
const TABLES_OF_FORMAT_5 = `
alter table tasks add column added integer;
create index tasks_by_rule on tasks (state, kind, bucket, rule, due);
create index tasks_dead on tasks (id) where state = 'dead';
create table jobs (
  number integer primary key autoincrement,
  id text not null unique,
  operation text not null,
  state text not null,
  maker text not null,
  created integer not null,
  ended integer,
  sequence integer not null,
  spec text not null,
  progress text not null
);
create index jobs_by_state on jobs (state, number);
create table job_lines (
  job integer not null,
  number integer not null,
  failures integer not null,
  lines text not null,
  primary key (job, number)
) without rowid;
create table trigger_runs (
  id integer primary key autoincrement,
  bucket integer not null,
  document text not null
);
create index trigger_runs_by_bucket on trigger_runs (bucket, id);
`;

/**
 * Other stores that bodies are moved to, with the number and the bytes of those in them; these bodies, with the temporary local
 * copy (`copy`, a blob) that a restore makes; and facts about the store, such as its id in remotes. Constant time.
 */
const TABLES_OF_FORMAT_6 = `
create table facts (name text primary key, value text not null) without rowid;
create table remotes (
  name text primary key,
  document text not null,
  blobs integer not null,
  bytes integer not null,
  seal integer not null
) without rowid;
create table remote_blobs (
  blob integer primary key,
  remote text not null,
  bucket text not null,
  key text not null,
  bytes integer not null,
  position integer not null,
  copy integer,
  seal integer not null
);
create index remote_blobs_by_remote on remote_blobs (remote, blob);
`;

/**
 * Indexes of blobs by the key-encryption key that they name, and by the one in the head of their record if that differs.
 * Making them reads all rows of blobs, once.
 */
const INDEXES_OF_FORMAT_7 = `
create index if not exists blobs_by_kek on blobs (cipher ->> '$.kek') where cipher ->> '$.kek' is not null;
create index if not exists blobs_by_head on blobs (cipher ->> '$.head') where cipher ->> '$.head' is not null;
`;

/** A connection with its prepared statements. */
export class IndexConnection {
  #database: DatabaseSync;
  readonly #statements = new Map<string, StatementSync>();

  constructor(database: DatabaseSync) {
    this.#database = database;
  }

  get database(): DatabaseSync {
    return this.#database;
  }

  /**
   * The prepared statement of `text`. Texts are constants of the code, so their number is bounded. With `asArrays` its rows
   * are arrays, which cost less than objects with column names; a text must always be used with the same `asArrays`.
   */
  sql(text: string, asArrays = false): StatementSync {
    let statement = this.#statements.get(text);
    if (statement === undefined) {
      statement = this.database.prepare(text);
      statement.setReturnArrays(asArrays);
      this.#statements.set(text, statement);
    }
    return statement;
  }

  /** A row of this connection is damaged. Returns true if another copy of the index is used from now on. */
  leaveDamaged(): boolean {
    return false;
  }

  /** Continues with another connection and closes the previous one. */
  protected replace(database: DatabaseSync): void {
    const before = this.#database;
    this.#statements.clear();
    this.#database = database;
    before.close();
  }

  /** Closes the connection. */
  close(): void {
    this.#statements.clear();
    this.database.close();
  }
}

/** Time that the writer waits for other connections, in ms. */
export const INDEX_BUSY_MS = 10_000;

/** Opens the index for its only writer. Creates the tables in a new file, refuses a newer format. */
export function openIndexWriter(path: string, logBytesMax = LOG_BYTES_MAX): IndexConnection {
  const database = new DatabaseSync(locateExclusively(path), { timeout: INDEX_BUSY_MS });
  try {
    database.exec(`pragma page_size = ${PAGE_BYTES}`);
    database.exec("pragma journal_mode = wal");
    database.exec("pragma synchronous = full");
    database.exec("pragma wal_autocheckpoint = 0");
    database.exec(`pragma journal_size_limit = ${findRestartBytes(logBytesMax)}`);
    database.exec("pragma cache_size = -65536");
    database.exec("pragma temp_store = memory");
    migrate(database, path);
  } catch (error) {
    database.close();
    throw error;
  }
  return new IndexConnection(database);
}

/** Opens the index for reading. */
export function openIndexReader(path: string): IndexConnection {
  const database = new DatabaseSync(locateExclusively(path), { readOnly: true, timeout: 10_000 });
  database.exec("pragma cache_size = -32768");
  database.exec("pragma temp_store = memory");
  return new IndexConnection(database);
}

function migrate(database: DatabaseSync, path: string): void {
  const found = Number(database.prepare("pragma user_version").get()?.["user_version"]);
  if (found === FORMAT_VERSION) return;
  if (found > FORMAT_VERSION) {
    throw new StoreError(
      "ServiceUnavailable",
      `${path} has format ${found}, this program supports up to ${FORMAT_VERSION}: use a newer version`,
    );
  }
  database.exec("begin immediate");
  makeTables(database, found, FORMAT_VERSION);
  if (found > 0 && found < 3) countBuckets(database);
  database.exec(`pragma user_version = ${FORMAT_VERSION}`);
  database.exec("commit");
}

/** Migrates the tables of an index from one format to another; 0 is an empty file. */
export function makeTables(database: DatabaseSync, from: number, to: number): void {
  if (from < 1) database.exec(TABLES_OF_FORMAT_1);
  if (from < 2 && to >= 2) database.exec(SEAL_COLUMNS.join("\n"));
  if (from < 3 && to >= 3) database.exec(USAGE_TABLE);
  if (from < 4 && to >= 4) database.exec(TABLES_OF_FORMAT_4);
  if (from < 5 && to >= 5) database.exec(TABLES_OF_FORMAT_5);
  if (from < 6 && to >= 6) database.exec(TABLES_OF_FORMAT_6);
  if (from < 7 && to >= 7) database.exec(INDEXES_OF_FORMAT_7);
}

// Reads all rows of versions, once. Earlier formats had only totals.
function countBuckets(database: DatabaseSync): void {
  recountUsage(database, FORMAT_VERSION);
  database.exec("delete from meta where name in ('objects', 'storage_bytes')");
}

/** The name in `meta` of the mark that a drive is incomplete. */
export function nameDriveMark(slot: number | ""): string {
  return `drive_behind_${slot}`;
}
