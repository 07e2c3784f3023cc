// Buckets inside the writer: create, configure, delete.
import { sealBucket } from "../index/seal.ts";
import type { BucketSettingKind, BucketSettings } from "../model/bucket-settings.ts";
import type { Bucket, CreateBucketRequest } from "../model/bucket.ts";
import type { NotificationRule } from "../model/event.ts";
import { StoreError } from "../model/store-error.ts";
import type { VectorIndex } from "../model/vector.ts";
import { requireNotFederated } from "./federation-operations.ts";
import { addTask, hasTask } from "./task-rows.ts";
import { releaseUpload, type UploadRow } from "./upload-rows.ts";
import { hasVectors } from "./vector-rows.ts";
import type { BucketState, WriterContext } from "./writer-context.ts";

export interface CreateBucketOperation {
  type: "createBucket";
  request: CreateBucketRequest;
  nowMs: number;
}

/** Deletes an empty bucket with its open uploads. */
export interface DeleteBucketOperation {
  type: "deleteBucket";
  bucket: string;
}

/** Changes versioning, changes one setting (`undefined` removes it), or adds or removes a subscription. */
export interface ConfigureBucketOperation {
  type: "configureBucket";
  bucket: string;
  versioning?: "Enabled" | "Suspended";
  setting?: { kind: BucketSettingKind; document?: BucketSettings[BucketSettingKind] };
  /** Added to the bucket's subscriptions; replaces one with the same id. */
  subscription?: NotificationRule;
  /** The id of a subscription to remove, if it exists. */
  removedSubscription?: string;
  /** Time of the change, for its tasks. */
  nowMs?: number;
  /** Refused unless the bucket still has these settings. */
  expected?: Bucket | undefined;
}

const SETTING_BYTES_MAX = 1024 * 1024;
const SUBSCRIPTIONS_MAX = 100;

/** Applies the creation of a bucket. */
export function applyCreateBucket(
  context: WriterContext,
  { request, nowMs }: CreateBucketOperation,
): BucketState {
  const existing = context.buckets.get(request.bucket);
  if (existing !== undefined) {
    const isOwn = existing.bucket.owner.id === request.owner.id;
    throw isOwn
      ? new StoreError(
          "BucketAlreadyOwnedByYou",
          "Your previous request to create the named bucket succeeded and you already own it.",
          { bucket: request.bucket },
        )
      : new StoreError("BucketAlreadyExists", "The requested bucket name is not available.", {
          bucket: request.bucket,
        });
  }
  if (context.buckets.size >= context.limits.bucketsMax) {
    throw new StoreError(
      "TooManyBuckets",
      `The limit of ${context.limits.bucketsMax} buckets is reached`,
    );
  }
  requireNotFederated(context, request.bucket);
  const isLocked = request.objectLockEnabled === true;
  const bucket: Bucket = {
    name: request.bucket,
    createdMs: nowMs,
    owner: request.owner,
    region: request.region,
    versioning: isLocked ? "Enabled" : "Unset",
    objectLockEnabled: isLocked,
    settings: request.settings ?? {},
  };
  const document = JSON.stringify(bucket);
  const { lastInsertRowid } = context
    .sql("insert into buckets (name, document, seal) values (?, ?, ?)")
    .run(bucket.name, document, sealBucket(bucket.name, document));
  const state = { id: Number(lastInsertRowid), bucket };
  context.buckets.set(bucket.name, state);
  return state;
}

/** Applies the deletion of a bucket. */
export function applyDeleteBucket(
  context: WriterContext,
  { bucket: name }: DeleteBucketOperation,
): null {
  const { id } = context.requireBucket(name);
  for (const table of ["current", "versions"]) {
    if (context.sql(`select 1 from ${table} where bucket = ? limit 1`).get(id) !== undefined) {
      throw new StoreError("BucketNotEmpty", "The bucket you tried to delete is not empty", {
        bucket: name,
      });
    }
  }
  const uploads = context.sql("select id, bucket, completed from uploads where bucket = ?").all(id);
  for (const upload of uploads as unknown as UploadRow[]) releaseUpload(context, upload);
  context.sql("delete from tasks where bucket = ?").run(id);
  context.sql("delete from trigger_runs where bucket = ?").run(id);
  context.sql("delete from buckets where id = ?").run(id);
  context.bucketsWithVectors.delete(id);
  context.buckets.delete(name);
  return null;
}

/** Applies a change of settings. */
export function applyConfigureBucket(
  context: WriterContext,
  operation: ConfigureBucketOperation,
): BucketState {
  const before = context.requireBucket(operation.bucket);
  const { id } = before;
  requireUnchanged(before.bucket, operation.expected);
  let { bucket } = before;
  if (operation.versioning !== undefined) {
    bucket = setVersioning(bucket, operation.versioning);
  }
  if (operation.setting !== undefined) {
    if (operation.setting.kind === "vectorIndex") changeVectorIndex(context, before, operation);
    bucket = setDocument(bucket, operation.setting.kind, operation.setting.document);
    if (operation.setting.kind === "triggers") dropTriggerTasks(context, id, bucket);
  }
  if (operation.subscription !== undefined) {
    bucket = addSubscription(bucket, operation.subscription);
  }
  if (operation.removedSubscription !== undefined) {
    bucket = removeSubscription(bucket, operation.removedSubscription);
  }
  const document = JSON.stringify(bucket);
  context
    .sql("update buckets set document = ?, seal = ? where id = ?")
    .run(document, sealBucket(bucket.name, document), id);
  const state = { id, bucket };
  context.buckets.set(bucket.name, state);
  return state;
}

