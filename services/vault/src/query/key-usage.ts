// Blobs by the key-encryption keys that they name. Each query uses an index on the text of ciphers.
import type { IndexConnection } from "../index/schema.ts";
import type { BlobId } from "../model/blob.ts";

// As in the definitions of the indexes.
const KEK = "cipher ->> '$.kek'";
const HEAD = "cipher ->> '$.head'";

/** A blob with the text of its cipher. */
export interface NamedBlob {
  readonly id: BlobId;
  readonly cipher: string;
  readonly kind: string;
}

/** A blob whose record has a former key in its head. */
export interface OldHead extends NamedBlob {
  readonly segment: number | null;
}

/** The key-encryption keys that blobs name. */
export function listUsedKeks(index: IndexConnection): string[] {
  return listDistinct(index, KEK);
}

/** Those that are in the heads of records only. */
export function listHeadKeks(index: IndexConnection): string[] {
  return listDistinct(index, HEAD);
}

// One lookup for each key, not one for each blob.
function listDistinct(index: IndexConnection, column: typeof KEK | typeof HEAD): string[] {
  const found: string[] = [];
  for (let after = ""; ;) {
    const row = index
      .sql(
        `select ${column} as kek from blobs where ${column} is not null and ${column} > ? order by ${column} limit 1`,
      )
      .get(after);
    if (row === undefined) return found;
    after = String(row["kek"]);
    found.push(after);
  }
}

/** True if a blob, or the head of its record, names a key. */
export function isKekUsed(index: IndexConnection, kek: string): boolean {
  return countNamed(index, KEK, kek, 1) + countNamed(index, HEAD, kek, 1) > 0;
}

/** Blobs that name a key, and records with it in their heads; both are counted up to `max`. */
export function countKekUse(
  index: IndexConnection,
  kek: string,
  max: number,
): { blobs: number; heads: number } {
  return { blobs: countNamed(index, KEK, kek, max), heads: countNamed(index, HEAD, kek, max) };
}

function countNamed(
  index: IndexConnection,
  column: typeof KEK | typeof HEAD,
  kek: string,
  max: number,
): number {
  const row = index
    .sql(
      `select count(*) as n from (select 1 from blobs where ${column} is not null and ${column} = ? limit ?)`,
    )
    .get(kek, max);
  return Number(row?.["n"]);
}

/** Blobs that name a key, with ids above `after`. */
export function listBlobsOfKek(
  index: IndexConnection,
  kek: string,
  after: BlobId,
  limit: number,
): NamedBlob[] {
  return index
    .sql(
      `select id, cipher, kind from blobs where ${KEK} is not null and ${KEK} = ? and id > ? order by id limit ?`,
    )
    .all(kek, after, limit) as unknown as NamedBlob[];
}

/** Blobs with a former key in the heads of their records, with ids above `after`. */
export function listOldHeads(
  index: IndexConnection,
  kek: string,
  after: BlobId,
  limit: number,
): OldHead[] {
  return index
    .sql(
      `select id, cipher, kind, segment from blobs where ${HEAD} is not null and ${HEAD} = ? and id > ? order by id limit ?`,
    )
    .all(kek, after, limit) as unknown as OldHead[];
}

/** Blobs with a former key in their heads, in one segment. */
export function listOldHeadsOfSegment(index: IndexConnection, segment: number): OldHead[] {
  return index
    .sql(
      `select id, cipher, kind, segment from blobs where segment = ? and ${HEAD} is not null order by position`,
    )
    .all(segment) as unknown as OldHead[];
}

/** Names of buckets with bodies that name one of these keys, in objects or in parts of uploads. Reads all of their rows. */
export function findBucketsOfKeks(index: IndexConnection, keks: readonly string[]): string[] {
  return index
    .sql(
      `with named as materialized (select id from blobs where ${KEK} is not null and ${KEK} in (select value from json_each(?))), ` +
        "bodies as materialized (select id from named union select blob from blob_parts where part in named) " +
        "select b.name from buckets b where exists (select 1 from current where bucket = b.id and blob in bodies) " +
        "or exists (select 1 from versions where bucket = b.id and blob in bodies) " +
        "or exists (select 1 from uploads u join parts p on p.upload = u.id where u.bucket = b.id and p.blob in named) " +
        "order by b.name",
    )
    .all(JSON.stringify(keks))
    .map((row) => String(row["name"]));
}
