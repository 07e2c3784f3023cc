// What records say of themselves: enough to build the index anew.
import type { AttributeColumns } from "./new-object.ts";
import type { ManifestPart } from "../transaction/upload-rows.ts";
import type { ObjectChecksum } from "../model/object.ts";
import type { BlobCipher } from "../model/blob.ts";

/** Of every record: where its bytes belong, when they came (epoch ms), and how they are encrypted. */
interface CommonDescription {
  bucket: string;
  key: string;
  at: number;
  /** Bytes before encryption; set with `cipher`. */
  size?: number;
  cipher?: BlobCipher;
}

/** A body that was put in one piece. */
export interface ObjectDescription extends CommonDescription {
  versionId: string;
  /** Versioning was enabled when it came. */
  versioned: boolean;
  columns: AttributeColumns;
}

/** A part. */
export interface PartDescription extends CommonDescription {
  uploadId: string;
  partNumber: number;
}

/** An object of parts; the record has no data. */
export interface ManifestDescription extends ObjectDescription {
  parts: readonly ManifestPart[];
}

/** What a record's head says. */
export type RecordDescription = ObjectDescription | PartDescription | ManifestDescription;

/** What a record's trailer says. */
export interface RecordSummary {
  etag?: string;
  checksum?: ObjectChecksum;
}
