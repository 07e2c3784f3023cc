// Finds tasks whose time has come, rule by rule.
import type { IndexConnection } from "../index/schema.ts";
import type { TaskAddress, TaskKind } from "../model/task.ts";

const COLUMNS = "id, seq, kind, rule, bucket, key, version, attempts, added, due";

/** A task as it was read. */
export interface Task extends TaskAddress {
  readonly kind: TaskKind;
  readonly rule: string;
  readonly bucket: number;
  readonly key: Uint8Array;
  readonly version: string;
  readonly attempts: number;
  /** Epoch ms; null if the task is older than this information. */
  readonly added: number | null;
  /** Epoch ms. */
  readonly due: number;
}

/** A rule of a bucket. */
export interface DueRule {
  readonly bucket: number;
  readonly rule: string;
}

/** The first rule with waiting tasks behind `after`; behind the last one the first of all. */
export function findNextRule(
  index: IndexConnection,
  kind: TaskKind,
  after: DueRule | undefined,
): DueRule | undefined {
  if (after !== undefined) {
    const inBucket = index
      .sql(
        "select bucket, rule from tasks where state = 'waiting' and kind = ? and bucket = ? and rule > ? order by rule limit 1",
      )
      .get(kind, after.bucket, after.rule);
    const next = inBucket ?? findBucketAfter(index, kind, after.bucket);
    if (next !== undefined) return next as unknown as DueRule;
  }
  return findBucketAfter(index, kind, -1) as DueRule | undefined;
}

/** Tasks of a rule that are due, by their due time. */
export function findDueTasks(
  index: IndexConnection,
  kind: TaskKind,
  { bucket, rule }: DueRule,
  nowMs: number,
  tasksMax: number,
): Task[] {
  return index
    .sql(
      `select ${COLUMNS} from tasks ` +
        "where state = 'waiting' and kind = ? and bucket = ? and rule = ? and due <= ? order by due, seq limit ?",
    )
    .all(kind, bucket, rule, nowMs, tasksMax) as unknown as Task[];
}

/**
 * The first waiting tasks of a rule about the key of a task, at most `tasksMax`, by the order of the changes. The sign keeps
 * the index of all waiting tasks of the rule from being used in place of that of the key.
 */
export function findFirstTasks(
  index: IndexConnection,
  { kind, rule, bucket, key }: Task,
  tasksMax: number,
): Task[] {
  return index
    .sql(
      `select ${COLUMNS} from tasks where kind = ? and rule = ? and bucket = ? and key = ? and +state = 'waiting' ` +
        "order by seq limit ?",
    )
    .all(kind, rule, bucket, key, tasksMax) as unknown as Task[];
}

/** A task as it is now; `undefined` if it has ended, or has begun again. */
export function findWaitingTask(
  index: IndexConnection,
  { id, seq }: TaskAddress,
): Task | undefined {
  return index
    .sql(`select ${COLUMNS} from tasks where id = ? and seq = ? and state = 'waiting'`)
    .get(id, seq) as unknown as Task | undefined;
}

function findBucketAfter(index: IndexConnection, kind: TaskKind, bucket: number) {
  return index
    .sql(
      "select bucket, rule from tasks where state = 'waiting' and kind = ? and bucket > ? order by bucket, rule limit 1",
    )
    .get(kind, bucket);
}
