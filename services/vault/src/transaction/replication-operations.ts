// Operations of replication inside the writer: the end of an attempt, and new attempts.
import { encodeKey, type ObjectDetail, type VersionRow } from "../index/records.ts";
import { chooseReplicationRules, type ReplicationMark } from "../model/replication.ts";
import { StoreError } from "../model/store-error.ts";
import type { TaskAddress } from "../model/task.ts";
import { emitEvent } from "./emit.ts";
import { hasNamedKey, setMark } from "./replication-rows.ts";
import { addTask, countAddedTasks } from "./task-rows.ts";
import { findCurrent, findOlder } from "./version-rows.ts";
import type { BucketState, WriterContext } from "./writer-context.ts";

/** The result of an attempt. */
export type ReplicationOutcome =
  | {
      readonly kind: "completed";
      /** At the destination. */
      readonly version: string | undefined;
      /** The destination orders versions by their arrival. */
      readonly isOrderedByArrival: boolean;
    }
  | { readonly kind: "failed"; readonly reason: string }
  /** The rule is gone, or the version. */
  | { readonly kind: "dropped" };

/** Ends an attempt of a task, with the mark of its version. */
export interface FinishReplicationOperation {
  type: "finishReplication";
  task: TaskAddress;
  bucket: string;
  key: string;
  version: string;
  rule: string;
  outcome: ReplicationOutcome;
  nowMs: number;
}

/** Sends a version again, or for the first time, by all rules that it belongs to. */
export interface InitiateReplicationOperation {
  type: "initiateReplication";
  bucket: string;
  key: string;
  /** The newest one by default, which may be a delete marker. */
  version: string | undefined;
  nowMs: number;
}

/** Lets failed tasks of replication run again. */
export interface RetryReplicationOperation {
  type: "retryReplication";
  /** Tasks whose last attempt was before. */
  beforeMs: number;
  tasksMax: number;
  nowMs: number;
}

/** Reports that a version has waited for longer than the threshold. */
export interface NoteLateReplicationOperation {
  type: "noteLateReplication";
  bucket: string;
  key: string;
  version: string;
  rule: string;
  nowMs: number;
}

/** Delay after which S3 counts a replication as late. */
export const LATE_MS = 15 * 60_000;
const REASON_CHARACTERS_MAX = 500;

interface Found {
  row: VersionRow;
  table: "current" | "versions";
}

/** Applies the end of an attempt. */
export function applyFinishReplication(
  context: WriterContext,
  operation: FinishReplicationOperation,
): null {
  const { task, bucket, rule, outcome, nowMs } = operation;
  const added = context
    .sql("select added from tasks where id = ? and seq = ?")
    .get(task.id, task.seq)?.["added"];
  // Otherwise it has begun again: another change waits.
  const isCurrent = added !== undefined;
  if (isCurrent) endTask(context, operation);
  const state = context.buckets.get(bucket);
  if (state === undefined) return null;
  const key = encodeKey(operation.key);
  const found = findVersion(context, state, key, operation.version);
  if (found === undefined) return null;
  const { replication = {} } = JSON.parse(found.row.detail) as ObjectDetail;
  const before = replication[rule];
  if (before === undefined) return null;
  const mark = chooseMark(before, outcome, isCurrent);
  setMark(context, found.table, found.row, rule, mark);
  tell(context, state, operation, found.row, before, isCurrent ? Number(added ?? nowMs) : nowMs);
  const isArrived = outcome.kind === "completed" && outcome.isOrderedByArrival;
  if (isArrived && before.version === undefined)
    sendNewestAgain(context, state, key, found, operation);
  return null;
}

function endTask(
  context: WriterContext,
  { task: { id }, outcome, nowMs }: FinishReplicationOperation,
): void {
  if (outcome.kind !== "failed") {
    context.sql("delete from tasks where id = ?").run(id);
    return;
  }
  context
    .sql(
      "update tasks set attempts = attempts + 1, due = ?, state = 'dead', detail = ? where id = ?",
    )
    .run(nowMs, outcome.reason.slice(0, REASON_CHARACTERS_MAX), id);
}

function chooseMark(
  before: ReplicationMark,
  outcome: ReplicationOutcome,
  isCurrent: boolean,
): ReplicationMark | undefined {
  switch (outcome.kind) {
    case "dropped":
      return isCurrent ? undefined : before;
    case "failed":
      return isCurrent ? { ...before, state: "FAILED" } : before;
    case "completed": {
      const { changed, isChecked: _, isLate: _late, version: known, ...rest } = before;
      const version = outcome.version ?? known;
      const there = version === undefined ? {} : { version };
      if (isCurrent) return { ...rest, ...there, state: "COMPLETED" };
      return { ...rest, ...there, ...(changed === undefined ? {} : { changed }) };
    }
    default:
      return outcome satisfies never;
  }
}

function tell(
  context: WriterContext,
  state: BucketState,
  { outcome, key, nowMs }: FinishReplicationOperation,
  row: VersionRow,
  before: ReplicationMark,
  addedMs: number,
): void {
  const isNewFailure = outcome.kind === "failed" && before.state !== "FAILED";
  const isLate = outcome.kind === "completed" && nowMs - addedMs > LATE_MS;
  const isDropped = outcome.kind === "dropped" && before.state === "PENDING";
  if (isNewFailure) emit(context, state, "OperationFailedReplication", key, row, nowMs);
  if (isLate) emit(context, state, "OperationReplicatedAfterThreshold", key, row, nowMs);
  // Its rule is gone.
  if (isDropped) emit(context, state, "OperationNotTracked", key, row, nowMs);
}

