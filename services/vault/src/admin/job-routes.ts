// Background work in the admin API: what runs, how the last rounds ended, and rounds that people start or cancel.
import { PlatformError } from "@platform/kernel/errors";
import { type ApiRoute, defineRoute } from "@platform/kernel/http";
import { z } from "zod";
import type { Store } from "../object-store.ts";
import { type Job, JOB_KINDS, type JobKind, type JobStart } from "../upkeep/job.ts";

const TAG = "Upkeep";
const count = z.int().min(0);
const time = z.string().describe("RFC 3339.");
const params = z.object({ kind: z.enum(JOB_KINDS) });

const jobAnswer = z.object({
  kind: z.enum(JOB_KINDS),
  state: z.enum(["idle", "running", "cancelling"]),
  started_at: time.nullable().describe("Of the running round; null if it is not known."),
  progress: z
    .object({
      unit: z.enum(["files", "buckets"]),
      done: count,
      total: count.nullable().describe("As counted at the beginning; null if it is not known."),
      bytes: count.nullable(),
    })
    .nullable(),
  next_at: time.nullable().describe("Planned start of the next round."),
  actions: z.array(z.enum(["start", "cancel"])).describe("Those that are possible now."),
  last: z
    .object({
      started_at: time,
      ended_at: time,
      outcome: z.enum(["completed", "cancelled", "failed"]),
      reason: z.string().nullable().describe("The error of a failed round."),
      counts: z.record(z.string(), count).describe("What it did: `healed`, `expired`, …"),
    })
    .nullable()
    .describe("The last round since the start; of the scrub, the last complete one survives it."),
});

/** Routes of background work. */
export function createJobRoutes({ maintenance }: Pick<Store, "maintenance">): ApiRoute[] {
  const read = (kind: JobKind) => {
    const job = maintenance.listJobs().find((one) => one.kind === kind);
    if (job !== undefined) return job;
    throw new PlatformError("not_found", `This storage has no ${kind}: it depends on its drives.`);
  };
  return [
    defineRoute({
      method: "GET",
      path: "/api/v1/jobs",
      tag: TAG,
      summary: "Background work with its progress and its last round",
      answer: z.object({ items: z.array(jobAnswer) }),
      handle: () => ({ items: maintenance.listJobs().map(showJob) }),
    }),
    defineRoute({
      method: "POST",
      path: "/api/v1/jobs/{kind}/start",
      tag: TAG,
      summary: "Start a round, or join the running one",
      params,
      status: 202,
      answer: jobAnswer,
      problems: { 404: "No such work", 409: "Cannot be started" },
      handle: ({ params: { kind } }) => {
        read(kind);
        const start = maintenance.startJob(kind);
        if (start !== "started") throw new PlatformError("conflict", explainStart(start, kind));
        return showJob(read(kind));
      },
    }),
    defineRoute({
      method: "POST",
      path: "/api/v1/jobs/{kind}/cancel",
      tag: TAG,
      summary: "Ask the running round to end",
      description: "What it has done stays done; the next round begins as planned.",
      params,
      status: 202,
      answer: jobAnswer,
      problems: { 404: "No such work", 409: "Not running" },
      handle: ({ params: { kind } }) => {
        read(kind);
        if (!maintenance.cancelJob(kind))
          throw new PlatformError("conflict", `No ${kind} is running that can be cancelled.`);
        return showJob(read(kind));
      },
    }),
  ];
}

function explainStart(start: Exclude<JobStart, "started">, kind: JobKind): string {
  if (start === "automatic") return `The ${kind} starts by itself.`;
  return `The ${kind} was cancelled and has not ended yet: start it then.`;
}

function showJob({ kind, running, last, nextMs, isManual }: Job): z.input<typeof jobAnswer> {
  const { progress } = running ?? {};
  return {
    kind,
    state: running === undefined ? "idle" : running.isCancelled ? "cancelling" : "running",
    started_at: showTime(running?.startedMs),
    progress:
      progress === undefined ? null : { bytes: null, ...progress, total: progress.total ?? null },
    next_at: showTime(nextMs),
    actions: isManual ? listActions(running) : [],
    last:
      last === undefined
        ? null
        : {
            started_at: new Date(last.startedMs).toISOString(),
            ended_at: new Date(last.endedMs).toISOString(),
            outcome: last.outcome,
            reason: last.reason ?? null,
            counts: last.report ?? {},
          },
  };
}

function listActions(running: Job["running"]): ("start" | "cancel")[] {
  if (running === undefined) return ["start"];
  return running.isCancelled ? [] : ["cancel"];
}

function showTime(ms: number | undefined): string | null {
  return ms === undefined ? null : new Date(ms).toISOString();
}
