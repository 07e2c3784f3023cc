// Runs jobs: two at a time, the oldest first, those of different people before a second one of the same person.
import { every, type RepeatingTimer } from "@platform/kernel/time";
import { identifyRequester } from "../access/stored-requester.ts";
import {
  isFinalState,
  type JobRow,
  type JobSpec,
  type JobState,
  OBJECT_JOBS,
  type StoredJobSpec,
} from "../model/job.ts";
import type { StoredRequester } from "../model/requester.ts";
import { S3Error } from "../model/s3-error.ts";
import type { InnerOperations } from "../s3/inner-operations.ts";
import type { ObjectJobs, PipelineRequest } from "../s3/context.ts";
import { JobRun, type JobRunOptions } from "./job-run.ts";
import type { Run } from "./run-steps.ts";

const RUNNING_MAX = 2;
const QUEUED_MAX = 1_000;
const FORGET_EVERY_MS = 3_600_000;
const RETRY_MS = 5_000;

interface Running {
  readonly job: JobRow;
  readonly run: Run;
  readonly stop: AbortController;
  readonly ended: Promise<void>;
}

/** Options of {@link JobEngine}. */
export interface JobEngineOptions extends Omit<JobRunOptions, "operations"> {
  /** Objects per second of jobs that name no rate. */
  readonly rate: number;
  /** Makes the run of a job that is not about objects. */
  readonly beginOther: (
    job: JobRow,
    spec: Exclude<StoredJobSpec, JobSpec>,
    signal: AbortSignal,
  ) => Run;
  /** Called when a job has ended or was removed. */
  readonly onEnd: () => void;
}

/** The members that a request of a job need not have. */
const DEFAULTS = {
  versions: "live",
  tags: {},
  isDryRun: false,
  failurePercentMax: 50,
  reportsSuccesses: false,
} as const;

/** The jobs of a store. Those that ran when the process ended continue. */
export class JobEngine implements ObjectJobs {
  readonly #options: JobEngineOptions;
  readonly #running = new Map<string, Running>();
  readonly #timer: RepeatingTimer;
  readonly #retry: RepeatingTimer;
  /** Jobs that are about to be changed: they do not start meanwhile. */
  readonly #held = new Set<string>();
  /** Jobs that are being added. */
  readonly #submitted = new Set<StoredJobSpec>();
  #isStopping = false;
  /** Set at the start. */
  #operations: InnerOperations | undefined;

