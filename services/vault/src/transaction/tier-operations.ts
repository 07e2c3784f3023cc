// Versions that move to a remote, their restores and the end of those, inside the writer.
import type { BlobRecord } from "../model/blob.ts";
import type { ObjectEventName } from "../model/event.ts";
import type { ObjectAddress } from "../model/object.ts";
import type { RestoreMark } from "../model/remote.ts";
import { StoreError } from "../model/store-error.ts";
import type { TaskAddress } from "../model/task.ts";
import type { ObjectDetail, VersionRow } from "../index/records.ts";
import { sealVersion } from "../index/seal.ts";
import { listBlobPartValues } from "../index/sealed-values.ts";
import { requireVersion } from "./attribute-operations.ts";
import { insertBlob, releaseBlob, shareBlob } from "./blob-rows.ts";
import { emitEvent } from "./emit.ts";
import { findRemoteBlob, setRemoteCopy } from "./remote-rows.ts";
import { applyEndTask } from "./task-operations.ts";
import { addTask } from "./task-rows.ts";
import type { ManifestPart } from "./upload-rows.ts";
import type { BucketState, WriterContext } from "./writer-context.ts";

/** The new body of a version that moves: in one piece, or of parts. */
export interface MovedBody {
  blob: BlobRecord;
  /** Parts of a composite blob; those that stay keep their blob. */
  parts?: readonly { part: ManifestPart; moved?: BlobRecord }[];
}

/**
 * Replaces the body of a version by one in a remote, if the version still has the body that was copied. The announced keys
 * become part of the store. The old body is released; its bytes go after the last reader.
 */
export interface TransitionOperation {
  type: "transition";
  address: ObjectAddress;
  /** The body that was copied. */
  from: { seq: number; blob: number };
  body: MovedBody;
  storageClass: string;
  /** Tasks of the announced keys. */
  keys: readonly TaskAddress[];
  nowMs: number;
}

/** Requests a temporary copy of a version in a remote, or changes its end. */
export interface RequestRestoreOperation {
  type: "requestRestore";
  address: ObjectAddress;
  days: number;
  /** End of a copy that exists already. */
  untilMs: number;
  nowMs: number;
}

/** The copy of a version is complete: its blobs, for each body in a remote. */
export interface FinishRestoreOperation {
  type: "finishRestore";
  task: TaskAddress;
  address: ObjectAddress;
  copies: readonly { remote: number; copy: BlobRecord }[];
  untilMs: number;
  nowMs: number;
}

/** Drops the copy of a version. The bytes in the remote stay. */
export interface EndRestoreOperation {
  type: "endRestore";
  task: TaskAddress;
  address: ObjectAddress;
  nowMs: number;
}

/** Applies a move. False if the version has changed meanwhile: nothing is changed then. */
export function applyTransition(
  context: WriterContext,
  operation: TransitionOperation,
): { moved: boolean } {
  const { address, from, body, storageClass, keys, nowMs } = operation;
  const found = findVersion(context, address);
  if (found === undefined || found.row.seq !== from.seq || found.row.blob !== from.blob)
    return { moved: false };
  // Before anything changes: an upload that lasted until its key was given up has lost it.
  const isWaiting = ({ id, seq }: TaskAddress) =>
    context.sql("select 1 from tasks where id = ? and seq = ?").get(id, seq) !== undefined;
  if (!keys.every(isWaiting)) return { moved: false };
  for (const task of keys) applyEndTask(context, { type: "endTask", task });
  insertBody(context, body);
  const { restore: _, ...detail } = JSON.parse(found.row.detail) as ObjectDetail;
  changeRow(context, found, {
    blob: body.blob.id,
    class: storageClass,
    detail: JSON.stringify(detail),
  });
  releaseBlob(context, from.blob);
  tell(context, found.state, "LifecycleTransition", found.row, address.key, nowMs);
  return { moved: true };
}

/** Applies a request. Throws InvalidObjectState and RestoreAlreadyInProgress. */
export function applyRequestRestore(
  context: WriterContext,
  { address, days, untilMs, nowMs }: RequestRestoreOperation,
): { isRestored: boolean; untilMs: number | undefined; versionId: string } {
  const state = context.requireBucket(address.bucket);
  const { row, table } = requireVersion(context, state.id, address);
  const detail = JSON.parse(row.detail) as ObjectDetail;
  if (row.blob === null || listRemoteBlobs(context, row.blob).length === 0) {
    throw new StoreError(
      "InvalidObjectState",
      "Restore is not allowed for the object's current storage class",
    );
  }
  const { version: versionId } = row;
  const known = detail.restore;
  if (known !== undefined && known.untilMs === undefined)
    throw new StoreError("RestoreAlreadyInProgress", "Object restore is already in progress");
  const isRestored = known?.untilMs !== undefined && known.untilMs > nowMs;
  const restore: RestoreMark = isRestored ? { days, untilMs } : { days };
  const task = { rule: "", bucket: state.id, key: row.key, version: versionId, nowMs };
  if (isRestored) addTask(context, { ...task, kind: "end-restore", dueMs: untilMs });
  else addTask(context, { ...task, kind: "restore" });
  changeRow(context, { state, row, table }, { detail: JSON.stringify({ ...detail, restore }) });
  if (!isRestored) tell(context, state, "ObjectRestore:Post", row, address.key, nowMs);
  return { isRestored, untilMs: restore.untilMs, versionId };
}

