// Batch jobs in the admin API: for all callers of storage, each with the jobs that it has made; root has all.
import { PlatformError } from "@platform/kernel/errors";
import {
  type ApiRoute,
  defineRoute,
  nextCursor,
  NO_BODY,
  pageQuery,
  readPage,
} from "@platform/kernel/http";
import { z } from "zod";
import { identifyRequester, storePrincipal } from "../access/stored-requester.ts";
import type { JobEngine } from "../job/job-engine.ts";
import { jobBody, type JobRequestParts, toJobSpec } from "../job/job-request.ts";
import { JOB_STATES, type JobLine, type JobRow } from "../model/job.ts";
import type { StoredRequester } from "../model/requester.ts";
import type { Store } from "../object-store.ts";
import type { ConsoleOperations, SentRequest } from "./bucket/console-operations.ts";
import { asProblem } from "./problem.ts";

const TAG = "Jobs";
/** Ten thousand keys of 1 024 bytes. */
export const JOB_BODY_BYTES_MAX = 12 * 1024 * 1024;
const count = z.int().min(0);
const time = z.string().nullable().describe("RFC 3339.");
const params = z.object({ id: z.string().min(1).max(64) });
const created = z.object({ job_id: z.string() });
const jobAnswer = z.object({
  job_id: z.string(),
  operation: z.string(),
  state: z.enum(JOB_STATES),
  totals: z.object({ matched: count, done: count, failed: count, bytes: count }),
  rate: count.describe("Objects per second; 0 is no limit."),
  samples: z.array(z.string()).describe("Keys that a dry run has found first."),
  created_by: z.string(),
  created_at: z.string().describe("RFC 3339."),
  started_at: time,
  ended_at: time,
  reason: z.string().nullable(),
  snapshot: z.string().nullable().describe("Of a backup: the snapshot that it has made."),
  report: z.object({ bucket: z.string(), key: z.string() }).nullable(),
});
const failure = z.object({
  key: z.string(),
  version_id: z.string().optional(),
  code: z.string(),
  message: z.string(),
});
const changeBody = z.strictObject({
  state: z.enum(["paused", "running", "cancelled"]).optional(),
  rate: z.int().min(0).max(1_000_000).optional(),
});

/** Options of the routes. */
export interface BatchJobOptions extends JobRequestParts {
  readonly engine: JobEngine;
  /** Identifies callers. */
  readonly console: ConsoleOperations;
}

/** Routes that start, list, change and remove jobs, and show their failures. */
export function createBatchJobRoutes(options: BatchJobOptions): ApiRoute[] {
  return [
    createStartRoute(options),
    createListRoute(options),
    createReadRoute(options),
    createFailuresRoute(options),
    createChangeRoute(options),
    createRemovalRoute(options),
  ];
}

function createStartRoute(options: BatchJobOptions): ApiRoute {
  return defineRoute({
    method: "POST",
    path: "/admin/batch",
    tag: TAG,
    summary: "Start a job on many objects",
    description:
      "Each object is authorized when its turn comes, with the rights that the caller has then. A job sees the versions that were committed before it began.",
    access: "guarded",
    requires: "caller",
    body: jobBody,
    bodyBytesMax: JOB_BODY_BYTES_MAX,
    status: 202,
    answer: created,
    problems: { 403: "Not permitted", 404: "No such bucket", 429: "Too many queued jobs" },
    handle: async (request) => {
      const sender = options.console.describeSender(request);
      const requester = toRequester(options, request);
      const { body } = request;
      const spec = await asProblem(toJobSpec(options, body, sender, requester));
      return { job_id: await asProblem(options.engine.submit(spec, body.rate)) };
    },
  });
}

function createListRoute(options: BatchJobOptions): ApiRoute {
  return defineRoute({
    method: "GET",
    path: "/admin/batch/",
    tag: TAG,
    summary: "Jobs, the newest first",
    access: "guarded",
    requires: "caller",
    query: pageQuery,
    answer: z.object({ items: z.array(jobAnswer), next_cursor: nextCursor }),
    handle: async (request) => {
      const maker = findMaker(options, request);
      const { items, next_cursor } = await readPage(request.query, {
        key: z.number(),
        keyOf: ({ number }: JobRow) => number,
        read: (length, before) => options.store.jobs.list({ before, maker }, length),
      });
      return { items: items.map(showJob), next_cursor };
    },
  });
}

function createReadRoute(options: BatchJobOptions): ApiRoute {
  return defineRoute({
    method: "GET",
    path: "/admin/batch/{id}",
    tag: TAG,
    summary: "A job with its progress",
    access: "guarded",
    requires: "caller",
    params,
    answer: jobAnswer,
    problems: { 404: "No such job" },
    handle: (request) => showJob(requireJob(options, request, request.params.id)),
  });
}

