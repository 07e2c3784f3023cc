// Tasks inside the writer: work that a commit has caused.
import type { TaskAddress, TaskKind } from "../model/task.ts";
import type { WriterContext } from "./writer-context.ts";

/** A task about a bucket or a version. There is one at most for each kind, rule, bucket, key and version. */
export interface NewTask {
  readonly kind: TaskKind;
  readonly rule: string;
  readonly bucket: number;
  /** Empty, like the version, for a task about a bucket. */
  readonly key: Uint8Array;
  readonly version: string;
  /** 0 if the operation that causes it has no time. */
  readonly nowMs: number;
  /** It is due from now on by default. */
  readonly dueMs?: number;
}

/** Adds a task. One that waits already, or has failed, begins again. */
export function addTask(context: WriterContext, task: NewTask): TaskAddress {
  const { kind, rule, bucket, key, version, nowMs, dueMs = nowMs } = task;
  const seq = context.nextSequence();
  const row = context
    .sql(
      "insert into tasks (kind, rule, bucket, key, version, seq, due, added, attempts, state) values (?, ?, ?, ?, ?, ?, ?, ?, 0, 'waiting') " +
        "on conflict do update set seq = excluded.seq, due = excluded.due, added = excluded.added, attempts = 0, " +
        "state = 'waiting', detail = null returning id",
    )
    .get(kind, rule, bucket, key, version, seq, dueMs, nowMs === 0 ? null : nowMs);
  countAddedTasks(context, kind, 1);
  return { id: Number(row?.["id"]), seq };
}

/** Counts tasks that are due anew, so that their queue looks for them after the commit. */
export function countAddedTasks({ totals }: WriterContext, kind: TaskKind, count: number): void {
  const { addedTasks } = totals;
  totals.addedTasks = { ...addedTasks, [kind]: (addedTasks[kind] ?? 0) + count };
}

/** True if a bucket has a task of a kind. */
export function hasTask(context: WriterContext, kind: TaskKind, bucket: number): boolean {
  const text =
    "select 1 from tasks where kind = ? and rule = '' and bucket = ? and key = x'' and version = ''";
  return context.sql(text).get(kind, bucket) !== undefined;
}
