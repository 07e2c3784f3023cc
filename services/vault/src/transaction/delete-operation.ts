// Deletions inside the writer: permanent, or by a delete marker.
import { emitEvent } from "./emit.ts";
import type { Actor, ObjectEventName } from "../model/event.ts";
import { encodeKey, type VersionRow } from "../index/records.ts";
import type { BucketState, WriterContext } from "./writer-context.ts";
import { requireDeletable } from "./lock-guard.ts";
import { chooseTime } from "./put-operation.ts";
import { planReplication } from "./replication-rows.ts";
import { insertBelow, listNewer, requireNewReplica } from "./version-order.ts";
import { StoreError } from "../model/store-error.ts";
import {
  findCurrent,
  findOlder,
  insertMarker,
  MARKER_COLUMNS,
  promoteNewest,
  removeCurrent,
  removeOlder,
  retireNewest,
} from "./version-rows.ts";
import type { DeleteRequest, DeleteResult } from "../model/object.ts";

/** A deletion. With `expect` it has no effect unless the version still has that sequence number. */
export interface DeleteOperation {
  type: "delete";
  request: DeleteRequest;
  nowMs: number;
  /** The id of a new delete marker. */
  markerId: string;
  expectSeq?: number;
  byLifecycle?: boolean;
}

/** Applies a deletion. */
export function applyDelete(context: WriterContext, operation: DeleteOperation): DeleteResult {
  const { request } = operation;
  const state = context.requireBucket(request.bucket);
  const key = encodeKey(request.key);
  const current = findCurrent(context, state.id, key);
  if (request.versionId !== undefined) {
    return deleteVersion(context, operation, state, key, current);
  }
  if (operation.expectSeq !== undefined && current?.seq !== operation.expectSeq) {
    return { deleteMarker: false };
  }
  checkConditions(request, current);
  if (request.source !== undefined) return placeMarkerReplica(context, operation, state, key);
  if (state.bucket.versioning === "Unset") {
    if (current !== undefined) {
      removeCurrent(context, current);
      tell(context, operation, state, "Delete", current);
    }
    return { deleteMarker: false };
  }
  const versionId = state.bucket.versioning === "Enabled" ? operation.markerId : "null";
  if (current !== undefined && current.version === versionId) removeCurrent(context, current);
  else retireNewest(context, state.id, key, operation.nowMs);
  const replaced = findOlder(context, state.id, key, versionId);
  if (replaced !== undefined) removeOlder(context, replaced);
  const { nowMs } = operation;
  const modified = chooseTime(context, state, key, nowMs);
  const isPlanned = operation.byLifecycle !== true;
  const marker = { key: request.key, version: versionId, tags: null, isMarker: true, nowMs };
  const detail = isPlanned ? planReplication(context, state, marker, "{}") : "{}";
  const seq = insertMarker(context, state.id, key, versionId, modified, detail);
  tell(context, operation, state, "DeleteMarkerCreated", {
    version: versionId,
    size: 0,
    etag: "",
    seq,
  });
  return { versionId, deleteMarker: true };
}

// A marker that arrives late goes below the versions that came after it.
function placeMarkerReplica(
  context: WriterContext,
  operation: DeleteOperation,
  state: BucketState,
  key: Uint8Array,
): DeleteResult {
  const source = operation.request.source!;
  const { versionId: version, modifiedMs: modified } = source;
  requireNewReplica(context, state, key, source);
  const detail = JSON.stringify({ replica: true });
  const newer = listNewer(context, state.id, key, source);
  let seq: number;
  if (newer.length === 0) {
    retireNewest(context, state.id, key, operation.nowMs);
    seq = insertMarker(context, state.id, key, version, modified, detail);
  } else {
    seq = context.nextSequence();
    const columns = { ...MARKER_COLUMNS, bucket: state.id, key, seq, version, modified, detail };
    insertBelow(context, { ...columns, marker: 1 }, newer);
  }
  tell(context, operation, state, "DeleteMarkerCreated", { version, size: 0, etag: "", seq });
  return { versionId: version, deleteMarker: true };
}

function deleteVersion(
  context: WriterContext,
  operation: DeleteOperation,
  state: BucketState,
  key: Uint8Array,
  current: VersionRow | undefined,
): DeleteResult {
  const { request, nowMs } = operation;
  const versionId = request.versionId ?? "null";
  const isCurrent = current?.version === versionId;
  const row = isCurrent ? current : findOlder(context, state.id, key, versionId);
  const found =
    row !== undefined && (operation.expectSeq === undefined || row.seq === operation.expectSeq);
  checkConditions(request, row?.marker === 1 ? undefined : row);
  if (!found) return describe(state, versionId, false);
  requireDeletable(row, nowMs, request.bypassGovernance === true);
  if (isCurrent) {
    removeCurrent(context, row);
    promoteNewest(context, state.id, key);
  } else {
    removeOlder(context, row);
    // The order of versions below a live object does not matter.
    if (current === undefined) promoteNewest(context, state.id, key);
  }
  tell(context, operation, state, "Delete", row);
  return describe(state, versionId, row.marker === 1);
}

function describe(state: BucketState, versionId: string, deleteMarker: boolean): DeleteResult {
  if (state.bucket.versioning === "Unset") return { deleteMarker };
  return { versionId, deleteMarker };
}

function checkConditions(
  { bucket, key, conditions }: DeleteRequest,
  row: VersionRow | undefined,
): void {
  if (conditions === undefined) return;
  const { ifMatch, ifModifiedMs, ifSizeBytes } = conditions;
  if (row === undefined) {
    if (ifMatch === undefined) return;
    throw new StoreError("NoSuchKey", "The specified key does not exist.", { bucket, key });
  }
  if (ifMatch !== undefined && ifMatch !== "*" && ifMatch !== row.etag) throw failed("If-Match");
  // Headers have whole seconds.
  const isModifiedAt =
    ifModifiedMs === undefined ||
    Math.floor(ifModifiedMs / 1000) === Math.floor(row.modified / 1000);
  if (!isModifiedAt) throw failed("x-amz-if-match-last-modified-time");
  if (ifSizeBytes !== undefined && ifSizeBytes !== row.size) throw failed("x-amz-if-match-size");
}

function tell(
  context: WriterContext,
  operation: DeleteOperation,
  state: BucketState,
  what: "Delete" | "DeleteMarkerCreated",
  row: Pick<VersionRow, "version" | "size" | "etag" | "seq">,
): void {
  const family = operation.byLifecycle === true ? "LifecycleExpiration" : "ObjectRemoved";
  const name: ObjectEventName = `${family}:${what}`;
  const actor: Actor | undefined = operation.request.actor;
  const { key } = operation.request;
  const subject = {
    key,
    versionId: row.version,
    sizeBytes: row.size,
    etag: row.etag,
    // The deletion is later than the version that it deletes.
    seq: what === "Delete" ? context.nextSequence() : row.seq,
  };
  emitEvent(context, state, name, subject, actor, operation.nowMs);
}

function failed(condition: string): StoreError {
  const message = "At least one of the pre-conditions you specified did not hold";
  return new StoreError("PreconditionFailed", message, { condition });
}
