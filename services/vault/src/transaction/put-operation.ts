// Puts inside the writer: conditions, lock and versioning are checked here, where nothing can change in between.
import { insertBlob, shareBlob } from "./blob-rows.ts";
import type { BlobId, BlobRecord } from "../model/blob.ts";
import { emitEvent } from "./emit.ts";
import type { Actor, ObjectEventName } from "../model/event.ts";
import { encodeHold, encodeKey, type ObjectDetail, type VersionRow } from "../index/records.ts";
import { type GeoPlacement, joinMarks, toMark } from "../model/geo.ts";
import type { GuestMark } from "../model/guest.ts";
import type { ReplicaSource } from "../model/replication.ts";
import type { TaskAddress, TriggerRun } from "../model/task.ts";
import { fireTriggers } from "./fire-triggers.ts";
import { planReplication } from "./replication-rows.ts";
import { applyEndTask } from "./task-operations.ts";
import { addTask } from "./task-rows.ts";
import { setVector } from "./vector-rows.ts";
import type { BucketState, WriterContext } from "./writer-context.ts";
import { computeDefaultRetention } from "./lock-guard.ts";
import type { Retention } from "../model/lock.ts";
import { StoreError } from "../model/store-error.ts";
import { requireQuota } from "../model/quota.ts";
import { insertBelow, listNewer, requireNewReplica } from "./version-order.ts";
import {
  findCurrent,
  findOlder,
  insertCurrent,
  removeCurrent,
  removeOlder,
  retireNewest,
} from "./version-rows.ts";
import type { WriteConditions } from "../model/object.ts";

/** A new object: all its columns except its place among the versions. */
export interface NewObject {
  bucket: string;
  key: string;
  nowMs: number;
  /** The version id if versioning is enabled. */
  versionId: string;
  size: number;
  etag: string;
  class: string;
  checksum: string | null;
  owner: string | null;
  tags: string | null;
  retention?: Retention;
  /** Null if the request does not set it. */
  hold: boolean | null;
  detail: string;
  /** Its vector: little-endian floats in base64. */
  vector?: string;
  /** Set if guests have written it; also in `detail`. */
  guest?: GuestMark;
  /** Set for a replica. */
  source?: ReplicaSource;
  conditions?: WriteConditions;
  event: ObjectEventName;
  actor?: Actor;
}

/** `share` refers to an existing blob; the result is `gone` if it does not exist any more. */
export interface PutOperation {
  type: "put";
  object: NewObject;
  content: { blob: BlobRecord } | { share: BlobId };
  /** The task whose effect it is, which ends. */
  task?: TaskAddress;
  /** The run of a trigger. */
  run?: TriggerRun;
}

/** The result of a put. */
export interface PutOutcome {
  versionId: string;
  gone?: boolean;
}

/** Applies a put. */
export function applyPut(context: WriterContext, operation: PutOperation): PutOutcome {
  const { object, content, task, run } = operation;
  if (
    task !== undefined &&
    !applyEndTask(context, { type: "endTask", task, ...(run && { run }) })
  ) {
    throw new StoreError("OperationAborted", "The object has changed since its task began");
  }
  const state = context.requireBucket(object.bucket);
  const key = encodeKey(object.key);
  const current = findCurrent(context, state.id, key);
  checkWriteConditions(object, current);
  if (state.bucket.settings.quota !== undefined) {
    const vectorBytes = Buffer.byteLength(object.vector ?? "", "base64");
    requirePutQuota(context, state, key, current, object.size + vectorBytes);
  }
  let blob: BlobId;
  if ("share" in content) {
    if (!shareBlob(context, content.share)) return { versionId: "null", gone: true };
    blob = content.share;
  } else {
    insertBlob(context, content.blob);
    blob = content.blob.id;
  }
  return { versionId: placeObject(context, state, key, current, object, blob) };
}

/** Checks the conditions against the live object `current`. Throws the error of the first one that fails. */
export function checkWriteConditions(
  { bucket, key, conditions }: NewObject,
  current: VersionRow | undefined,
): void {
  if (conditions?.ifMatch !== undefined) {
    if (current === undefined) {
      throw new StoreError("NoSuchKey", "The specified key does not exist.", { bucket, key });
    }
    if (conditions.ifMatch !== "*" && conditions.ifMatch !== current.etag) throw failed("If-Match");
  }
  if (conditions?.ifNoneMatch === undefined || current === undefined) return;
  if (conditions.ifNoneMatch === "*" || conditions.ifNoneMatch === current.etag) {
    throw failed("If-None-Match");
  }
}

/** Throws `QuotaExceeded` if the bucket has no room for a new version of `size` bytes, before anything changes. */
export function requirePutQuota(
  context: WriterContext,
  state: BucketState,
  key: Uint8Array,
  current: VersionRow | undefined,
  size: number,
): void {
  const replaced = findReplaced(context, state, key, current);
  const usage = context.usage.read(state.id);
  requireQuota(state.bucket, usage, size - (replaced?.size ?? 0), replaced === undefined ? 1 : 0);
}

