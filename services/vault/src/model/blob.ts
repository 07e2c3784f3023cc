// Where the bytes of a body lie, as the index remembers it.

/** Names a blob; never given twice, over restarts either. */
export type BlobId = number;

/**
 * A body on the disk. `size` is what its owner put in, `stored` what it became (larger when encrypted), `extent` the bytes
 * that it takes in its segment or file, header and checksums included.
 */
export interface BlobRecord {
  id: BlobId;
  size: number;
  stored: number;
  place: BlobPlace;
  extent: number;
  /** Set for what is encrypted: how to get at the key. */
  cipher?: BlobCipher;
}

/**
 * `inline`: in the index. `segment`: in a file with others. `file`: in one of its own. `parts`: other blobs one after
 * another; their `manifest` is a record in a segment, so that the index can be rebuilt. `position` is where the first frame
 * begins.
 */
export type BlobPlace =
  | { kind: "inline"; data: Uint8Array }
  | { kind: "segment"; segment: number; position: number }
  | { kind: "file"; position: number }
  | { kind: "parts"; manifest?: { segment: number; position: number } };

/** A part of a blob of parts. */
export interface BlobPart {
  number: number;
  start: number;
  size: number;
  blob: BlobId;
}

/**
 * How the key of a blob is found: wrapped under a key-encryption key of the store (`SSE-S3`), or from the customer's key
 * and a salt (`SSE-C`). Binary values are base64.
 */
export type BlobCipher =
  | { type: "SSE-S3"; kek: string; wrapped: string }
  | { type: "SSE-C"; salt: string; keyMd5: string };