function emit(
  context: WriterContext,
  state: BucketState,
  what:
    | "OperationFailedReplication"
    | "OperationMissedThreshold"
    | "OperationNotTracked"
    | "OperationReplicatedAfterThreshold",
  key: string,
  { version: versionId, size: sizeBytes, etag }: VersionRow,
  nowMs: number,
): void {
  const subject = { key, versionId, sizeBytes, etag, seq: context.nextSequence() };
  emitEvent(context, state, `Replication:${what}`, subject, undefined, nowMs);
}

/** Applies the event about a version that has waited for too long, once. */
export function applyNoteLateReplication(
  context: WriterContext,
  { bucket, key, version, rule, nowMs }: NoteLateReplicationOperation,
): null {
  const state = context.buckets.get(bucket);
  const found = state && findVersion(context, state, encodeKey(key), version);
  if (state === undefined || found === undefined) return null;
  const mark = (JSON.parse(found.row.detail) as ObjectDetail).replication?.[rule];
  if (mark?.state !== "PENDING" || mark.isLate === true) return null;
  setMark(context, found.table, found.row, rule, { ...mark, isLate: true });
  emit(context, state, "OperationMissedThreshold", key, found.row, nowMs);
  return null;
}

// A version that has arrived late is the live one there, although it is not here: the newest one is sent once more.
function sendNewestAgain(
  context: WriterContext,
  state: BucketState,
  key: Uint8Array,
  { row }: Found,
  { rule, nowMs }: FinishReplicationOperation,
): void {
  const newest = findNewest(context, state, key);
  if (newest === undefined || newest.row.seq <= row.seq) return;
  const { replication } = JSON.parse(newest.row.detail) as ObjectDetail;
  // One that has not been sent yet comes after this one anyway.
  if (replication?.[rule]?.state !== "COMPLETED") return;
  setMark(context, newest.table, newest.row, rule, { state: "PENDING" });
  const { version } = newest.row;
  addTask(context, { kind: "replicate", rule, bucket: state.id, key, version, nowMs });
}

/** Applies the start of replications. Returns the number of rules. Throws NoSuchKey, NoSuchVersion or InvalidRequest. */
export function applyInitiateReplication(
  context: WriterContext,
  { bucket, key: name, version, nowMs }: InitiateReplicationOperation,
): { rules: number } {
  const state = context.requireBucket(bucket);
  const { replication } = state.bucket.settings;
  if (replication === undefined)
    throw new StoreError("InvalidRequest", "The bucket has no replication configuration");
  const key = encodeKey(name);
  const found =
    version === undefined
      ? findNewest(context, state, key)
      : findVersion(context, state, key, version);
  if (found === undefined) {
    const code = version === undefined ? "NoSuchKey" : "NoSuchVersion";
    throw new StoreError(code, "The specified version does not exist.", { bucket, key: name });
  }
  const { row } = found;
  const detail = JSON.parse(row.detail) as ObjectDetail;
  // A replica is where it came from.
  if (detail.replica === true) return { rules: 0 };
  const tags = row.tags === null ? {} : (JSON.parse(row.tags) as Record<string, string>);
  const rules = chooseReplicationRules(replication, {
    key: name,
    tags,
    isMarker: row.marker === 1,
    hasNamedKey: hasNamedKey(detail),
  });
  for (const { id: rule } of rules) {
    const before = detail.replication?.[rule];
    const marked = findVersion(context, state, key, row.version)!;
    setMark(context, marked.table, marked.row, rule, {
      ...before,
      state: "PENDING",
      isChecked: true,
    });
    addTask(context, {
      kind: "replicate",
      rule,
      bucket: state.id,
      key,
      version: row.version,
      nowMs,
    });
  }
  return { rules: rules.length };
}

/** Applies new attempts of failed tasks. Returns their number. */
export function applyRetryReplication(
  context: WriterContext,
  { beforeMs, tasksMax, nowMs }: RetryReplicationOperation,
): { tasks: number } {
  const rows = context
    .sql("select id from tasks where state = 'dead' and kind = 'replicate' and due <= ? limit ?")
    .all(beforeMs, tasksMax);
  for (const { id } of rows) {
    context
      .sql("update tasks set state = 'waiting', due = ?, seq = ? where id = ?")
      .run(nowMs, context.nextSequence(), id!);
  }
  countAddedTasks(context, "replicate", rows.length);
  return { tasks: rows.length };
}

function findVersion(
  context: WriterContext,
  { id }: BucketState,
  key: Uint8Array,
  version: string,
): Found | undefined {
  const current = findCurrent(context, id, key);
  if (current?.version === version) return { row: current, table: "current" };
  const row = findOlder(context, id, key, version);
  return row === undefined ? undefined : { row, table: "versions" };
}

function findNewest(
  context: WriterContext,
  state: BucketState,
  key: Uint8Array,
): Found | undefined {
  const current = findCurrent(context, state.id, key);
  if (current !== undefined) return { row: current, table: "current" };
  const newest = context
    .sql("select version from versions where bucket = ? and key = ? order by seq desc limit 1")
    .get(state.id, key)?.["version"];
  return newest === undefined ? undefined : findVersion(context, state, key, String(newest));
}
