// The location of a body's bytes, as stored in the index.

/** The id of a blob, never reused, even after restarts. */
export type BlobId = number;

/**
 * A stored body. `size` is the size of the original bytes, `stored` that of the stored ones (larger if encrypted), `extent`
 * the size in its segment or file, including header and checksums.
 */
export interface BlobRecord {
  id: BlobId;
  size: number;
  stored: number;
  place: BlobPlace;
  extent: number;
  /** Set if it is encrypted: the data that leads to its key. */
  cipher?: BlobCipher;
}

/**
 * `inline`: in the index. `segment`: in a file with others. `file`: in its own file. `parts`: other blobs in sequence;
 * their `manifest` is a record in a segment, so that the index can be rebuilt. `remote`: in another store, with a `stub` like a
 * manifest and, unless it is unknown, its place there. `position` is the offset of the first frame.
 */
export type BlobPlace =
  | { kind: "inline"; data: Uint8Array }
  | { kind: "segment"; segment: number; position: number }
  | { kind: "file"; position: number }
  | { kind: "parts"; manifest?: { segment: number; position: number } }
  | {
      kind: "remote";
      stub: { segment: number; position: number };
      at: RemotePlace | undefined;
    };

/** A key in a remote. */
export interface RemoteKey {
  readonly remote: string;
  readonly bucket: string;
  readonly key: string;
}

/** The record of a blob in a remote. */
export interface RemotePlace extends RemoteKey {
  /** Size of the record. */
  readonly bytes: number;
  /** Offset of its first frame. */
  readonly position: number;
  /** The temporary local copy that a restore has made. */
  readonly copy?: BlobRecord | undefined;
}

/** A part of a composite blob. */
export interface BlobPart {
  number: number;
  start: number;
  size: number;
  blob: BlobId;
}

/** The key of a blob, wrapped with a key-encryption key. Binary values are base64. */
export interface WrappedCipher {
  type: "SSE-S3" | "SSE-KMS";
  /** Id of the key-encryption key: 16 hexadecimal digits. */
  kek: string;
  wrapped: string;
  /** `SSE-KMS`: id of the named key that `kek` is a version of. */
  key?: string;
  /** `SSE-KMS`: JSON of the encryption context. */
  context?: string;
  /** The key-encryption key in the head of the record, if it is another one. */
  head?: string;
}

/**
 * The way to the key of a blob: wrapped with a key-encryption key of the store (`SSE-S3`) or a version of a named key
 * (`SSE-KMS`), or derived from the customer's key and a salt (`SSE-C`). Binary values are base64.
 */
export type BlobCipher = WrappedCipher | { type: "SSE-C"; salt: string; keyMd5: string };
