// Operations of tasks inside the writer: their ends, their retries, and the work of those that only change the index.
import type { DeadTaskFilter, TaskAddress, TaskKind, TriggerRun } from "../model/task.ts";
import { countAddedTasks } from "./task-rows.ts";
import { addTriggerRun } from "./trigger-rows.ts";
import type { WriterContext } from "./writer-context.ts";

/** Ends a task, unless it has begun again. */
export interface EndTaskOperation {
  type: "endTask";
  task: TaskAddress;
  /** The run of a trigger that ends the task. */
  run?: TriggerRun;
}

/** Plans the next attempt of a task, or abandons it (`isDead`): then `dueMs` is the time of its last attempt. */
export interface RetryTaskOperation {
  type: "retryTask";
  task: TaskAddress;
  attempts: number;
  dueMs: number;
  isDead: boolean;
  /** Undefined keeps the reason of the attempt before. */
  reason: string | undefined;
  /** The failed run of a trigger. */
  run?: TriggerRun;
}

/** Starts dead tasks again, or removes them; those with the lowest numbers above `afterId` first. */
export interface SettleDeadTasksOperation {
  type: "settleDeadTasks";
  action: "retry" | "discard";
  filter: DeadTaskFilter;
  afterId: number;
  tasksMax: number;
  nowMs: number;
}

/** Removes some vectors of a bucket; the task ends with the last one. */
export interface DropVectorsOperation {
  type: "dropVectors";
  task: TaskAddress;
  bucket: number;
  rowsMax: number;
}

const REASON_CHARACTERS_MAX = 500;

/** Applies the end of a task. True unless it has begun again, or was removed. */
export function applyEndTask(context: WriterContext, { task, run }: EndTaskOperation): boolean {
  const found = context
    .sql("delete from tasks where id = ? and seq = ? returning bucket")
    .get(task.id, task.seq);
  if (found === undefined) return false;
  if (run !== undefined) addTriggerRun(context, Number(found["bucket"]), run);
  return true;
}

/** Applies a plan of the next attempt. */
export function applyRetryTask(context: WriterContext, operation: RetryTaskOperation): null {
  const { task, attempts, dueMs, isDead, reason, run } = operation;
  const found = context
    .sql(
      "update tasks set attempts = ?, due = ?, state = ?, detail = coalesce(?, detail) where id = ? and seq = ? returning bucket",
    )
    .get(
      attempts,
      dueMs,
      isDead ? "dead" : "waiting",
      reason?.slice(0, REASON_CHARACTERS_MAX) ?? null,
      task.id,
      task.seq,
    );
  if (run !== undefined && found !== undefined)
    addTriggerRun(context, Number(found["bucket"]), run);
  return null;
}

/** Applies the removal of vectors. */
export function applyDropVectors(
  context: WriterContext,
  { task, bucket, rowsMax }: DropVectorsOperation,
): { isDone: boolean } {
  const rows = context
    .sql(
      "delete from vectors where id in (select id from vectors where bucket = ? order by id limit ?) " +
        "returning length(data) as bytes",
    )
    .all(bucket, rowsMax);
  if (rows.length > 0) {
    const bytes = rows.reduce((sum, row) => sum + Number(row["bytes"]), 0);
    context.usage.edit(bucket).bytes -= bytes;
  }
  const isDone = rows.length < rowsMax;
  if (isDone) applyEndTask(context, { type: "endTask", task });
  return { isDone };
}

/** Applies a decision about dead tasks. `lastId` is that of the last one; undefined if there are no more. */
export function applySettleDeadTasks(
  context: WriterContext,
  { action, filter, afterId, tasksMax, nowMs }: SettleDeadTasksOperation,
): { tasks: number; lastId: number | undefined } {
  const { ids, kind = null, bucket = null, rule = null } = filter;
  const rows = context
    .sql(
      "select id, kind from tasks where state = 'dead' and id > ?1 and (?2 is null or kind = ?2) " +
        "and (?3 is null or bucket = ?3) and (?4 is null or rule = ?4) " +
        "and (?5 is null or id in (select value from json_each(?5))) order by id limit ?6",
    )
    .all(afterId, kind, bucket, rule, ids === undefined ? null : JSON.stringify(ids), tasksMax);
  for (const { id, kind: ownKind } of rows) {
    if (action === "discard") context.sql("delete from tasks where id = ?").run(id!);
    else {
      // With another sequence number, so that the end of an attempt that still runs does not count.
      context
        .sql(
          "update tasks set state = 'waiting', attempts = 0, due = ?, added = ?, seq = ? where id = ?",
        )
        .run(nowMs, nowMs, context.nextSequence(), id!);
      countAddedTasks(context, ownKind as TaskKind, 1);
    }
  }
  const isLast = rows.length < tasksMax;
  return { tasks: rows.length, lastId: isLast ? undefined : Number(rows.at(-1)!["id"]) };
}
