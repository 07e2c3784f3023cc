// A version as read from the index.
import type { VersionRow } from "../index/records.ts";
import type { BlobRecord } from "../model/blob.ts";

/** A version that was found. */
export interface FoundVersion {
  row: VersionRow;
  isLatest: boolean;
}

/** A version with the blob of its bytes, if it has one. */
export interface StoredVersion extends FoundVersion {
  blob: BlobRecord | undefined;
}
