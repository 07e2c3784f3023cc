// The order of a key's versions inside the writer.
//
//   current   at most one row per key: the live object, always the newest version of its key
//   versions  older versions and delete markers; if a key has no row in `current`, its newest row here is a marker
import { releaseBlob } from "./blob-rows.ts";
import { VERSION_COLUMNS } from "../index/schema.ts";
import type { VersionRow } from "../index/records.ts";
import { damagedRow, matchesSeal, sealVersion } from "../index/seal.ts";
import { removeVector } from "./vector-rows.ts";
import type { WriterContext } from "./writer-context.ts";

const VERSION_MARKS = VERSION_COLUMNS.replaceAll(/\w+/g, "?");

/** The live object. */
export function findCurrent(
  context: WriterContext,
  bucket: number,
  key: Uint8Array,
): VersionRow | undefined {
  const row = context
    .sql(`select ${VERSION_COLUMNS} from current where bucket = ? and key = ?`)
    .get(bucket, key) as unknown as VersionRow | undefined;
  return row === undefined ? undefined : requireSealed(row);
}

/** An older version or a delete marker by its id. */
export function findOlder(
  context: WriterContext,
  bucket: number,
  key: Uint8Array,
  version: string,
): VersionRow | undefined {
  const row = context
    .sql(
      `select ${VERSION_COLUMNS}, marker from versions where bucket = ? and key = ? and version = ?`,
    )
    .get(bucket, key, version) as unknown as VersionRow | undefined;
  return row === undefined ? undefined : requireSealed(row);
}

// A damaged row may name another object's bytes: it must not decide or release anything.
function requireSealed(row: VersionRow): VersionRow {
  if (matchesSeal(row.seal, sealVersion(row))) return row;
  throw damagedRow(`version ${row.version} of a key in bucket ${row.bucket}`);
}

function listVersionValues(row: VersionRow) {
  return [
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
    sealVersion(row),
  ];
}

/** Inserts the live object; there must be none. */
export function insertCurrent(context: WriterContext, row: VersionRow): void {
  context
    .sql(`insert into current (${VERSION_COLUMNS}) values (${VERSION_MARKS})`)
    .run(...listVersionValues(row));
  const usage = context.usage.edit(row.bucket);
  usage.objects += 1;
  usage.versions += 1;
  usage.bytes += row.size;
}

/** Inserts an older version or a delete marker, with the time at which it was retired, epoch ms. */
export function insertOlder(
  context: WriterContext,
  row: VersionRow,
  noncurrentSince: number | null,
): void {
  const marker = row.marker ?? 0;
  context
    .sql(
      `insert into versions (${VERSION_COLUMNS}, marker, noncurrent_since) values (${VERSION_MARKS}, ?, ?)`,
    )
    .run(...listVersionValues(row), marker, noncurrentSince);
  const usage = context.usage.edit(row.bucket);
  if (marker === 1) usage.deleteMarkers += 1;
  else usage.versions += 1;
  usage.bytes += row.size;
}

/** The columns of a delete marker. */
export const MARKER_COLUMNS = {
  size: 0,
  etag: "",
  blob: null,
  class: "STANDARD",
  checksum: null,
  owner: null,
  tags: null,
  retain_mode: null,
  retain_until: null,
  hold: 0,
  detail: "{}",
} as const;

/** Adds a delete marker as the newest version; there must be no live object. */
export function insertMarker(
  context: WriterContext,
  bucket: number,
  key: Uint8Array,
  version: string,
  nowMs: number,
  detail = "{}",
): number {
  const seq = context.nextSequence();
  const seal = sealVersion({
    ...MARKER_COLUMNS,
    detail,
    bucket,
    key,
    seq,
    version,
    modified: nowMs,
  });
  context
    .sql(
      "insert into versions (bucket, key, seq, version, size, etag, modified, class, detail, seal, marker) " +
        "values (?, ?, ?, ?, 0, '', ?, 'STANDARD', ?, ?, 1)",
    )
    .run(bucket, key, seq, version, nowMs, detail, seal);
  context.usage.edit(bucket).deleteMarkers += 1;
  return seq;
}

/** Retires the newest version before a new one: the live object becomes an older version, a marker is no longer on top. */
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
    context.usage.edit(bucket).objects -= 1;
    return;
  }
  context
    .sql(
      "update versions set noncurrent_since = ? " +
        "where bucket = ? and key = ? and noncurrent_since is null",
    )
    .run(nowMs, bucket, key);
}

/** Removes the live object permanently. */
export function removeCurrent(context: WriterContext, row: VersionRow): void {
  context.sql("delete from current where bucket = ? and key = ?").run(row.bucket, row.key);
  const usage = context.usage.edit(row.bucket);
  usage.objects -= 1;
  usage.versions -= 1;
  usage.bytes -= row.size;
  removeVector(context, row.bucket, row.key, row.version);
  if (row.blob !== null) releaseBlob(context, row.blob);
}

/** Removes an older version or a marker permanently. */
export function removeOlder(context: WriterContext, row: VersionRow): void {
  context
    .sql("delete from versions where bucket = ? and key = ? and seq = ?")
    .run(row.bucket, row.key, row.seq);
  const usage = context.usage.edit(row.bucket);
  if (row.marker === 1) usage.deleteMarkers -= 1;
  else usage.versions -= 1;
  usage.bytes -= row.size;
  removeVector(context, row.bucket, row.key, row.version);
  if (row.blob !== null) releaseBlob(context, row.blob);
}

/** After the removal of the newest version of a key: the next one becomes the newest, live if it is an object. */
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
  context.usage.edit(bucket).objects += 1;
}
