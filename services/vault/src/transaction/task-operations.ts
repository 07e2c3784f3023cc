// Operations of tasks inside the writer: their ends, their retries, and the work of those that only change the index.
import type { WriterContext } from "./writer-context.ts";

/** A task as it was read. With another `seq` it has begun again meanwhile, and stays. */
export interface TaskAddress {
  readonly id: number;
  readonly seq: number;
}

/** Ends a task, unless it has begun again. */
export interface EndTaskOperation {
  type: "endTask";
  task: TaskAddress;
}

/** Plans the next attempt of a task, or gives it up (`isDead`). */
export interface RetryTaskOperation {
  type: "retryTask";
  task: TaskAddress;
  attempts: number;
  dueMs: number;
  isDead: boolean;
  reason: string;
}

/** Removes some vectors of a bucket; the task ends with the last one. */
export interface DropVectorsOperation {
  type: "dropVectors";
  task: TaskAddress;
  bucket: number;
  rowsMax: number;
}

const REASON_CHARACTERS_MAX = 500;

/** Applies the end of a task. */
export function applyEndTask(context: WriterContext, { task }: EndTaskOperation): null {
  context.sql("delete from tasks where id = ? and seq = ?").run(task.id, task.seq);
  return null;
}

/** Applies a plan of the next attempt. */
export function applyRetryTask(context: WriterContext, operation: RetryTaskOperation): null {
  const { task, attempts, dueMs, isDead, reason } = operation;
  context
    .sql("update tasks set attempts = ?, due = ?, state = ?, detail = ? where id = ? and seq = ?")
    .run(
      attempts,
      dueMs,
      isDead ? "dead" : "waiting",
      reason.slice(0, REASON_CHARACTERS_MAX),
      task.id,
      task.seq,
    );
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
