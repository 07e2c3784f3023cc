// Jobs inside the writer: a step of a job, its progress and its lines are one commit.
import {
  isFinalState,
  type JobLine,
  type JobPosition,
  type JobProgress,
  type JobState,
} from "../model/job.ts";
import { StoreError } from "../model/store-error.ts";
import type { Outcome, WriterContext } from "./writer-context.ts";

/** Adds a job to the queue. */
export interface CreateJobOperation {
  type: "createJob";
  id: string;
  operation: string;
  maker: string;
  spec: string;
  progress: JobProgress;
  nowMs: number;
}

/** Begins a queued job, which sees what was committed before. */
export interface BeginJobOperation {
  type: "beginJob";
  id: string;
  nowMs: number;
}

/** An object whose operation precedes the step in its group. */
interface StepItem {
  key: string;
  version_id?: string | undefined;
  bytes: number;
}

/** Ends a step of a running job. */
export interface AdvanceJobOperation {
  type: "advanceJob";
  id: string;
  /** In the order of the operations before this one. */
  items: readonly StepItem[];
  /** Lines of objects without an operation. */
  lines: readonly JobLine[];
  /** Objects that the step has looked at, with those of `items` and `lines`. */
  matched: number;
  /** Bytes of objects without an operation that count as done. */
  counted: { done: number; bytes: number };
  position: JobPosition;
  reportsSuccesses: boolean;
  /** Replaces members of the progress. */
  change: Partial<Pick<JobProgress, "samples" | "report" | "reason" | "snapshot">>;
  /** The final state, if it is the last step. */
  state?: JobState;
  nowMs: number;
}

/** Changes the state or the rate of a job that has not ended. */
export interface ChangeJobOperation {
  type: "changeJob";
  id: string;
  state?: JobState;
  rate?: number;
  reason?: string;
  nowMs: number;
}

/** Removes jobs with their lines: one, or ended ones that are old or too many. */
export interface ForgetJobsOperation {
  type: "forgetJobs";
  id?: string;
  endedBeforeMs: number;
  jobsMax: number;
}

interface Row {
  number: number;
  state: JobState;
  progress: string;
}

const MESSAGE_CHARACTERS_MAX = 500;

/** Applies the creation of a job. */
export function applyCreateJob(context: WriterContext, job: CreateJobOperation): null {
  context
    .sql(
      "insert into jobs (id, operation, state, maker, created, sequence, spec, progress) values (?, ?, 'queued', ?, ?, 0, ?, ?)",
    )
    .run(job.id, job.operation, job.maker, job.nowMs, job.spec, JSON.stringify(job.progress));
  return null;
}

/** Applies the beginning of a job. Returns its sequence number. */
export function applyBeginJob(
  context: WriterContext,
  { id, nowMs }: BeginJobOperation,
): { sequence: number } {
  const { state, progress } = requireJob(context, id);
  if (state !== "queued") throw new StoreError("OperationAborted", "The job is not queued");
  const sequence = context.nextSequence();
  const started = { ...progress, startedMs: progress.startedMs ?? nowMs };
  context
    .sql(
      "update jobs set state = 'running', sequence = case when sequence = 0 then ? else sequence end, progress = ? where id = ?",
    )
    .run(sequence, JSON.stringify(started), id);
  const row = context.sql("select sequence from jobs where id = ?").get(id);
  return { sequence: Number(row?.["sequence"]) };
}

