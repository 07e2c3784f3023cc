// The store: buckets, objects, versions and uploads, without a word of HTTP. This is all that the rest of the service sees.
import type {
  Bucket,
  BucketSettingDocuments,
  BucketSettingKind,
  CreateBucketRequest,
} from "./model/bucket.ts";
import type { Actor, EventOutbox } from "./model/event.ts";
import type { Retention } from "./model/lock.ts";
import type {
  CompleteUploadRequest,
  CopyPartRequest,
  CreateUploadRequest,
  ListPartsResult,
  ListUploadsRequest,
  ListUploadsResult,
  ObjectPartsResult,
  PartResult,
  PutPartRequest,
  UploadAddress,
  UploadInfo,
} from "./model/upload.ts";
import type {
  CopyRequest,
  CopyResult,
  DeleteRequest,
  DeleteResult,
  GetRequest,
  HeadResult,
  ListRequest,
  ListResult,
  ObjectAddress,
  ObjectInfo,
  ObjectReader,
  PutRequest,
  PutResult,
  Upload,
} from "./model/object.ts";
import type { CompleteScrub } from "./upkeep/last-scrub.ts";
import type { QuarantineTotals } from "./blob/quarantine.ts";
import type { IndexCopyState } from "./upkeep/index-copier.ts";
import type { ScrubProgress, ScrubReport } from "./upkeep/scrubber.ts";
import type { DriveState } from "./upkeep/drive-monitor.ts";
import type { NotificationRule } from "./model/event.ts";
import type { LifecycleReport } from "./upkeep/lifecycle-engine.ts";
import type { StoreError } from "./model/store-error.ts";
import type { BucketUsage } from "./model/usage.ts";
import type { ListVersionsRequest, ListVersionsResult } from "./model/version.ts";

export type * from "./model/bucket.ts";
export type * from "./model/event.ts";
export type * from "./model/lifecycle.ts";
export type * from "./model/lock.ts";
export type * from "./model/upload.ts";
export type * from "./model/object.ts";
export type * from "./model/usage.ts";
export type * from "./model/version.ts";
export { StoreError, type StoreErrorCode, type StoreErrorDetails } from "./model/store-error.ts";

/**
 * An object store on local disks, with the semantics of the object API. Everything that resolves is durable; everything
 * refused rejects (or, where a method is not asynchronous, throws) with a `StoreError`.
 *
 * Keys are text of 1 to 1 024 bytes in UTF-8 and opaque: `..`, `//` and a trailing `/` mean nothing.
 */
export interface Store {
  /** `BucketAlreadyOwnedByYou` and `BucketAlreadyExists` by the owner's id. */
  createBucket(request: CreateBucketRequest): Promise<Bucket>;
  /** `BucketNotEmpty` while there is an object, a version or a delete marker. Open uploads are aborted. */
  deleteBucket(bucket: string): Promise<void>;
  /** From memory: cheap enough for each request. */
  findBucket(bucket: string): Bucket | undefined;
  /** As `findBucket`, but throws `NoSuchBucket`. */
  headBucket(bucket: string): Bucket;
  /** From memory, by name. */
  listBuckets(): readonly Bucket[];
  /** `InvalidBucketState` for suspending it in a bucket with object lock. */
  setBucketVersioning(bucket: string, state: "Enabled" | "Suspended"): Promise<void>;
  /** Replaces a document. `objectLock` switches object lock on and wants versioning to be enabled. */
  setBucketSetting<Kind extends BucketSettingKind>(
    bucket: string,
    kind: Kind,
    document: BucketSettingDocuments[Kind],
  ): Promise<void>;
  /** Adds to the bucket's `notification`, in place of a rule with the same id. `InvalidBucketState` beyond 100 of them. */
  addSubscription(bucket: string, rule: NotificationRule): Promise<void>;
  /** Removes a document; one that is not there is fine. */
  deleteBucketSetting(bucket: string, kind: BucketSettingKind): Promise<void>;

  /** Begins a put. Throws at once what can be known at once (`NoSuchBucket`, `KeyTooLongError`, `InsufficientStorage`, …). */
  beginPut(request: PutRequest): Upload<PutResult>;
  /** Opens an object, or a part of it, for reading. */
  getObject(request: GetRequest): Promise<ObjectReader>;
  headObject(request: GetRequest): Promise<HeadResult>;
  /** What is known of an object beside its bytes, which no customer's key is needed for: its tags, list, lock and owner. */
  describeObject(address: ObjectAddress): Promise<ObjectInfo>;
  deleteObject(request: DeleteRequest): Promise<DeleteResult>;
  /** Deletes up to 1 000 together; what one of them cannot does not keep the others. Results stand in the same order. */
  deleteObjects(requests: readonly DeleteRequest[]): Promise<(DeleteResult | StoreError)[]>;
  copyObject(request: CopyRequest): Promise<CopyResult>;
  listObjects(request: ListRequest): Promise<ListResult>;
  listVersions(request: ListVersionsRequest): Promise<ListVersionsResult>;

