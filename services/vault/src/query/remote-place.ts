// The places of bodies in remotes, which are in a table of their own.
import { type BlobRow, buildBlobRecord } from "../index/records.ts";
import type { IndexConnection } from "../index/schema.ts";
import {
  damagedRow,
  matchesSeal,
  type RemoteBlobRow,
  sealBlob,
  sealRemoteBlob,
} from "../index/seal.ts";
import { BLOB_COLUMNS } from "../index/sealed-values.ts";
import type { BlobRecord } from "../model/blob.ts";

/** A blob with its place in a remote, and its local copy there; other blobs as they are. Throws for damaged rows. */
export function locateRemote(index: IndexConnection, blob: BlobRecord): BlobRecord {
  const { place, id } = blob;
  if (place.kind !== "remote") return blob;
  const row = index.sql("select * from remote_blobs where blob = ?").get(id) as unknown as
    | (RemoteBlobRow & { seal: number })
    | undefined;
  if (row === undefined || !matchesSeal(row.seal, sealRemoteBlob(row)))
    throw damagedRow(`remote blob ${id.toString(16)}`);
  const { remote, bucket, key, bytes, position, copy } = row;
  const local = copy === null ? undefined : requireCopy(index, copy);
  return {
    ...blob,
    place: { ...place, at: { remote, bucket, key, bytes, position, copy: local } },
  };
}

function requireCopy(index: IndexConnection, id: number): BlobRecord {
  const row = index.sql(`select ${BLOB_COLUMNS} from blobs where id = ?`).get(id);
  if (row === undefined) throw damagedRow(`blob ${id.toString(16)}`);
  return requireBlob(row as unknown as BlobRow);
}

/** The blob of a row. Throws for a damaged one. */
export function requireBlob(row: BlobRow): BlobRecord {
  if (matchesSeal(row.seal, sealBlob(row))) return buildBlobRecord(row);
  throw damagedRow(`blob ${row.id.toString(16)}`);
}