  constructor(options: JobEngineOptions) {
    this.#options = options;
    this.#timer = every(
      FORGET_EVERY_MS,
      () => options.store.jobs.forgetOld(),
      () => undefined,
    );
    this.#retry = every(
      RETRY_MS,
      () => this.#startNext(),
      () => undefined,
    );
  }

  /** Continues the jobs that ran before, and starts queued ones. */
  start(operations: InnerOperations): void {
    this.#operations = operations;
    this.#startNext();
  }

  /** Numbers of jobs by state, without those that have ended. */
  get counts(): { running: number; queued: number } {
    const queued = this.#options.store.jobs.listIn("queued", QUEUED_MAX).length;
    return { running: this.#running.size, queued };
  }

  /** Adds a job to the queue. Returns its id. Throws SlowDown beyond 1 000 queued jobs. */
  async submit(spec: StoredJobSpec, rate = this.#options.rate): Promise<string> {
    const { jobs } = this.#options.store;
    const queued = jobs.listIn("queued", QUEUED_MAX).length + this.#submitted.size;
    if (queued >= QUEUED_MAX) {
      throw new S3Error("SlowDown", `${QUEUED_MAX} jobs are queued already.`);
    }
    const zero = { matched: 0, done: 0, failed: 0, bytes: 0, lineBytes: 0 };
    const progress = { ...zero, position: {}, samples: [], rate };
    const maker = identifyRequester(spec.requester);
    this.#submitted.add(spec);
    try {
      return await jobs.create(spec.operation, maker, spec, progress);
    } finally {
      this.#submitted.delete(spec);
      this.#startNext();
    }
  }

  startPipeline(pipeline: PipelineRequest): Promise<string> {
    return this.submit({ ...DEFAULTS, operation: "pipeline", ...pipeline });
  }

  /** Queues a job that sends all versions of a bucket by its replication rules. */
  startReplication(bucket: string, requester: StoredRequester): Promise<string> {
    const all = { prefix: "", versions: "all", filter: {}, targetPrefix: "", pins: [] } as const;
    return this.submit({ ...DEFAULTS, ...all, operation: "replicate", bucket, requester });
  }

  /** True if a job with this operation runs, is queued or is being added. */
  has(operation: StoredJobSpec["operation"]): boolean {
    const { jobs } = this.#options.store;
    const open = [
      ...this.#submitted,
      ...jobs.listIn("running", RUNNING_MAX * 2),
      ...jobs.listIn("queued", QUEUED_MAX),
    ];
    return open.some((job) => job.operation === operation);
  }

  /** Pauses, continues or cancels a job, or changes its rate. Resolves when the running step has ended. */
  async change(id: string, change: { state?: JobState; rate?: number }): Promise<void> {
    const { jobs } = this.#options.store;
    const { state, rate } = change;
    const running = this.#running.get(id);
    if (rate !== undefined && running !== undefined) running.run.rate = rate;
    if (state === "running") {
      const found = jobs.find(id);
      if (found?.state === "running" || found?.state === "queued") {
        if (rate !== undefined) await jobs.change(id, { rate });
        return;
      }
      await jobs.change(id, { ...change, state: "queued" });
      this.#startNext();
      return;
    }
    await this.#whileHeld(id, async () => {
      if (state !== undefined) await this.#stopRun(id);
      // It may have ended with its last step.
      const after = jobs.find(id);
      if (after !== undefined && isFinalState(after.state) && running !== undefined) return;
      await jobs.change(id, change);
    });
    this.#options.onEnd();
  }

  /** Cancels a job and removes it with its lines; its report stays. */
  async remove(id: string): Promise<void> {
    await this.#whileHeld(id, async () => {
      await this.#stopRun(id);
      await this.#options.store.jobs.remove(id);
    });
    this.#options.onEnd();
  }

  /** Ends running steps. The jobs continue at the next start. */
  async stop(): Promise<void> {
    this.#isStopping = true;
    await Promise.all([this.#timer.stop(), this.#retry.stop()]);
    await Promise.all([...this.#running.keys()].map((id) => this.#stopRun(id)));
  }

  async #whileHeld(id: string, work: () => Promise<void>): Promise<void> {
    this.#held.add(id);
    try {
      await work();
    } finally {
      this.#held.delete(id);
      this.#startNext();
    }
  }

  async #stopRun(id: string): Promise<void> {
    const running = this.#running.get(id);
    running?.stop.abort();
    await running?.ended;
  }

  #startNext(): void {
    const { jobs } = this.#options.store;
    while (
      this.#operations !== undefined &&
      !this.#isStopping &&
      this.#running.size < RUNNING_MAX
    ) {
      const waiting = [
        ...jobs.listIn("running", RUNNING_MAX * 2),
        ...jobs.listIn("queued", QUEUED_MAX),
      ].filter(({ id }) => !this.#running.has(id) && !this.#held.has(id));
      const busy = new Set([...this.#running.values()].map(({ job }) => job.maker));
      const next = waiting.find(({ maker }) => !busy.has(maker)) ?? waiting[0];
      if (next === undefined) return;
      this.#start(next);
    }
  }

  #start(job: JobRow): void {
    const spec = this.#options.store.jobs.findSpec(job.id);
    if (spec === undefined) return;
    const stop = new AbortController();
    const run = isObjectJob(spec)
      ? new JobRun(this.#parts, job, spec, stop.signal)
      : this.#options.beginOther(job, spec, stop.signal);
    const work = run.run().then(
      () => true,
      // The timer tries again: the store cannot be written.
      () => false,
    );
    const ended = work.then((isDone) => {
      this.#running.delete(job.id);
      this.#options.onEnd();
      if (isDone) this.#startNext();
    });
    this.#running.set(job.id, { job, run, stop, ended });
  }

  get #parts(): JobRunOptions {
    const operations = this.#operations;
    if (operations === undefined) throw new TypeError("the engine was not started");
    return { ...this.#options, operations };
  }
}

function isObjectJob(spec: StoredJobSpec): spec is JobSpec {
  return (OBJECT_JOBS as readonly string[]).includes(spec.operation);
}