function findReplaced(
  context: WriterContext,
  { id, bucket: { versioning } }: BucketState,
  key: Uint8Array,
  current: VersionRow | undefined,
): VersionRow | undefined {
  if (versioning === "Enabled") return undefined;
  if (current?.version === "null") return current;
  const older = versioning === "Unset" ? undefined : findOlder(context, id, key, "null");
  return older?.marker === 1 ? undefined : older;
}

/** Makes the object the newest version of its key. Returns its version id. */
export function placeObject(
  context: WriterContext,
  state: BucketState,
  key: Uint8Array,
  current: VersionRow | undefined,
  object: NewObject,
  blob: BlobId,
): string {
  const isVersioned = state.bucket.versioning === "Enabled";
  const { source } = object;
  if (source !== undefined) requireNewReplica(context, state, key, source);
  const version = source?.versionId ?? (isVersioned ? object.versionId : "null");
  const retention = chooseRetention(state, object);
  const detail = chooseDetail(context, state, version, object);
  const newer = source === undefined ? [] : listNewer(context, state.id, key, source);
  const modified = source?.modifiedMs ?? chooseTime(context, state, key, object.nowMs);
  if (newer.length === 0) makeRoomOnTop(context, state, key, current, version, object.nowMs);
  const seq = context.nextSequence();
  const row = {
    bucket: state.id,
    key,
    seq,
    version,
    size: object.size,
    etag: object.etag,
    modified,
    blob,
    class: object.class,
    checksum: object.checksum,
    owner: object.owner,
    tags: object.tags,
    retain_mode: retention?.mode ?? null,
    retain_until: retention?.untilMs ?? null,
    hold: encodeHold(object.hold),
    detail,
  };
  if (newer.length === 0) insertCurrent(context, row);
  else insertBelow(context, row, newer);
  placeVector(context, state, key, version, object);
  fireTriggers(context, state, key, version, object);
  const subject = {
    key: object.key,
    versionId: version,
    sizeBytes: object.size,
    etag: object.etag,
    seq,
  };
  emitEvent(context, state, object.event, subject, object.actor, object.nowMs);
  return version;
}

function makeRoomOnTop(
  context: WriterContext,
  state: BucketState,
  key: Uint8Array,
  current: VersionRow | undefined,
  version: string,
  nowMs: number,
): void {
  if (current !== undefined && current.version === version) {
    removeCurrent(context, current);
    return;
  }
  if (state.bucket.versioning === "Unset") return;
  retireNewest(context, state.id, key, nowMs);
  if (state.bucket.versioning === "Enabled") return;
  const replaced = findOlder(context, state.id, key, "null");
  if (replaced !== undefined) removeOlder(context, replaced);
}

// Replicas are not replicated again.
function chooseDetail(
  context: WriterContext,
  state: BucketState,
  version: string,
  { key, tags, nowMs, detail, source }: NewObject,
): string {
  const marked = markDetail(detail, state.bucket.settings.geoPlacement);
  if (source !== undefined) return marked;
  return planReplication(context, state, { key, version, tags, isMarker: false, nowMs }, marked);
}

/**
 * The time of a new version of a replicated bucket: after that of the version before, whose clock may be that of another store.
 * All stores order the versions of a key by it.
 */
export function chooseTime(
  context: WriterContext,
  { id, bucket: { settings } }: BucketState,
  key: Uint8Array,
  nowMs: number,
): number {
  if (settings.replication === undefined) return nowMs;
  const newest =
    findCurrent(context, id, key)?.modified ??
    context
      .sql("select modified from versions where bucket = ? and key = ? order by seq desc limit 1")
      .get(id, key)?.["modified"];
  return newest === undefined ? nowMs : Math.max(nowMs, Number(newest) + 1);
}

/** The detail of an object with the rule of its bucket, in addition to the mark that it may have. */
export function markDetail(detail: string, rule: GeoPlacement | undefined): string {
  if (rule === undefined) return detail;
  const parsed = JSON.parse(detail) as ObjectDetail;
  return JSON.stringify({ ...parsed, geo: joinMarks(parsed.geo, toMark(rule)) });
}

// A vector that was given must fit, also if the index of the bucket has changed since the request was read. Others are
// computed by a task.
function placeVector(
  context: WriterContext,
  state: BucketState,
  key: Uint8Array,
  version: string,
  { vector, nowMs }: NewObject,
): void {
  if (vector !== undefined) {
    setVector(context, state, key, version, Buffer.from(vector, "base64"));
    return;
  }
  const { vectorIndex } = state.bucket.settings;
  if (vectorIndex?.embed === undefined) return;
  addTask(context, { kind: "embed", rule: "", bucket: state.id, key, version, nowMs });
}

function chooseRetention(state: BucketState, object: NewObject): Retention | undefined {
  if (!state.bucket.objectLockEnabled) {
    if (object.retention === undefined && object.hold === null) return undefined;
    throw new StoreError("InvalidRequest", "Bucket is missing Object Lock Configuration");
  }
  return (
    object.retention ?? computeDefaultRetention(state.bucket.settings.objectLock, object.nowMs)
  );
}

function failed(condition: string): StoreError {
  const message = "At least one of the pre-conditions you specified did not hold";
  return new StoreError("PreconditionFailed", message, { condition });
}
