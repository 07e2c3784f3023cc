// The order of replicas among the versions of a key: by time, then by id, also of those that arrive late.
import { VERSION_COLUMNS } from "../index/schema.ts";
import type { VersionRow } from "../index/records.ts";
import { damagedRow, matchesSeal, sealVersion } from "../index/seal.ts";
import type { ReplicaSource } from "../model/replication.ts";
import { StoreError } from "../model/store-error.ts";
import { findCurrent, findOlder, insertOlder } from "./version-rows.ts";
import type { BucketState, WriterContext } from "./writer-context.ts";

/** Newer versions that get new places; a replica that is older than more of them goes below these. */
const NEWER_MAX = 1_000;
const PAGE = 100;

/** Throws InvalidRequest unless the bucket has versions, and OperationAborted for a replica that is here already. */
export function requireNewReplica(
  context: WriterContext,
  { id, bucket: { name, versioning } }: BucketState,
  key: Uint8Array,
  { versionId }: ReplicaSource,
): void {
  if (versioning !== "Enabled") {
    throw new StoreError("InvalidRequest", "Replicas require a bucket with versioning enabled", {
      bucket: name,
    });
  }
  const isThere =
    findCurrent(context, id, key)?.version === versionId ||
    findOlder(context, id, key, versionId) !== undefined;
  if (isThere) throw new StoreError("OperationAborted", "The version is here already");
}

/** The versions that come after a replica, newest first; of more than 1 000 the newest. */
export function listNewer(
  context: WriterContext,
  bucket: number,
  key: Uint8Array,
  { versionId, modifiedMs }: ReplicaSource,
): VersionRow[] {
  const newer: VersionRow[] = [];
  let below = Number.MAX_SAFE_INTEGER;
  for (;;) {
    const page = context
      .sql(
        `select * from (select ${VERSION_COLUMNS}, 0 as marker, 1 as live from current where bucket = ?1 and key = ?2 ` +
          `union all select ${VERSION_COLUMNS}, marker, 0 as live from versions where bucket = ?1 and key = ?2) ` +
          "where seq < ?3 order by seq desc limit ?4",
      )
      .all(bucket, key, below, PAGE) as unknown as (VersionRow & { live: number })[];
    for (const row of page) {
      const isNewer =
        row.modified > modifiedMs || (row.modified === modifiedMs && row.version > versionId);
      if (!isNewer || newer.length >= NEWER_MAX) return newer;
      if (!matchesSeal(row.seal, sealVersion(row)))
        throw damagedRow(`version ${row.version} of a key in bucket ${row.bucket}`);
      newer.push(row);
    }
    if (page.length < PAGE) return newer;
    below = page.at(-1)!.seq;
  }
}

/** Inserts a version below newer ones, which take new sequence numbers in their order. */
export function insertBelow(
  context: WriterContext,
  row: VersionRow,
  newer: readonly VersionRow[],
): void {
  insertOlder(context, row, newer.at(-1)!.modified);
  for (const later of newer.toReversed()) {
    const { live, ...kept } = later as VersionRow & { live?: number };
    const table = live === 1 ? "current" : "versions";
    const seq = context.nextSequence();
    context
      .sql(`update ${table} set seq = ?, seal = ? where bucket = ? and key = ? and seq = ?`)
      .run(seq, sealVersion({ ...kept, seq }), kept.bucket, kept.key, kept.seq);
  }
}
