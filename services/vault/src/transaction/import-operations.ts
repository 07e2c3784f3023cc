// Imports of a restore inside the writer. A bucket has a hidden name until all of its versions are there.
import { encodeKey, type VersionRow } from "../index/records.ts";
import { sealBucket } from "../index/seal.ts";
import { listBlobPartValues } from "../index/sealed-values.ts";
import type { BlobId, BlobRecord } from "../model/blob.ts";
import { type Bucket, isHiddenBucket } from "../model/bucket.ts";
import type { ImportedVersion } from "../model/import.ts";
import type { JobProgress } from "../model/job.ts";
import { StoreError } from "../model/store-error.ts";
import { insertBlob, shareBlob } from "./blob-rows.ts";
import { requireNotFederated } from "./federation-operations.ts";
import { type AdvanceJobOperation, applyAdvanceJob } from "./job-operations.ts";
import { setVector } from "./vector-rows.ts";
import { insertCurrent, insertOlder, removeCurrent, removeOlder } from "./version-rows.ts";
import { VERSION_COLUMNS } from "../index/schema.ts";
import type { BucketState, WriterContext } from "./writer-context.ts";

type JobStep = ReturnType<typeof applyAdvanceJob>;

/** Creates the hidden bucket of an import, unless it exists. */
export interface ImportBucketOperation {
  type: "importBucket";
  /** With the hidden name. */
  bucket: Bucket;
}

/** Adds versions of a hidden bucket, the oldest of each key first. */
export interface ImportVersionsOperation {
  type: "importVersions";
  bucket: string;
  versions: readonly ImportedVersion[];
  /** The progress of the job: both are committed, or neither. */
  step: AdvanceJobOperation;
}

/** Gives a hidden bucket its name. Refused if another bucket has it. */
export interface PublishBucketOperation {
  type: "publishBucket";
  bucket: string;
  name: string;
  step: AdvanceJobOperation;
}

/** Removes a hidden bucket, at most so many versions of it at once. */
export interface DropImportOperation {
  type: "dropImport";
  bucket: string;
  versionsMax: number;
}

/** Applies the creation of a hidden bucket. */
export function applyImportBucket(
  context: WriterContext,
  { bucket }: ImportBucketOperation,
): BucketState {
  requireHidden(bucket.name);
  const existing = context.buckets.get(bucket.name);
  if (existing !== undefined) return existing;
  if (context.buckets.size >= context.limits.bucketsMax) {
    throw new StoreError(
      "TooManyBuckets",
      `The limit of ${context.limits.bucketsMax} buckets is reached`,
    );
  }
  const document = JSON.stringify(bucket);
  const { lastInsertRowid } = context
    .sql("insert into buckets (name, document, seal) values (?, ?, ?)")
    .run(bucket.name, document, sealBucket(bucket.name, document));
  const state = { id: Number(lastInsertRowid), bucket };
  context.buckets.set(bucket.name, state);
  return state;
}

/** Applies an import of versions. Nothing is emitted or triggered. Throws `OperationAborted` if a shared blob is gone. */
export function applyImportVersions(
  context: WriterContext,
  { bucket, versions, step }: ImportVersionsOperation,
): JobStep {
  requireHidden(bucket);
  const state = context.requireBucket(bucket);
  for (const version of versions) importVersion(context, state, version);
  return applyAdvanceJob(context, step);
}

/** Applies the end of an import. */
export function applyPublishBucket(
  context: WriterContext,
  { bucket: hidden, name, step }: PublishBucketOperation,
): { state: BucketState; progress: JobProgress } {
  requireHidden(hidden);
  const { id, bucket: before } = context.requireBucket(hidden);
  if (context.buckets.has(name)) {
    throw new StoreError("BucketAlreadyExists", "The requested bucket name is not available.", {
      bucket: name,
    });
  }
  requireNotFederated(context, name);
  // Before the map of the buckets, which is not undone, is changed.
  const { progress } = applyAdvanceJob(context, step);
  const bucket = { ...before, name };
  const document = JSON.stringify(bucket);
  context
    .sql("update buckets set name = ?, document = ?, seal = ? where id = ?")
    .run(name, document, sealBucket(name, document), id);
  context.buckets.delete(hidden);
  const state = { id, bucket };
  context.buckets.set(name, state);
  return { state, progress };
}

/** Applies the removal of a hidden bucket. `isGone` is false if versions are left. Locks do not apply: it never appeared. */
export function applyDropImport(
  context: WriterContext,
  { bucket, versionsMax }: DropImportOperation,
): { isGone: boolean } {
  requireHidden(bucket);
  const state = context.buckets.get(bucket);
  if (state === undefined) return { isGone: true };
  const { id } = state;
  const live = context
    .sql(`select ${VERSION_COLUMNS} from current where bucket = ? limit ?`)
    .all(id, versionsMax) as unknown as VersionRow[];
  for (const row of live) removeCurrent(context, row);
  const older = context
    .sql(`select ${VERSION_COLUMNS}, marker from versions where bucket = ? limit ?`)
    .all(id, versionsMax - live.length) as unknown as VersionRow[];
  for (const row of older) removeOlder(context, row);
  if (live.length + older.length >= versionsMax) return { isGone: false };
  context.sql("delete from buckets where id = ?").run(id);
  context.buckets.delete(bucket);
  return { isGone: true };
}

function importVersion(
  context: WriterContext,
  state: BucketState,
  { key: name, content, vector, noncurrentSince, isLive, row }: ImportedVersion,
): void {
  const key = encodeKey(name);
  const full: VersionRow = {
    ...row,
    bucket: state.id,
    key,
    seq: context.nextSequence(),
    blob: content === undefined ? null : placeContent(context, content),
  };
  if (isLive) insertCurrent(context, full);
  else insertOlder(context, full, noncurrentSince);
  if (vector !== undefined) setVector(context, state, key, row.version, vector);
}

function placeContent(
  context: WriterContext,
  content: NonNullable<ImportedVersion["content"]>,
): BlobId {
  if ("share" in content) {
    if (shareBlob(context, content.share)) return content.share;
    throw new StoreError("OperationAborted", "A shared body was removed meanwhile");
  }
  const { blob, parts = [] } = content;
  insertBlob(context, blob);
  for (const { blob: part, start, ...rest } of parts) {
    insertBlob(context, part satisfies BlobRecord);
    context
      .sql("insert into blob_parts values (?, ?, ?, ?, ?, ?, ?, ?, ?)")
      .run(...listBlobPartValues({ ...rest, blob: part.id, owner: blob.id, start }));
  }
  return blob.id;
}

function requireHidden(name: string): void {
  if (!isHiddenBucket(name)) throw new TypeError(`${name} is not a hidden bucket`);
}
