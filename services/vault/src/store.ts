// The store: buckets, objects, versions and uploads, without a word of HTTP. This is all that the rest of the service sees.
import type { Acl } from "./model/acl.ts";
import type { QuarantineTotals } from "./blob/quarantine.ts";
import type { BucketSettingKind, BucketSettings } from "./model/bucket-settings.ts";
import type { Bucket, CreateBucketRequest } from "./model/bucket.ts";
import type { Actor, EventOutbox, NotificationRule } from "./model/event.ts";
import type { Retention } from "./model/lock.ts";
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
import type { StoreError } from "./model/store-error.ts";
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
import type { BucketUsage } from "./model/usage.ts";
import type { ListVersionsRequest, ListVersionsResult } from "./model/version.ts";
import type { DriveState } from "./upkeep/drive-monitor.ts";
import type { IndexCopyState } from "./upkeep/index-copier.ts";
import type { Maintenance } from "./upkeep/maintenance.ts";

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
    document: BucketSettings[Kind],
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
  setObjectAcl(address: ObjectAddress, acl: Acl, actor?: Actor): Promise<{ versionId: string }>;
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
