// Versions of a snapshot on their way into the store.
import type { BlobId, BlobRecord } from "./blob.ts";
import type { RetentionMode } from "./lock.ts";

/** A part of an imported body. */
export interface ImportedPart {
  readonly number: number;
  readonly start: number;
  readonly size: number;
  readonly etag: string;
  readonly modified: number;
  readonly checksum: string | null;
  readonly blob: BlobRecord;
}

/** A version with everything that it had, except its bucket and its place in the order of commits. */
export interface ImportedVersion {
  readonly key: string;
  /** Its columns in the index. */
  readonly row: {
    readonly version: string;
    readonly size: number;
    readonly etag: string;
    readonly modified: number;
    readonly class: string;
    readonly checksum: string | null;
    readonly owner: string | null;
    readonly tags: string | null;
    readonly retain_mode: RetentionMode | null;
    readonly retain_until: number | null;
    readonly hold: number;
    readonly detail: string;
    /** 1 for a delete marker, which has no content. */
    readonly marker: number;
  };
  readonly isLive: boolean;
  readonly noncurrentSince: number | null;
  /** A new body, of parts or not, or one that was imported before. */
  readonly content?:
    | { readonly blob: BlobRecord; readonly parts?: readonly ImportedPart[] }
    | { readonly share: BlobId }
    | undefined;
  readonly vector?: Uint8Array | undefined;
}
