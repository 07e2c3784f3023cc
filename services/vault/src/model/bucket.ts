// Buckets as the store's callers see them: what they are, and the documents that configure them.
import type { LifecycleConfiguration } from "./lifecycle.ts";
import type { NotificationRule } from "./event.ts";
import type { ObjectLockConfiguration } from "./lock.ts";
import type { BucketQuota } from "./usage.ts";

/** Who a bucket or an object belongs to. */
export interface Owner {
  id: string;
  displayName: string;
}

/** `Unset` until versioning is configured for the first time; a bucket never goes back to it. */
export type VersioningState = "Unset" | "Enabled" | "Suspended";

/** Any document that JSON can hold; the store keeps it as it was given and does not look inside. */
export type OpaqueDocument =
  | null
  | boolean
  | number
  | string
  | readonly OpaqueDocument[]
  | { readonly [name: string]: OpaqueDocument };

/**
 * One document for each kind of bucket configuration. The caller has validated them; the store acts on `lifecycle`,
 * `notification`, `objectLock` and `quota` itself and only keeps the others. As JSON each is at most 1 MiB.
 */
export interface BucketSettingDocuments {
  lifecycle: LifecycleConfiguration;
  notification: { rules: readonly NotificationRule[] };
  objectLock: ObjectLockConfiguration;
  quota: BucketQuota;
  policy: OpaqueDocument;
  cors: OpaqueDocument;
  website: OpaqueDocument;
  encryption: OpaqueDocument;
  publicAccessBlock: OpaqueDocument;
  ownership: OpaqueDocument;
  tagging: OpaqueDocument;
  acl: OpaqueDocument;
  logging: OpaqueDocument;
  accelerate: OpaqueDocument;
  requestPayment: OpaqueDocument;
  coldTier: OpaqueDocument;
  geoPlacement: OpaqueDocument;
  triggers: OpaqueDocument;
}

/** The kinds of bucket configuration. */
export type BucketSettingKind = keyof BucketSettingDocuments;

/** A bucket as of the last commit. The object is replaced, never changed, when the bucket is. */
export interface Bucket {
  readonly name: string;
  readonly createdMs: number;
  readonly owner: Owner;
  readonly region: string;
  readonly versioning: VersioningState;
  /** Object lock was switched on; it cannot be switched off, nor can versioning be suspended then. */
  readonly objectLockEnabled: boolean;
  readonly settings: Readonly<Partial<BucketSettingDocuments>>;
}

/** What a bucket is made with. */
export interface CreateBucketRequest {
  bucket: string;
  owner: Owner;
  region: string;
  /** Switches versioning on, too. Default false. */
  objectLockEnabled?: boolean;
  settings?: Partial<BucketSettingDocuments>;
}
