// The last runs of the triggers of a bucket, inside the writer.
import type { TriggerRun } from "../model/task.ts";
import type { WriterContext } from "./writer-context.ts";

/** Runs that are kept for each bucket. */
const RUNS_MAX = 100;

/** Adds a run, and removes the oldest beyond the last 100. */
export function addTriggerRun(context: WriterContext, bucket: number, run: TriggerRun): void {
  context
    .sql("insert into trigger_runs (bucket, document) values (?, ?)")
    .run(bucket, JSON.stringify(run));
  context
    .sql(
      "delete from trigger_runs where bucket = ?1 and id <= " +
        "(select id from trigger_runs where bucket = ?1 order by id desc limit 1 offset ?2)",
    )
    .run(bucket, RUNS_MAX);
}
