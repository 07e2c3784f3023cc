// Keys of blobs that are wrapped again, inside the writer. No byte of an object changes.
import type { BlobRow } from "../index/records.ts";
import { damagedRow, matchesSeal, sealBlob } from "../index/seal.ts";
import type { BlobId } from "../model/blob.ts";
import type { WriterContext } from "./writer-context.ts";

/** Replaces ciphers. Blobs that have another cipher by now, or are in another segment than the given one, stay as they are. */
export interface RewrapBlobsOperation {
  type: "rewrapBlobs";
  blobs: readonly { id: BlobId; from: string; to: string; segment?: number | null }[];
}

/** Replaces the ciphers, with new seals. Throws for a damaged row, which a new seal would hide. */
export function applyRewrapBlobs(
  context: WriterContext,
  { blobs }: RewrapBlobsOperation,
): { changed: number } {
  let changed = 0;
  for (const { id, from, to, segment } of blobs) {
    const row = context
      .sql(
        "select id, kind, size, stored, segment, position, extent, cipher, data, seal from blobs where id = ? and cipher = ?",
      )
      .get(id, from) as unknown as BlobRow | undefined;
    if (row === undefined || (segment !== undefined && row.segment !== segment)) continue;
    // A new seal must not cover damage.
    if (!matchesSeal(row.seal, sealBlob(row))) throw damagedRow(`blob ${id.toString(16)}`);
    const seal = sealBlob({ ...row, cipher: to });
    context.sql("update blobs set cipher = ?, seal = ? where id = ?").run(to, seal, id);
    changed += 1;
  }
  return { changed };
}
