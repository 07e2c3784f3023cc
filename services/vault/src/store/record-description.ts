// The self-description of records: sufficient to rebuild the index.
import type { AttributeColumns } from "./new-object.ts";
import type { ManifestPart } from "../transaction/upload-rows.ts";
import type { ObjectChecksum } from "../model/object.ts";
import type { BlobCipher, RemotePlace } from "../model/blob.ts";

/** Common to all records: bucket and key, time (epoch ms), and encryption. */
interface CommonDescription {
  bucket: string;
  key: string;
  at: number;
  /** Bytes before encryption; set with `cipher`. */
  size?: number;
  cipher?: BlobCipher;
  /** The record itself is in a remote, with `stored` bytes of data. */
  remote?: RemotePlace & { stored: number };
}

/** A temporary local copy of a body in a remote, which is described there. */
export interface CopyDescription {
  copyOf: number;
}

/** A body in one piece. */
export interface ObjectDescription extends CommonDescription {
  versionId: string;
  /** Versioning was enabled when it was put. */
  versioned: boolean;
  columns: AttributeColumns;
}

/** A part of an upload, or of an object. */
export interface PartDescription extends CommonDescription {
  uploadId: string;
  partNumber: number;
}

/** An object of parts; the record has no data. */
export interface ManifestDescription extends ObjectDescription {
  parts: readonly ManifestPart[];
}

/** The description in the head of a record. */
export type RecordDescription = ObjectDescription | PartDescription | ManifestDescription;

/** The summary in the trailer of a record. */
export interface RecordSummary {
  etag?: string;
  checksum?: ObjectChecksum;
}
