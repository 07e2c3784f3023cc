// Values of sealed rows, in the order of the columns that they are inserted into.
import type { BlobRow } from "./records.ts";
import { type SealedPart, sealBlob, sealPart } from "./seal.ts";

/** Columns of `blobs` for {@link listBlobValues}; `refs`, which the seal does not cover, is not among them. */
export const BLOB_COLUMNS = "id, kind, size, stored, segment, position, extent, cipher, data, seal";

/** The values of a row of `blobs`, with its seal. */
export function listBlobValues(row: BlobRow) {
  const { id, kind, size, stored, segment, position, extent, cipher, data } = row;
  return [id, kind, size, stored, segment, position, extent, cipher, data, sealBlob(row)];
}

/** The values of a row of `blob_parts`, with its seal; `owner` is the blob. */
export function listBlobPartValues(part: SealedPart) {
  const { owner, start, number, blob, size, etag, modified, checksum } = part;
  return [owner, start, number, blob, size, etag, modified, checksum, sealPart(part)];
}
