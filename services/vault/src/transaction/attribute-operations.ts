// Changes of a version that do not affect its bytes, inside the writer: tags, ACL, retention, legal hold.
import type { Acl } from "../model/acl.ts";
import { emitEvent } from "./emit.ts";
import type { Actor, ObjectEventName } from "../model/event.ts";
import { encodeHold, encodeKey, type ObjectDetail, type VersionRow } from "../index/records.ts";
import { sealVersion } from "../index/seal.ts";
import type { WriterContext } from "./writer-context.ts";
import { requireRetentionChange } from "./lock-guard.ts";
import { planAttribute } from "./replication-rows.ts";
import type { Retention } from "../model/lock.ts";
import { StoreError } from "../model/store-error.ts";
import { findCurrent, findOlder } from "./version-rows.ts";
import type { KnownAttributes, ObjectAddress } from "../model/object.ts";

/** A change of a version. */
export type AttributeChange =
  | { kind: "tags"; tags: Readonly<Record<string, string>> }
  | { kind: "acl"; acl: Acl }
  | { kind: "retention"; retention?: Retention; bypassGovernance: boolean }
  | { kind: "legalHold"; on: boolean };

/** Changes one attribute of one version. */
export interface AttributeOperation {
  type: "attribute";
  address: ObjectAddress;
  change: AttributeChange;
  nowMs: number;
  actor?: Actor;
  /** Refused unless it is still this version, and the attribute to change still has this value. */
  expected?: KnownAttributes;
  /** Replication brings the change: it is not sent back. */
  isReplica?: boolean;
}

type ChangedColumns = Partial<
  Pick<VersionRow, "tags" | "detail" | "retain_mode" | "retain_until" | "hold">
>;

/** Applies the change of an attribute. */
export function applyAttribute(
  context: WriterContext,
  operation: AttributeOperation,
): { versionId: string } {
  const { address, change, nowMs } = operation;
  const state = context.requireBucket(address.bucket);
  const needsLock = change.kind === "retention" || change.kind === "legalHold";
  if (needsLock && !state.bucket.objectLockEnabled) {
    throw new StoreError("InvalidRequest", "Bucket is missing Object Lock Configuration");
  }
  const found = requireVersion(context, state.id, address);
  const { table } = found;
  requireUnchanged(found.row, operation);
  const planned =
    operation.isReplica === true
      ? found.row.detail
      : planAttribute(context, state, found.row, change.kind, nowMs);
  const row = { ...found.row, detail: planned };
  const set = (changes: ChangedColumns) => {
    const { tags, detail, retain_mode: mode, retain_until: until, hold } = { ...row, ...changes };
    const seal = sealVersion({ ...row, ...changes });
    context
      .sql(
        `update ${table} set tags = ?, detail = ?, retain_mode = ?, retain_until = ?, hold = ?, seal = ? ` +
          "where bucket = ? and key = ? and seq = ?",
      )
      .run(tags, detail, mode, until, hold, seal, row.bucket, row.key, row.seq);
  };
  switch (change.kind) {
    case "tags": {
      const isEmpty = Object.keys(change.tags).length === 0;
      set({ tags: isEmpty ? null : JSON.stringify(change.tags) });
      tell(context, operation, row, isEmpty ? "ObjectTagging:Delete" : "ObjectTagging:Put");
      break;
    }
    case "acl": {
      const detail = JSON.parse(row.detail) as ObjectDetail;
      set({ detail: JSON.stringify({ ...detail, acl: change.acl }) });
      tell(context, operation, row, "ObjectAcl:Put");
      break;
    }
    case "retention": {
      const { retention } = change;
      requireRetentionChange(row, retention, nowMs, change.bypassGovernance);
      set({ retain_mode: retention?.mode ?? null, retain_until: retention?.untilMs ?? null });
      break;
    }
    case "legalHold":
      set({ hold: encodeHold(change.on) });
      break;
    default:
      change satisfies never;
  }
  return { versionId: row.version };
}

/** The version of an address, the live one by default. Throws if it is missing or a delete marker. */
export function requireVersion(
  context: WriterContext,
  bucket: number,
  address: ObjectAddress,
): { row: VersionRow; table: "current" | "versions" } {
  const key = encodeKey(address.key);
  const current = findCurrent(context, bucket, key);
  const { versionId } = address;
  if (current !== undefined && (versionId === undefined || versionId === current.version)) {
    return { row: current, table: "current" };
  }
  if (versionId === undefined) {
    throw new StoreError("NoSuchKey", "The specified key does not exist.", {
      bucket: address.bucket,
      key: address.key,
    });
  }
  const row = findOlder(context, bucket, key, versionId);
  if (row === undefined) {
    throw new StoreError("NoSuchVersion", "The specified version does not exist.", {
      bucket: address.bucket,
      key: address.key,
      versionId,
    });
  }
  if (row.marker === 1) {
    throw new StoreError(
      "MethodNotAllowed",
      "The specified method is not allowed against this resource.",
      { deleteMarker: true, versionId, modifiedMs: row.modified },
    );
  }
  return { row, table: "versions" };
}

function requireUnchanged(row: VersionRow, { change, expected, address }: AttributeOperation) {
  if (expected === undefined) return;
  if (row.version === expected.versionId && isAsKnown(row, change.kind, expected)) return;
  throw new StoreError("PreconditionFailed", "The object has changed since it was read.", {
    bucket: address.bucket,
    key: address.key,
    condition: "If-Match",
  });
}

function isAsKnown(row: VersionRow, kind: AttributeChange["kind"], known: KnownAttributes) {
  switch (kind) {
    case "tags":
      return JSON.stringify(JSON.parse(row.tags ?? "{}")) === JSON.stringify(known.tags);
    case "retention": {
      const { mode = null, untilMs = null } = known.retention ?? {};
      return row.retain_mode === mode && row.retain_until === untilMs;
    }
    case "legalHold":
      return (row.hold === 1) === (known.legalHold ?? false);
    case "acl":
      return true;
    default:
      return kind satisfies never;
  }
}

function tell(
  context: WriterContext,
  { address, nowMs, actor }: AttributeOperation,
  row: VersionRow,
  name: ObjectEventName,
): void {
  const subject = {
    key: address.key,
    versionId: row.version,
    sizeBytes: row.size,
    etag: row.etag,
    seq: context.nextSequence(),
  };
  emitEvent(context, context.requireBucket(address.bucket), name, subject, actor, nowMs);
}
