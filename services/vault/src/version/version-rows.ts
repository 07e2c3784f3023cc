// How versions of a key follow each other inside the writer.
//
//   current   at most one row a key: the live object, and always the newest version of its key
//   versions  everything older, and delete markers; where a key has no row in `current`, its newest row here is a marker
import { releaseBlob } from "../blob/blob-rows.ts";
import { VERSION_COLUMNS } from "../index/schema.ts";
import type { VersionRow } from "../index/records.ts";
import type { WriterContext } from "../index/writer-context.ts";

/** The live object. */
export function findCurrent(
  context: WriterContext,
  bucket: number,
  key: Uint8Array,
): VersionRow | undefined {
  return context
    .sql(`select ${VERSION_COLUMNS} from current where bucket = ? and key = ?`)
    .get(bucket, key) as unknown as VersionRow | undefined;
}

/** An older version or a delete marker by its id. */
export function findOlder(
  context: WriterContext,
  bucket: number,
  key: Uint8Array,
  version: string,
): VersionRow | undefined {
  return context
    .sql(
      `select ${VERSION_COLUMNS}, marker from versions where bucket = ? and key = ? and version = ?`,
    )
    .get(bucket, key, version) as unknown as VersionRow | undefined;
}

/** Makes a row the live object; there must be none. */
export function insertCurrent(context: WriterContext, row: VersionRow): void {
  const marks = "?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?";
  context
    .sql(`insert into current (${VERSION_COLUMNS}) values (${marks})`)
    .run(
      row.bucket,
      row.key,
      row.seq,
      row.version,
      row.size,
      row.etag,
      row.modified,
      row.blob,
      row.class,
      row.checksum,
      row.owner,
      row.tags,
      row.retain_mode,
      row.retain_until,
      row.hold,
      row.detail,
    );
  context.totals.objects += 1;
}

/** Adds a delete marker as the newest version; there must be no live object. */
export function insertMarker(
  context: WriterContext,
  bucket: number,
  key: Uint8Array,
  version: string,
  nowMs: number,
): number {
  const seq = context.nextSequence();
  context
    .sql(
      "insert into versions (bucket, key, seq, version, size, etag, modified, class, detail, marker) " +
        "values (?, ?, ?, ?, 0, '', ?, 'STANDARD', '{}', 1)",
    )
    .run(bucket, key, seq, version, nowMs);
  return seq;
}

/** Makes room for a new newest version: the live object becomes an older one, a marker on top is one no longer. */
export function retireNewest(
  context: WriterContext,
  bucket: number,
  key: Uint8Array,
  nowMs: number,
): void {
  const moved = context
    .sql(
      `insert into versions (${VERSION_COLUMNS}, marker, noncurrent_since) ` +
        `select ${VERSION_COLUMNS}, 0, ? from current where bucket = ? and key = ?`,
    )
    .run(nowMs, bucket, key);
  if (moved.changes === 1) {
    context.sql("delete from current where bucket = ? and key = ?").run(bucket, key);
    context.totals.objects -= 1;
    return;
  }
  context
    .sql(
      "update versions set noncurrent_since = ? " +
        "where bucket = ? and key = ? and noncurrent_since is null",
    )
    .run(nowMs, bucket, key);
}

/** Removes the live object for good. */
export function removeCurrent(context: WriterContext, row: VersionRow): void {
  context.sql("delete from current where bucket = ? and key = ?").run(row.bucket, row.key);
  context.totals.objects -= 1;
  releaseBytes(context, row);
}

/** Removes an older version or a marker for good. */
export function removeOlder(context: WriterContext, row: VersionRow): void {
  context
    .sql("delete from versions where bucket = ? and key = ? and seq = ?")
    .run(row.bucket, row.key, row.seq);
  releaseBytes(context, row);
}

/** After the newest version of a key was removed: the next one takes its place, live if it is an object. */
export function promoteNewest(context: WriterContext, bucket: number, key: Uint8Array): void {
  const next = context
    .sql("select seq, marker from versions where bucket = ? and key = ? order by seq desc limit 1")
    .get(bucket, key) as { seq: number; marker: number } | undefined;
  if (next === undefined) return;
  if (next.marker === 1) {
    context
      .sql("update versions set noncurrent_since = null where bucket = ? and key = ? and seq = ?")
      .run(bucket, key, next.seq);
    return;
  }
  context
    .sql(
      `insert into current (${VERSION_COLUMNS}) select ${VERSION_COLUMNS} from versions ` +
        "where bucket = ? and key = ? and seq = ?",
    )
    .run(bucket, key, next.seq);
  context
    .sql("delete from versions where bucket = ? and key = ? and seq = ?")
    .run(bucket, key, next.seq);
  context.totals.objects += 1;
}

function releaseBytes(context: WriterContext, row: VersionRow): void {
  context.totals.storageBytes -= row.size;
  if (row.blob !== null) releaseBlob(context, row.blob);
}