/** Applies the end of the work. False if the version has changed meanwhile: the copies are not used then. */
export function applyFinishRestore(
  context: WriterContext,
  { task, address, copies, untilMs, nowMs }: FinishRestoreOperation,
): { isUsed: boolean } {
  if (!applyEndTask(context, { type: "endTask", task })) return { isUsed: false };
  const found = findVersion(context, address);
  const blob = found?.row.blob ?? null;
  if (found === undefined || blob === null) return { isUsed: false };
  const { state, row } = found;
  const remote = new Set(listRemoteBlobs(context, blob));
  if (copies.some((one) => !remote.has(one.remote))) return { isUsed: false };
  for (const { remote: id, copy } of copies) {
    const place = findRemoteBlob(context, id)!;
    if (place.copy !== null) releaseBlob(context, place.copy);
    insertBlob(context, copy);
    setRemoteCopy(context, place, copy.id);
  }
  const detail = JSON.parse(row.detail) as ObjectDetail;
  const restore: RestoreMark = { days: detail.restore?.days ?? 1, untilMs };
  changeRow(context, found, { detail: JSON.stringify({ ...detail, restore }) });
  const version = { rule: "", bucket: state.id, key: row.key, version: row.version, nowMs };
  addTask(context, { ...version, kind: "end-restore", dueMs: untilMs });
  tell(context, state, "ObjectRestore:Completed", row, address.key, nowMs);
  return { isUsed: true };
}

/** Applies the end of a copy. */
export function applyEndRestore(
  context: WriterContext,
  { task, address, nowMs }: EndRestoreOperation,
): null {
  if (!applyEndTask(context, { type: "endTask", task })) return null;
  const found = findVersion(context, address);
  if (found === undefined || found.row.blob === null) return null;
  const { restore, ...detail } = JSON.parse(found.row.detail) as ObjectDetail;
  if (restore?.untilMs === undefined || restore.untilMs > nowMs) return null;
  for (const id of listRemoteBlobs(context, found.row.blob)) {
    const place = findRemoteBlob(context, id);
    if (place === undefined || place.copy === null) continue;
    setRemoteCopy(context, place, null);
    releaseBlob(context, place.copy);
  }
  changeRow(context, found, { detail: JSON.stringify(detail) });
  tell(context, found.state, "ObjectRestore:Delete", found.row, address.key, nowMs);
  return null;
}

interface Found {
  state: BucketState;
  row: VersionRow;
  table: "current" | "versions";
}

// Undefined if it was deleted meanwhile.
function findVersion(context: WriterContext, address: ObjectAddress): Found | undefined {
  const state = context.buckets.get(address.bucket);
  if (state === undefined) return undefined;
  try {
    return { state, ...requireVersion(context, state.id, address) };
  } catch (error) {
    if (error instanceof StoreError && GONE.has(error.code)) return undefined;
    throw error;
  }
}

const GONE: ReadonlySet<string> = new Set(["NoSuchKey", "NoSuchVersion", "MethodNotAllowed"]);

function insertBody(context: WriterContext, { blob, parts = [] }: MovedBody): void {
  insertBlob(context, blob);
  let start = 0;
  for (const { part, moved } of parts) {
    if (moved !== undefined) insertBlob(context, moved);
    else shareBlob(context, part.blob);
    context
      .sql("insert into blob_parts values (?, ?, ?, ?, ?, ?, ?, ?, ?)")
      .run(...listBlobPartValues({ ...part, owner: blob.id, start }));
    start += part.size;
  }
}

// The blobs of a body that are in a remote.
function listRemoteBlobs(context: WriterContext, blob: number): number[] {
  return context
    .sql(
      "select blob from remote_blobs where blob = ?1 or blob in (select part from blob_parts where blob = ?1)",
    )
    .all(blob)
    .map((row) => Number(row["blob"]));
}

function changeRow(
  context: WriterContext,
  { row, table }: Found,
  changes: Partial<Pick<VersionRow, "blob" | "class" | "detail">>,
): void {
  const next: VersionRow = { ...row, ...changes };
  context
    .sql(
      `update ${table} set blob = ?, class = ?, detail = ?, seal = ? where bucket = ? and key = ? and seq = ?`,
    )
    .run(next.blob, next.class, next.detail, sealVersion(next), row.bucket, row.key, row.seq);
}

function tell(
  context: WriterContext,
  state: BucketState,
  name: ObjectEventName,
  { version: versionId, size: sizeBytes, etag }: VersionRow,
  key: string,
  nowMs: number,
): void {
  const seq = context.nextSequence();
  emitEvent(context, state, name, { key, versionId, sizeBytes, etag, seq }, undefined, nowMs);
}