function createFailuresRoute(options: BatchJobOptions): ApiRoute {
  return defineRoute({
    method: "GET",
    path: "/admin/batch/{id}/failures",
    tag: TAG,
    summary: "Objects on which a job has failed, with the reason",
    access: "guarded",
    requires: "caller",
    params,
    query: pageQuery,
    answer: z.object({ items: z.array(failure), next_cursor: nextCursor }),
    problems: { 404: "No such job" },
    handle: async (request) => {
      const job = requireJob(options, request, request.params.id);
      const { items, next_cursor } = await readPage(request.query, {
        key: z.string(),
        keyOf: ({ at }: PlacedLine) => at,
        read: (length, after) => readFailures(options.store, job.number, after, length),
      });
      return { items: items.map(({ line }) => showFailure(line)), next_cursor };
    },
  });
}

function createChangeRoute(options: BatchJobOptions): ApiRoute {
  return defineRoute({
    method: "PATCH",
    path: "/admin/batch/{id}",
    tag: TAG,
    summary: "Pause, continue or cancel a job, or change its rate",
    description: "Answers when the step that was running has ended.",
    access: "guarded",
    requires: "caller",
    params,
    body: changeBody,
    answer: jobAnswer,
    problems: { 404: "No such job" },
    handle: async (request) => {
      const { id } = requireJob(options, request, request.params.id);
      const { state, rate } = request.body;
      await asProblem(
        options.engine.change(id, {
          ...(state === undefined ? {} : { state }),
          ...(rate === undefined ? {} : { rate }),
        }),
      );
      return showJob(requireJob(options, request, id));
    },
  });
}

function createRemovalRoute(options: BatchJobOptions): ApiRoute {
  return defineRoute({
    method: "DELETE",
    path: "/admin/batch/{id}",
    tag: TAG,
    summary: "Cancel a job and remove it; its report stays",
    access: "guarded",
    requires: "caller",
    params,
    answer: NO_BODY,
    problems: { 404: "No such job" },
    handle: async (request) => {
      const { id } = requireJob(options, request, request.params.id);
      await asProblem(options.engine.remove(id));
    },
  });
}

/** The sender of a request, as jobs keep it. */
export function toRequester(
  { console: operations }: Pick<BatchJobOptions, "console">,
  request: SentRequest,
): StoredRequester {
  const { callers, clientAddress: address, secure } = operations.describeSender(request);
  return { principals: callers.map(storePrincipal), address, secure };
}

// Undefined for root, which sees all jobs.
function findMaker(options: BatchJobOptions, request: SentRequest): string | undefined {
  const requester = toRequester(options, request);
  const isRoot = requester.principals.some(({ kind }) => kind === "root");
  return isRoot ? undefined : identifyRequester(requester);
}

// The job of another is as one that does not exist.
function requireJob(options: BatchJobOptions, request: SentRequest, id: string): JobRow {
  const job = options.store.jobs.find(id);
  const maker = findMaker(options, request);
  if (job !== undefined && (maker === undefined || maker === job.maker)) return job;
  throw new PlatformError("not_found", "The job does not exist.");
}

function showJob(job: JobRow): z.input<typeof jobAnswer> {
  const { matched, done, failed, bytes, rate, samples, startedMs } = job.progress;
  const { reason, snapshot, report } = job.progress;
  return {
    job_id: job.id,
    operation: job.operation,
    state: job.state,
    totals: { matched, done, failed, bytes },
    rate,
    samples: [...samples],
    created_by: job.maker,
    created_at: new Date(job.createdMs).toISOString(),
    started_at: showTime(startedMs),
    ended_at: showTime(job.endedMs),
    reason: reason ?? null,
    snapshot: snapshot ?? null,
    report: report ?? null,
  };
}

function showTime(ms: number | undefined): string | null {
  return ms === undefined ? null : new Date(ms).toISOString();
}

interface PlacedLine {
  readonly at: string;
  readonly line: JobLine;
}

// The place of a line is the number of its row and that of the line in it.
async function readFailures(
  store: Store,
  job: number,
  after: string | undefined,
  length: number,
): Promise<PlacedLine[]> {
  const [row = 0, line = -1] = (after ?? "").split("/").filter(Boolean).map(Number);
  const found: PlacedLine[] = [];
  for (let from = Math.max(0, row - 1); found.length < length;) {
    const rows = await store.jobs.listLines(job, from, 16);
    const last = rows.at(-1);
    if (last === undefined) break;
    for (const { number, lines } of rows) {
      for (const [index, text] of lines.trimEnd().split("\n").entries()) {
        if (number === row && index <= line) continue;
        const parsed = JSON.parse(text) as JobLine;
        if (parsed.outcome === "failed") found.push({ at: `${number}/${index}`, line: parsed });
      }
    }
    from = last.number;
  }
  return found.slice(0, length);
}

function showFailure({ key, version_id, code = "", message = "" }: JobLine) {
  return { key, ...(version_id === undefined ? {} : { version_id }), code, message };
}
