// Copies of a bucket's objects in other places, in the admin API: the state of its replication, and of its cold tier with sweeps.
import { type ApiRoute, defineRoute } from "@platform/kernel/http";
import { z } from "zod";
import { getBucket } from "../../s3/context.ts";
import { listBlocked, startSweep } from "../../s3/bucket/cold-tier.ts";
import { describeRules } from "../../s3/bucket/replication.ts";
import type { Sweep } from "../../upkeep/sweeps.ts";
import { bucketParams, BUCKET_PROBLEMS, BUCKET_TAG } from "./bucket-schema.ts";
import type { ConsoleOperations } from "./console-operations.ts";

const count = z.int().min(0);
const ruleState = z.object({
  id: z.string(),
  enabled: z.boolean(),
  destination: z.string().describe("ARN of the bucket there."),
  pending: count.describe("Versions and changes that wait."),
  failed: count.describe("Refused there, and tried again every hour."),
  completed: count.describe("Versions and changes that were sent since `counted_since`."),
  completed_bytes: count,
  counted_since: z.string().describe("The start of the service: `completed` begins again with it."),
  lag_seconds: z.number().min(0).describe("Age of the oldest that waits; 0 if none waits."),
  suspended: z
    .string()
    .nullable()
    .describe("The reason why a restored store does not send in the place of the other one."),
  paused_until: z
    .string()
    .nullable()
    .describe("The next trial of a destination that does not answer."),
  failures: z
    .array(
      z.object({
        key: z.string(),
        version_id: z.string(),
        reason: z.string(),
        attempts: count,
        failed_at: z.string(),
      }),
    )
    .describe("Some of what has failed."),
});
const sweepState = z.object({
  id: z.string(),
  state: z.enum(["running", "done", "failed"]),
  started_at: z.string(),
  ended_at: z.string().nullable(),
  reason: z.string().nullable().describe("The reason why it could not go on."),
  scanned: count.describe("Versions of the age of a rule."),
  moved: count,
  bytes: count.describe("Of moved objects."),
  skipped: count,
  failed: count,
  details: z
    .array(
      z.object({
        key: z.string(),
        version_id: z.string(),
        outcome: z.enum(["skipped", "failed"]),
        reason: z.string(),
      }),
    )
    .describe("Objects that stayed, at most 1 000."),
});
const tierState = z.object({
  remote: z
    .object({
      name: z.string(),
      state: z.enum(["unknown", "up", "failing"]),
      reason: z.string().nullable(),
    })
    .nullable()
    .describe("Null without a cold tier."),
  blocked: z
    .array(z.object({ rule: z.string(), storage_class: z.string(), reason: z.string() }))
    .describe("Transitions of lifecycle rules that move nothing."),
  sweep: sweepState.nullable().describe("The last one since the start of the service."),
});

/** Routes about the places of a bucket's objects. */
export function createPlaceRoutes(operations: ConsoleOperations): ApiRoute[] {
  return [
    createReplicationStatusRoute(operations),
    createTierStatusRoute(operations),
    createSweepRoute(operations),
  ];
}

function createReplicationStatusRoute(operations: ConsoleOperations): ApiRoute {
  return defineRoute({
    method: "GET",
    path: "/api/v1/buckets/{bucket}/config/replication/status",
    summary: "What each replication rule of a bucket has sent, and what waits",
    description: "Requires the permission s3:GetReplicationConfiguration.",
    tag: BUCKET_TAG,
    access: "guarded",
    params: bucketParams,
    answer: z.object({ rules: z.array(ruleState) }),
    problems: { ...BUCKET_PROBLEMS, 404: "The bucket does not exist, or has no replication." },
    handle: (request) => {
      const { bucket } = request.params;
      const call = { method: "GET", bucket, query: { replication: "", status: "" } };
      return operations.perform(request, call, async (context) => ({
        rules: await describeRules(context),
      }));
    },
  });
}

function createTierStatusRoute(operations: ConsoleOperations): ApiRoute {
  return defineRoute({
    method: "GET",
    path: "/api/v1/buckets/{bucket}/config/cold-tier/status",
    summary: "The remote of a bucket's cold tier, and its last sweep",
    description: "Requires the permission s3:GetLifecycleConfiguration.",
    tag: BUCKET_TAG,
    access: "guarded",
    params: bucketParams,
    answer: tierState,
    problems: BUCKET_PROBLEMS,
    handle: (request) => {
      const { bucket } = request.params;
      const call = { method: "GET", bucket, query: { "cold-tier": "", sweep: "" } };
      return operations.perform(request, call, async (context) => {
        const { store } = context.api;
        const name = getBucket(context).settings.coldTier?.remote;
        const last = store.sweeps.findLast(bucket);
        return {
          remote: name === undefined ? null : describeRemote(name, store.remotes.find(name)),
          blocked: listBlocked(store, bucket),
          sweep: last === undefined ? null : describeSweep(last),
        };
      });
    },
  });
}

function createSweepRoute(operations: ConsoleOperations): ApiRoute {
  return defineRoute({
    method: "POST",
    path: "/api/v1/buckets/{bucket}/config/cold-tier/sweep",
    summary: "Move what is due to the cold tier now",
    description:
      "By the cold tier and by lifecycle rules. It continues without the request; one that is running is joined. Requires the permission s3:PutLifecycleConfiguration.",
    tag: BUCKET_TAG,
    access: "guarded",
    params: bucketParams,
    status: 202,
    answer: sweepState,
    problems: {
      ...BUCKET_PROBLEMS,
      404: "The bucket does not exist, or has neither a cold tier nor lifecycle rules.",
    },
    handle: (request) => {
      const { bucket } = request.params;
      const call = { method: "POST", bucket, query: { "cold-tier": "", sweep: "" } };
      return operations.perform(request, call, async (context) =>
        describeSweep(startSweep(context).sweep),
      );
    },
  });
}

interface Health {
  readonly health: { state: "unknown" | "up" | "failing"; reason: string | undefined };
}

function describeRemote(name: string, remote: Health | undefined) {
  const { state, reason } = remote?.health ?? { state: "failing", reason: "it is not registered" };
  return { name, state, reason: reason ?? null } as const;
}

function describeSweep({ id, startedMs, endedMs, reason, report, details }: Sweep) {
  const isRunning = endedMs === undefined;
  return {
    id,
    state: isRunning ? "running" : reason === undefined ? "done" : "failed",
    started_at: new Date(startedMs).toISOString(),
    ended_at: isRunning ? null : new Date(endedMs).toISOString(),
    reason: reason ?? null,
    ...report,
    details,
  } as const;
}
