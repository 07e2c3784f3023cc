// Jobs in the index: their queue, their progress, their reports.
import type { IndexConnection } from "../index/schema.ts";
import type { JobItem, JobProgress, JobRow, JobState, StoredJobSpec } from "../model/job.ts";
import {
  findJob,
  findJobSpec,
  type ItemPage,
  type ItemQuery,
  listJobsIn,
} from "../query/list-jobs.ts";
import { encodeKey } from "../index/records.ts";
import type { AdvanceJobOperation } from "../transaction/job-operations.ts";
import type { Operation, OperationResult } from "../transaction/operations.ts";
import type { ServiceEnvironment } from "./object-service.ts";

const HISTORY_MS = 90 * 86_400_000;
const HISTORY_MAX = 1_000;

/** Stores jobs, and commits their steps. */
export class JobService {
  readonly #env: ServiceEnvironment;
  readonly #index: IndexConnection;

  constructor(environment: ServiceEnvironment, index: IndexConnection) {
    this.#env = environment;
    this.#index = index;
  }

  /** True while the writer's queue is more than half full. */
  get isCrowded(): boolean {
    const { waiting, waitingMax } = this.#env.writer;
    return waiting > waitingMax / 2;
  }

  /** Adds a job to the queue. Returns its id. */
  async create(
    operation: string,
    maker: string,
    spec: object,
    progress: JobProgress,
  ): Promise<string> {
    const { writer, now, takeVersionId } = this.#env;
    const id = takeVersionId();
    const job = { id, operation, maker, spec: JSON.stringify(spec), progress, nowMs: now() };
    await writer.submit({ type: "createJob", ...job });
    return id;
  }

  find(id: string): JobRow | undefined {
    return findJob(this.#index, id);
  }

  findSpec(id: string): StoredJobSpec | undefined {
    return findJobSpec(this.#index, id);
  }

  /** Jobs in a state, the oldest first. */
  listIn(state: JobState, jobsMax: number): JobRow[] {
    return listJobsIn(this.#index, state, jobsMax);
  }

  /** Jobs, the newest first. */
  list(
    page: { before: number | undefined; maker: string | undefined },
    jobsMax: number,
  ): Promise<JobRow[]> {
    return this.#env.readers.query("listJobs", page, jobsMax);
  }

  /** Texts of lines behind the number `after`. */
  listLines(job: number, after: number, rowsMax: number) {
    return this.#env.readers.query("listJobLines", job, after, rowsMax);
  }

  listItems(query: Omit<ItemQuery, "bucketId" | "isVersioned">, bucket: string): Promise<ItemPage> {
    const state = this.#env.buckets.requireState(bucket);
    const isVersioned = state.bucket.versioning !== "Unset";
    return this.#env.readers.query("listJobItems", { ...query, bucketId: state.id, isVersioned });
  }

  findItem(
    bucket: string,
    key: string,
    version: string | undefined,
    sequence: number,
  ): Promise<JobItem | undefined> {
    const { id } = this.#env.buckets.requireState(bucket);
    return this.#env.readers.query("findJobItem", id, encodeKey(key), version, sequence);
  }

  async begin(id: string): Promise<{ sequence: number }> {
    return this.#env.writer.submit({ type: "beginJob", id, nowMs: this.#env.now() });
  }

  /** Commits operations on objects and the progress of their job together. */
  advance(
    operations: readonly Operation[],
    step: Omit<AdvanceJobOperation, "type" | "nowMs">,
  ): {
    outcomes: Promise<PromiseSettledResult<unknown>[]>;
    last: Promise<OperationResult<AdvanceJobOperation>>;
  } {
    const last: AdvanceJobOperation = { type: "advanceJob", ...step, nowMs: this.#env.now() };
    return this.#env.writer.submitTogether(operations, last);
  }

  /** Changes the state or the rate of a job that has not ended. Throws InvalidRequest otherwise. */
  async change(
    id: string,
    change: { state?: JobState; rate?: number; reason?: string },
  ): Promise<void> {
    await this.#env.writer.submit({ type: "changeJob", id, ...change, nowMs: this.#env.now() });
  }

  /** Removes a job with its lines. */
  async remove(id: string): Promise<void> {
    await this.#env.writer.submit({ type: "forgetJobs", id, endedBeforeMs: 0, jobsMax: 0 });
  }

  /** Removes ended jobs that are older than 90 days, or beyond the last 1 000. */
  async forgetOld(): Promise<void> {
    const endedBeforeMs = this.#env.now() - HISTORY_MS;
    const operation = { type: "forgetJobs", endedBeforeMs, jobsMax: HISTORY_MAX } as const;
    for (let jobs = 1; jobs > 0;) ({ jobs } = await this.#env.writer.submit(operation));
  }
}
