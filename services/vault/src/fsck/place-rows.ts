// The last steps of restoring an index: versions go to their tables, references and segment bytes are counted.
import type { DatabaseSync, SQLInputValue } from "node:sqlite";
import type { VersionRow } from "../index/records.ts";
import { VERSION_COLUMNS } from "../index/schema.ts";
import { sealVersion } from "../index/seal.ts";
import type { Row } from "./salvage.ts";

/** A row of the table `found`, which contains `current` and `versions` together. */
export type FoundVersion = VersionRow & { marker: number; noncurrent_since: number | null };

/** Moves the rows of `found` to their tables: the newest row of a key to `current`, the others to `versions`. */
export function placeVersions(database: DatabaseSync): void {
  const columns = VERSION_COLUMNS;
  const marks = columns.replaceAll(/\w+/g, "?");
  const current = database.prepare(`insert into current (${columns}) values (${marks})`);
  const versions = database.prepare(
    `insert into versions (${columns}, marker, noncurrent_since) values (${marks}, ?, ?)`,
  );
  let newer: FoundVersion | undefined;
  for (const row of database
    .prepare("select * from temp.found order by bucket, key, seq desc")
    .iterate() as unknown as Iterable<FoundVersion>) {
    const isNewest =
      newer === undefined ||
      newer.bucket !== row.bucket ||
      Buffer.compare(newer.key, row.key) !== 0;
    const sealed: VersionRow = { ...row, seal: sealVersion(row) };
    const values = columns
      .split(", ")
      .map((column) => (sealed as unknown as Row)[column] ?? null) as SQLInputValue[];
    if (isNewest && row.marker === 0) current.run(...values);
    else {
      const since = isNewest ? null : (row.noncurrent_since ?? newer?.modified ?? null);
      versions.run(...values, row.marker, since);
    }
    newer = row;
  }
}

/** Drops unreferenced bodies, and counts references and the bytes of segments. */
export function countReferences(database: DatabaseSync): void {
  const references =
    "select blob from current union all select blob from versions union all " +
    "select part from blob_parts union all select blob from parts union all select copy from remote_blobs";
  // The bodies of parts are dropped with the body that they belong to.
  for (const text of [
    // A local copy that is lost is made again on request.
    "update remote_blobs set copy = null where copy not in (select id from blobs)",
    "delete from blob_parts where blob not in (select blob from current where blob is not null " +
      "union all select blob from versions where blob is not null)",
    "delete from remote_blobs where blob not in (select blob from current where blob is not null union all " +
      "select blob from versions where blob is not null union all select part from blob_parts)",
    `delete from blobs where id not in (select blob from (${references}) where blob is not null)`,
    `update blobs set refs = (select count(*) from (${references}) r where r.blob = blobs.id)`,
    "update remotes set blobs = (select count(*) from remote_blobs where remote = name), " +
      "bytes = (select coalesce(sum(bytes), 0) from remote_blobs where remote = name)",
    "delete from segments",
    "insert into segments select segment, max(position + extent), sum(extent) from blobs " +
      "where segment is not null group by segment",
  ]) {
    database.exec(text);
  }
}
