// Buckets as the store's callers see them.
import type { BucketSettings } from "./bucket-settings.ts";

/** The bucket of the access log, which storage makes itself. */
export const ACCESS_LOG_BUCKET = "system-access-logs";

/** The bucket of modules. */
export const MODULE_BUCKET = "system-modules";

/** The bucket of the reports of jobs. */
export const JOB_BUCKET = "system-jobs";

/** Buckets that only the store itself writes, and only root reads. */
const RESERVED_BUCKETS: ReadonlySet<string> = new Set([MODULE_BUCKET, JOB_BUCKET]);

/** True for a bucket that only the store itself writes. */
export function isReservedBucket(name: string): boolean {
  return RESERVED_BUCKETS.has(name);
}

/** True for a bucket that storage makes itself. */
export function isOwnBucket(name: string): boolean {
  return isReservedBucket(name) || name === ACCESS_LOG_BUCKET;
}

/** Begins the names of buckets that are being restored, which nobody sees. No other bucket can have such a name. */
const HIDDEN = ".";

/** The name of a bucket while the job `job` restores it. */
export function nameHiddenBucket(job: string, name: string): string {
  return `${HIDDEN}${job}/${name}`;
}

/** True for a bucket that is being restored. */
export function isHiddenBucket(name: string): boolean {
  return name.startsWith(HIDDEN);
}

/** The job that restores a hidden bucket. */
export function readHiddenJob(name: string): string {
  return name.slice(HIDDEN.length, name.indexOf("/"));
}

/** The owner of a bucket or an object. */
export interface Owner {
  id: string;
  displayName: string;
}

/** `Unset` until versioning is configured for the first time; a bucket never returns to it. */
type VersioningState = "Unset" | "Enabled" | "Suspended";

/** A bucket as of the last commit. Changes replace the object; it is never mutated. */
export interface Bucket {
  readonly name: string;
  readonly createdMs: number;
  readonly owner: Owner;
  readonly region: string;
  readonly versioning: VersioningState;
  /** Object lock is enabled; it cannot be disabled, and versioning can then not be suspended. */
  readonly objectLockEnabled: boolean;
  readonly settings: Readonly<Partial<BucketSettings>>;
}

/** Options of a new bucket. */
export interface CreateBucketRequest {
  bucket: string;
  owner: Owner;
  region: string;
  /** Enables versioning, too. Default false. */
  objectLockEnabled?: boolean;
  settings?: Partial<BucketSettings>;
}
