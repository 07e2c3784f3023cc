// Replication inside the writer: the tasks and marks of versions that rules send elsewhere.
import { encodeKey, type ObjectDetail, type VersionRow } from "../index/records.ts";
import { sealVersion } from "../index/seal.ts";
import {
  chooseReplicationRules,
  matchesReplication,
  type ReplicatedAttribute,
  type ReplicationMark,
} from "../model/replication.ts";
import { addTask } from "./task-rows.ts";
import type { BucketState, WriterContext } from "./writer-context.ts";

/** A version that is being written. */
interface NewVersion {
  readonly key: string;
  readonly version: string;
  readonly tags: string | null;
  readonly isMarker: boolean;
  readonly nowMs: number;
}

const PENDING: ReplicationMark = { state: "PENDING" };

/** Adds a task for each rule of a new version, and returns its detail with their marks. */
export function planReplication(
  context: WriterContext,
  { id: bucket, bucket: { settings } }: BucketState,
  { key, version, tags, isMarker, nowMs }: NewVersion,
  detail: string,
): string {
  if (settings.replication === undefined) return detail;
  const chosen = chooseReplicationRules(settings.replication, {
    key,
    tags: readTags(tags),
    isMarker,
    hasNamedKey: hasNamedKey(JSON.parse(detail) as ObjectDetail),
  });
  if (chosen.length === 0) return detail;
  for (const { id: rule } of chosen) {
    addTask(context, { kind: "replicate", rule, bucket, key: encodeKey(key), version, nowMs });
  }
  const replication = Object.fromEntries(chosen.map(({ id }) => [id, PENDING]));
  return JSON.stringify({ ...(JSON.parse(detail) as ObjectDetail), replication });
}

/**
 * Adds tasks for the change of an attribute: of versions that rules have sent or will send, and of replicas whose changes are
 * sent back. Returns the detail with the new marks.
 */
export function planAttribute(
  context: WriterContext,
  { id: bucket, bucket: { settings } }: BucketState,
  row: VersionRow,
  attribute: ReplicatedAttribute,
  nowMs: number,
): string {
  const detail = JSON.parse(row.detail) as ObjectDetail;
  const marks = { ...detail.replication };
  let isChanged = false;
  for (const rule of settings.replication?.rules ?? []) {
    const known = marks[rule.id] ?? findReplica(rule, row, detail);
    if (known === undefined || !rule.enabled) continue;
    const changed = [...new Set([...(known.changed ?? []), attribute])];
    marks[rule.id] = { ...known, state: "PENDING", changed };
    isChanged = true;
    const { key, version } = row;
    addTask(context, { kind: "replicate", rule: rule.id, bucket, key, version, nowMs });
  }
  return isChanged ? JSON.stringify({ ...detail, replication: marks }) : row.detail;
}

// A replica is at the other store under the same id: it came from there.
function findReplica(
  rule: Parameters<typeof matchesReplication>[0],
  row: VersionRow,
  detail: ObjectDetail,
): ReplicationMark | undefined {
  if (detail.replica !== true || !rule.replicaModifications) return undefined;
  const key = Buffer.from(row.key).toString("utf8");
  const tags = readTags(row.tags);
  const version = { key, tags, isMarker: false, hasNamedKey: hasNamedKey(detail) };
  return matchesReplication(rule, version)
    ? { state: "COMPLETED", version: row.version }
    : undefined;
}

/** True if a version is encrypted with a named key. */
export function hasNamedKey({ encryption }: ObjectDetail): boolean {
  return encryption?.type === "SSE-KMS";
}

/** Replaces the mark of one rule in the row of a version; `undefined` removes it. */
export function setMark(
  context: WriterContext,
  table: "current" | "versions",
  row: VersionRow,
  rule: string,
  mark: ReplicationMark | undefined,
): void {
  const { replication = {}, ...detail } = JSON.parse(row.detail) as ObjectDetail;
  const { [rule]: _, ...others } = replication;
  const marks = mark === undefined ? others : { ...others, [rule]: mark };
  const rest = Object.keys(marks).length === 0 ? {} : { replication: marks };
  const text = JSON.stringify({ ...detail, ...rest });
  if (text === row.detail) return;
  context
    .sql(`update ${table} set detail = ?, seal = ? where bucket = ? and key = ? and seq = ?`)
    .run(text, sealVersion({ ...row, detail: text }), row.bucket, row.key, row.seq);
}

function readTags(tags: string | null): Record<string, string> {
  return tags === null ? {} : (JSON.parse(tags) as Record<string, string>);
}