  /** Replaces the tags (at most 10) of a version; `{}` deletes them. */
  setObjectTags(
    address: ObjectAddress,
    tags: Readonly<Record<string, string>>,
    actor?: Actor,
  ): Promise<{ versionId: string }>;
  setObjectAcl(address: ObjectAddress, acl: unknown, actor?: Actor): Promise<{ versionId: string }>;
  /** `undefined` removes it. `AccessDenied` where it would weaken what protects the version. */
  setObjectRetention(
    address: ObjectAddress,
    retention: Retention | undefined,
    options?: { bypassGovernance?: boolean },
  ): Promise<{ versionId: string }>;
  setObjectLegalHold(address: ObjectAddress, on: boolean): Promise<{ versionId: string }>;
  /** The parts that an object was completed from; none for what was put in one piece. At most 1 000 a page. */
  listObjectParts(
    object: ObjectAddress,
    options?: { afterPartNumber?: number; maxParts?: number },
  ): Promise<ObjectPartsResult & { object: ObjectInfo }>;

  createUpload(request: CreateUploadRequest): Promise<UploadInfo>;
  /** Throws at once what can be known at once; that the upload exists is checked again at commit. */
  beginPart(request: PutPartRequest): Upload<PartResult>;
  copyPart(request: CopyPartRequest): Promise<PartResult & { sourceVersionId: string }>;
  /** Asked again after success, it gives the same answer for 24 h. */
  completeUpload(request: CompleteUploadRequest): Promise<PutResult>;
  /** `NoSuchUpload` for what was completed or aborted. */
  abortUpload(address: UploadAddress): Promise<void>;
  getUpload(address: UploadAddress): Promise<UploadInfo>;
  listParts(
    address: UploadAddress,
    options?: { afterPartNumber?: number; maxParts?: number },
  ): Promise<ListPartsResult>;
  listUploads(request: ListUploadsRequest): Promise<ListUploadsResult>;

  /** What is stored in a bucket, as of the last commit. A single row: cheap enough for the event loop. */
  readUsage(bucket: string): BucketUsage;
  /** What the store does for itself now and then, to be asked for at once. */
  readonly maintenance: Maintenance;
  /** Events of buckets with a `notification` document. */
  readonly events: EventOutbox;
  /** Totals and gauges of now, for metrics. */
  readStats(): StoreStats;
  /** Several drives as they are, by slot; empty where everything lies in one folder. */
  listDrives(): readonly DriveState[];
  /** A health check: what is wrong in a few words, or undefined. */
  check(): string | undefined;
  /** Waits for what is under way and closes; further calls reject with `ServiceUnavailable`. */
  close(): Promise<void>;
}

/** Rounds of upkeep. Each joins the one of its kind that is under way. */
export interface Maintenance {
  /** Carries out lifecycle rules. */
  expire(): Promise<LifecycleReport>;
  /** Notes files that nothing refers to, and removes those noted before. */
  collect(): Promise<void>;
  /** Moves what is alive out of the segment with the most garbage; resolves to the number of bodies moved. */
  compact(): Promise<number>;
  /** Reads everything against its checksums and moves files that nothing refers to into quarantine. */
  scrub(): Promise<ScrubReport>;
  /** The scrub that is under way, and the last one that came to its end. */
  readScrub(): ScrubState;
  /** Checks the index of a single drive and copies it; resolves to what is wrong with it. */
  copyIndex(): Promise<readonly string[]>;
  /** Looks at each of several drives: leaves out what is gone, takes back what has returned, heals what lacks something. */
  checkDrives(): Promise<void>;
}

/** Scrubbing as it is. */
export interface ScrubState {
  running?: ScrubProgress & { startedMs: number };
  /** Kept over restarts. */
  last?: CompleteScrub;
}

/** What the store counts. Totals are since the start, the rest is of now. */
export interface StoreStats {
  buckets: number;
  /** Live objects, without noncurrent versions. */
  objects: number;
  /** Bytes of all versions and parts, as their owners count them. */
  storageBytes: number;
  /** Group commits, the operations in them, and the seconds they took. */
  commits: number;
  committedOperations: number;
  commitSeconds: number;
  /** Bodies in memory on their way in. */
  stagingBytes: number;
  /** Bodies that wait for memory, and writes that wait for their commit. */
  waitingUploads: number;
  waitingWriters: number;
  openFiles: number;
  pendingEvents: number;
  droppedEvents: number;
  /** Blocks that did not match their checksum. */
  corruptBlocks: number;
  /** Bytes in segments that nothing refers to any more. */
  garbageBytes: number;
  /** Files that nothing refers to, kept until somebody has looked at them. */
  quarantine: QuarantineTotals;
  /** Rows of the index that did not match their checksum when they were read. */
  damagedRows: number;
  /** The copy of the index of a single drive. */
  indexCopy: IndexCopyState;
  freeBytes: number;
}
export { findExpiration, findUploadAbort } from "./model/lifecycle-rule.ts";
export type { CompleteScrub, DriveState, LifecycleReport, ScrubReport };
export { checkStore, type FsckReport } from "./fsck/check-store.ts";
export { openStore, type StoreOptions } from "./open-store.ts";
