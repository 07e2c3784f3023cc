// Durable tasks as people see them: counted by rule, and the dead ones.
import { decodeKey } from "../index/records.ts";
import type { IndexConnection } from "../index/schema.ts";
import type { DeadTask, DeadTaskFilter, TaskCount, TaskKind } from "../model/task.ts";

const RULES_MAX = 1_000;

interface CountRow {
  kind: TaskKind;
  bucket: number;
  rule: string;
  waiting: number;
  dead: number;
  attempts: number;
  oldest: number | null;
}

interface DeadRow {
  id: number;
  kind: TaskKind;
  bucket: number;
  rule: string;
  key: Uint8Array;
  version: string;
  attempts: number;
  detail: string | null;
  due: number;
}

/** Counts the tasks of each rule; of the first 1 000 rules by kind and bucket. */
export function countTasks(index: IndexConnection): TaskCount[] {
  const rows = index
    .sql(
      "select kind, bucket, rule, sum(state = 'waiting') as waiting, sum(state = 'dead') as dead, max(attempts) as attempts, " +
        "min(case when state = 'waiting' then added end) as oldest from tasks group by kind, bucket, rule " +
        "order by kind, bucket, rule limit ?",
    )
    .all(RULES_MAX) as unknown as CountRow[];
  return rows.map(({ kind, bucket, rule, waiting, dead, attempts, oldest }) => {
    const oldestMs = oldest ?? undefined;
    return { kind, bucket, rule, waiting, dead, attemptsMax: attempts, oldestMs };
  });
}

/** Lists dead tasks with numbers above `afterId`. */
export function listDeadTasks(
  index: IndexConnection,
  { kind, bucket, rule }: Omit<DeadTaskFilter, "ids">,
  afterId: number,
  tasksMax: number,
): DeadTask[] {
  const rows = index
    .sql(
      "select id, kind, bucket, rule, key, version, attempts, detail, due from tasks where state = 'dead' and id > ?1 " +
        "and (?2 is null or kind = ?2) and (?3 is null or bucket = ?3) and (?4 is null or rule = ?4) order by id limit ?5",
    )
    .all(afterId, kind ?? null, bucket ?? null, rule ?? null, tasksMax) as unknown as DeadRow[];
  return rows.map(({ key, detail, due, ...row }) => ({
    ...row,
    key: decodeKey(key),
    reason: detail ?? "",
    failedMs: due,
  }));
}
