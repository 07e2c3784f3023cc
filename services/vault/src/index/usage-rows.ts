// The table `usage`: one row per bucket, written in the same transaction as the rows that it counts.
import type { DatabaseSync, StatementSync } from "node:sqlite";
import { damagedRow, matchesSeal, sealUsage } from "./seal.ts";
import type { BucketUsage } from "../model/usage.ts";

/** The definition of the table. Buckets without a row are empty. */
export const USAGE_TABLE = `create table usage (
  bucket integer primary key,
  objects integer not null,
  versions integer not null,
  markers integer not null,
  bytes integer not null,
  uploads integer not null,
  upload_bytes integer not null,
  seal integer not null
);`;

/** The counted columns, in the order of the table. */
export const USAGE_COLUMNS = "objects, versions, markers, bytes, uploads, upload_bytes";

/** Selects the correct rows of the table, without their seals, by counting everything. Vectors count as bytes since format 4. */
export function writeCountUsage(format: number): string {
  const vectors =
    format < 4
      ? ""
      : " union all select bucket, 0, 0, 0, sum(length(data)), 0, 0 from vectors group by bucket";
  return `${COUNT_ROWS}${vectors}) group by bucket`;
}

const COUNT_ROWS =
  "select bucket, sum(objects) as objects, sum(versions) as versions, sum(markers) as markers, " +
  "sum(bytes) as bytes, sum(uploads) as uploads, sum(upload_bytes) as upload_bytes from (" +
  "select bucket, count(*) as objects, count(*) as versions, 0 as markers, sum(size) as bytes, " +
  "0 as uploads, 0 as upload_bytes from current group by bucket union all " +
  "select bucket, 0, sum(marker = 0), sum(marker = 1), sum(size), 0, 0 from versions group by bucket union all " +
  "select bucket, 0, 0, 0, 0, count(*), 0 from uploads where completed is null group by bucket union all " +
  "select u.bucket, 0, 0, 0, 0, 0, sum(p.size) from parts p join uploads u on u.id = p.upload group by u.bucket";

/** Prepares statements. */
interface Statements {
  sql(text: string): StatementSync;
}

/** The usage of one bucket. Throws if its row is damaged. */
export function readUsage(index: Statements, bucket: number): BucketUsage {
  const row = index.sql(`select bucket, ${USAGE_COLUMNS}, seal from usage where bucket = ?`);
  const found = row.get(bucket);
  return found === undefined ? createUsage() : toUsage(found);
}

/** The usage of all buckets that are not empty, by number. Throws if a row is damaged. */
export function readAllUsage(index: Statements): Map<number, BucketUsage> {
  const rows = index.sql(`select bucket, ${USAGE_COLUMNS}, seal from usage`).all();
  return new Map(rows.map((row) => [Number(row["bucket"]), toUsage(row)]));
}

/** Writes the row of a bucket; an empty bucket has none. */
export function writeUsage(index: Statements, bucket: number, usage: BucketUsage): void {
  const { objects, versions, deleteMarkers, bytes, uploads, uploadBytes } = usage;
  if (versions + deleteMarkers + uploads === 0) {
    index.sql("delete from usage where bucket = ?").run(bucket);
    return;
  }
  index
    .sql("insert or replace into usage values (?, ?, ?, ?, ?, ?, ?, ?)")
    .run(
      bucket,
      objects,
      versions,
      deleteMarkers,
      bytes,
      uploads,
      uploadBytes,
      sealUsage(bucket, usage),
    );
}

/** Recounts all buckets of an index of a format. */
export function recountUsage(database: DatabaseSync, format: number): void {
  database.exec("delete from usage");
  const index: Statements = { sql: (text) => database.prepare(text) };
  for (const row of database.prepare(writeCountUsage(format)).all()) {
    writeUsage(index, Number(row["bucket"]), fromColumns(row));
  }
}

/** The usage of an empty bucket. */
export function createUsage(): BucketUsage {
  return { objects: 0, versions: 0, deleteMarkers: 0, bytes: 0, uploads: 0, uploadBytes: 0 };
}

/** True if two usages are equal. */
export function isSameUsage(one: BucketUsage, other: BucketUsage): boolean {
  return (
    one.objects === other.objects &&
    one.versions === other.versions &&
    one.deleteMarkers === other.deleteMarkers &&
    one.bytes === other.bytes &&
    one.uploads === other.uploads &&
    one.uploadBytes === other.uploadBytes
  );
}

type Row = Record<string, unknown>;

function toUsage(row: Row): BucketUsage {
  const bucket = Number(row["bucket"]);
  const usage = fromColumns(row);
  if (matchesSeal(Number(row["seal"]), sealUsage(bucket, usage))) return usage;
  throw damagedRow(`usage of bucket ${bucket}`);
}

function fromColumns(row: Row): BucketUsage {
  return {
    objects: Number(row["objects"]),
    versions: Number(row["versions"]),
    deleteMarkers: Number(row["markers"]),
    bytes: Number(row["bytes"]),
    uploads: Number(row["uploads"]),
    uploadBytes: Number(row["upload_bytes"]),
  };
}