/** Applies the end of a step. */
export function applyAdvanceJob(
  context: WriterContext,
  step: AdvanceJobOperation,
): { progress: JobProgress; state: JobState } {
  const { number, state, progress } = requireJob(context, step.id);
  const outcomes = context.outcomes.slice(context.outcomes.length - step.items.length);
  const lines = [...step.lines, ...step.items.map((item, index) => judge(item, outcomes[index]!))];
  const failed = lines.filter(({ outcome }) => outcome === "failed").length;
  const bytes = step.items.reduce(
    (sum, item, index) => sum + (isDone(outcomes[index]!) ? item.bytes : 0),
    0,
  );
  const kept = step.reportsSuccesses ? lines : lines.filter(({ outcome }) => outcome === "failed");
  const text = kept.map((line) => `${JSON.stringify(line)}\n`).join("");
  if (text !== "") addLines(context, number, failed, text);
  const next: JobProgress = {
    ...progress,
    ...step.change,
    matched: progress.matched + step.matched,
    done: progress.done + lines.length - failed + step.counted.done,
    failed: progress.failed + failed,
    bytes: progress.bytes + bytes + step.counted.bytes,
    position: step.position,
    lineBytes: progress.lineBytes + Buffer.byteLength(text),
  };
  const after = step.state ?? state;
  save(context, step.id, after, next, isFinalState(after) ? step.nowMs : null);
  return { progress: next, state: after };
}

/** Applies a change of a job. */
export function applyChangeJob(
  context: WriterContext,
  { id, state, rate, reason, nowMs }: ChangeJobOperation,
): null {
  const job = requireJob(context, id);
  if (isFinalState(job.state)) {
    throw new StoreError("InvalidRequest", `The job has ended: it is ${job.state}.`);
  }
  const progress = {
    ...job.progress,
    ...(rate === undefined ? {} : { rate }),
    ...(reason === undefined ? {} : { reason }),
  };
  const after = state ?? job.state;
  save(context, id, after, progress, isFinalState(after) ? nowMs : null);
  return null;
}

/** Applies the removal of jobs. Returns their number. */
export function applyForgetJobs(
  context: WriterContext,
  { id, endedBeforeMs, jobsMax }: ForgetJobsOperation,
): { jobs: number } {
  const rows =
    id === undefined
      ? context
          .sql(
            "select number from jobs where ended is not null and (ended < ? or number <= " +
              "(select number from jobs order by number desc limit 1 offset ?)) limit 100",
          )
          .all(endedBeforeMs, jobsMax)
      : context.sql("select number from jobs where id = ?").all(id);
  for (const { number } of rows) {
    context.sql("delete from job_lines where job = ?").run(number!);
    context.sql("delete from jobs where number = ?").run(number!);
  }
  return { jobs: rows.length };
}

function requireJob(context: WriterContext, id: string) {
  const row = context.sql("select number, state, progress from jobs where id = ?").get(id);
  if (row === undefined) throw new StoreError("InvalidRequest", "The job does not exist.");
  const { number, state, progress } = row as unknown as Row;
  return { number, state, progress: JSON.parse(progress) as JobProgress };
}

function save(
  context: WriterContext,
  id: string,
  state: JobState,
  progress: JobProgress,
  endedMs: number | null,
): void {
  context
    .sql("update jobs set state = ?, progress = ?, ended = ? where id = ?")
    .run(state, JSON.stringify(progress), endedMs, id);
}

function addLines(context: WriterContext, job: number, failures: number, lines: string): void {
  context
    .sql(
      "insert into job_lines values (?1, (select coalesce(max(number), 0) + 1 from job_lines where job = ?1), ?2, ?3)",
    )
    .run(job, failures, lines);
}

// A copy whose source was deleted since it was looked up has no value to show.
function isDone(outcome: Outcome): boolean {
  if (!("value" in outcome)) return false;
  return (outcome.value as { gone?: boolean } | null)?.gone !== true;
}

function judge({ key, version_id }: StepItem, outcome: Outcome): JobLine {
  const named = { key, ...(version_id === undefined ? {} : { version_id }) };
  if (isDone(outcome)) return { ...named, outcome: "done" };
  const { code, message } =
    "code" in outcome
      ? outcome
      : { code: "NoSuchKey", message: "The object was deleted meanwhile" };
  return { ...named, outcome: "failed", code, message: message.slice(0, MESSAGE_CHARACTERS_MAX) };
}
