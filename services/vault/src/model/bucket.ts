// Buckets as the store's callers see them.
import type { BucketSettings } from "./bucket-settings.ts";

/** Who a bucket or an object belongs to. */
export interface Owner {
  id: string;
  displayName: string;
}

/** `Unset` until versioning is configured for the first time; a bucket never goes back to it. */
export type VersioningState = "Unset" | "Enabled" | "Suspended";

/** A bucket as of the last commit. The object is replaced, never changed, when the bucket is. */
export interface Bucket {
  readonly name: string;
  readonly createdMs: number;
  readonly owner: Owner;
  readonly region: string;
  readonly versioning: VersioningState;
  /** Object lock was switched on; it cannot be switched off, nor can versioning be suspended then. */
  readonly objectLockEnabled: boolean;
  readonly settings: Readonly<Partial<BucketSettings>>;
}

/** What a bucket is made with. */
export interface CreateBucketRequest {
  bucket: string;
  owner: Owner;
  region: string;
  /** Switches versioning on, too. Default false. */
  objectLockEnabled?: boolean;
  settings?: Partial<BucketSettings>;
}