// Vectors of an index that was deleted are removed by a task: a new index would take them for its own.
function changeVectorIndex(
  context: WriterContext,
  { id, bucket }: BucketState,
  { setting, nowMs = 0 }: ConfigureBucketOperation,
): void {
  const wanted = setting?.document as VectorIndex | undefined;
  const before = bucket.settings.vectorIndex;
  const fail = (reason: string): StoreError =>
    new StoreError("InvalidBucketState", reason, { bucket: bucket.name });
  if (wanted?.embed === undefined)
    context.sql("delete from tasks where kind = 'embed-existing' and bucket = ?").run(id);
  if (wanted === undefined) {
    if (before === undefined || !hasVectors(context, id)) return;
    const task = { rule: "", bucket: id, key: new Uint8Array(), version: "", nowMs };
    addTask(context, { kind: "drop-vectors", ...task });
    return;
  }
  if (hasTask(context, "drop-vectors", id)) {
    throw fail("The vectors of the former index are still being removed.");
  }
  const isSame = before?.dimension === wanted.dimension && before.metric === wanted.metric;
  if (before !== undefined && !isSame && hasVectors(context, id))
    throw fail("The bucket has vectors: dimension and metric cannot be changed.");
  planEmbeddings(context, id, before, wanted, nowMs);
}

// Objects that are there already get their vectors by tasks as well, also if another source of texts is chosen: those without
// a vector may have one now.
function planEmbeddings(
  context: WriterContext,
  bucket: number,
  before: VectorIndex | undefined,
  { embed }: VectorIndex,
  nowMs: number,
): void {
  if (embed === undefined || JSON.stringify(embed) === JSON.stringify(before?.embed)) return;
  const task = { rule: "", bucket, key: new Uint8Array(), version: "", nowMs };
  addTask(context, { kind: "embed-existing", ...task });
}

// Tasks of triggers that are no longer there cannot run.
function dropTriggerTasks(context: WriterContext, id: number, { settings }: Bucket): void {
  const kept = (settings.triggers?.triggers ?? []).map((trigger) => trigger.id);
  context
    .sql(
      "delete from tasks where kind = 'trigger' and bucket = ? and rule not in (select value from json_each(?))",
    )
    .run(id, JSON.stringify(kept));
}

function requireUnchanged(bucket: Bucket, expected: Bucket | undefined): void {
  if (expected === undefined || JSON.stringify(bucket) === JSON.stringify(expected)) return;
  throw new StoreError("PreconditionFailed", "The settings of the bucket have changed.", {
    bucket: bucket.name,
    condition: "If-Match",
  });
}

function setVersioning(bucket: Bucket, versioning: "Enabled" | "Suspended"): Bucket {
  if (bucket.objectLockEnabled && versioning === "Suspended") {
    throw new StoreError(
      "InvalidBucketState",
      "An Object Lock configuration is present on this bucket, so the versioning state cannot be changed.",
      { bucket: bucket.name },
    );
  }
  if (bucket.settings.replication !== undefined && versioning === "Suspended") {
    throw new StoreError(
      "InvalidBucketState",
      "A replication configuration is present on this bucket, so you cannot change the versioning state. To change the versioning state, first delete the replication configuration.",
      { bucket: bucket.name },
    );
  }
  return { ...bucket, versioning };
}

function addSubscription(bucket: Bucket, rule: NotificationRule): Bucket {
  const before = bucket.settings.notification?.rules ?? [];
  const rules = [...before.filter(({ id }) => id !== rule.id), rule];
  if (rules.length > SUBSCRIPTIONS_MAX) {
    throw new StoreError(
      "InvalidBucketState",
      `The bucket has ${SUBSCRIPTIONS_MAX} subscriptions already.`,
      { bucket: bucket.name },
    );
  }
  return setDocument(bucket, "notification", { rules });
}

function removeSubscription(bucket: Bucket, removed: string): Bucket {
  const rules = (bucket.settings.notification?.rules ?? []).filter(({ id }) => id !== removed);
  return setDocument(bucket, "notification", rules.length === 0 ? undefined : { rules });
}

function setDocument(
  bucket: Bucket,
  kind: BucketSettingKind,
  document: BucketSettings[BucketSettingKind] | undefined,
): Bucket {
  const settings = { ...bucket.settings };
  if (document === undefined) {
    delete settings[kind];
    return { ...bucket, settings };
  }
  if (JSON.stringify(document).length > SETTING_BYTES_MAX) {
    throw new StoreError("EntityTooLarge", "The configuration is larger than 1 MiB");
  }
  if (kind === "objectLock" && bucket.versioning !== "Enabled") {
    throw new StoreError(
      "InvalidBucketState",
      "Versioning must be 'Enabled' on the bucket to apply a Object Lock configuration",
      { bucket: bucket.name },
    );
  }
  if (kind === "replication" && bucket.versioning !== "Enabled") {
    throw new StoreError(
      "InvalidRequest",
      "Versioning must be 'Enabled' on the bucket to apply a replication configuration",
      { bucket: bucket.name },
    );
  }
  Object.assign(settings, { [kind]: document });
  return {
    ...bucket,
    settings,
    objectLockEnabled: bucket.objectLockEnabled || kind === "objectLock",
  };
}
