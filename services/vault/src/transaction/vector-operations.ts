// The vector of an existing version, inside the writer: set, replaced, removed, planned.
import { encodeKey } from "../index/records.ts";
import type { ObjectAddress } from "../model/object.ts";
import type { TaskAddress } from "../model/task.ts";
import { requireQuota } from "../model/quota.ts";
import { requireVersion } from "./attribute-operations.ts";
import { applyEndTask } from "./task-operations.ts";
import { addTask, countAddedTasks } from "./task-rows.ts";
import { hasVector, removeVector, setVector } from "./vector-rows.ts";
import type { WriterContext } from "./writer-context.ts";

/** Before the hex of the last key that a plan has looked at, in the detail of its task. */
const POSITION = "after ";

/** Sets the vector of a version; without `vector` (little-endian floats) removes it. */
export interface SetVectorOperation {
  type: "setVector";
  address: ObjectAddress;
  vector?: Uint8Array;
  /** The vector was computed by this task, which ends. It does not replace a vector that was given meanwhile. */
  task?: TaskAddress;
}

/** Adds tasks that compute the vectors of some live objects of a bucket that have none. */
export interface PlanEmbeddingsOperation {
  type: "planEmbeddings";
  /** It ends with the last object; until then it keeps the key of the last one that was looked at. */
  task: TaskAddress;
  bucket: number;
  /** Objects to look at. */
  objectsMax: number;
  /** Waiting tasks of the bucket above which nothing is added, and the time until the next look. */
  waitingMax: number;
  againMs: number;
  nowMs: number;
}

/** Applies the change of a vector. */
export function applySetVector(
  context: WriterContext,
  { address, vector, task }: SetVectorOperation,
): { versionId: string } {
  const state = context.requireBucket(address.bucket);
  const { row } = requireVersion(context, state.id, address);
  const key = encodeKey(address.key);
  if (task !== undefined) applyEndTask(context, { type: "endTask", task });
  if (vector === undefined) removeVector(context, state.id, key, row.version);
  else if (task === undefined || !hasVector(context, state.id, key, row.version)) {
    requireQuota(state.bucket, context.usage.read(state.id), vector.length, 0);
    setVector(context, state, key, row.version, vector);
  }
  return { versionId: row.version };
}

/** Applies a plan of vectors. */
export function applyPlanEmbeddings(
  context: WriterContext,
  { task, bucket, objectsMax, waitingMax, againMs, nowMs }: PlanEmbeddingsOperation,
): null {
  const own = context
    .sql("select detail from tasks where id = ? and seq = ?")
    .get(task.id, task.seq);
  if (own === undefined) return null;
  const waiting = context
    .sql(
      "select count(*) as n from (select 1 from tasks where state = 'waiting' and kind = 'embed' and bucket = ? and rule = '' limit ?)",
    )
    .get(bucket, waitingMax);
  if (Number(waiting?.["n"]) >= waitingMax) {
    context
      .sql("update tasks set due = ?, attempts = 0 where id = ?")
      .run(nowMs + againMs, task.id);
    return null;
  }
  const after = readPosition(String(own["detail"] ?? ""));
  const rows = context
    .sql("select key, version from current where bucket = ? and key > ? order by key limit ?")
    .all(bucket, after, objectsMax) as unknown as { key: Uint8Array; version: string }[];
  for (const { key, version } of rows) {
    if (hasVector(context, bucket, key, version)) continue;
    addTask(context, { kind: "embed", rule: "", bucket, key, version, nowMs });
  }
  if (rows.length < objectsMax) {
    applyEndTask(context, { type: "endTask", task });
    return null;
  }
  context
    .sql("update tasks set detail = ?, due = ?, attempts = 0 where id = ?")
    .run(POSITION + Buffer.from(rows.at(-1)!.key).toString("hex"), nowMs, task.id);
  countAddedTasks(context, "embed-existing", 1);
  return null;
}

// After a failed attempt there is its reason instead: the plan begins again, and passes over what has its vector.
function readPosition(detail: string): Buffer {
  return Buffer.from(detail.startsWith(POSITION) ? detail.slice(POSITION.length) : "", "hex");
}
