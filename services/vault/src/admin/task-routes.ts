// Durable tasks in the admin API: how many wait, and those that cannot succeed.
import { PlatformError } from "@platform/kernel/errors";
import { type ApiRoute, defineRoute, nextCursor, pageQuery, readPage } from "@platform/kernel/http";
import { z } from "zod";
import { type DeadTaskFilter, TASK_KINDS, type TaskCount } from "../model/task.ts";
import type { Store } from "../object-store.ts";

const TAG = "Tasks";
const IDS_MAX = 1_000;
const count = z.int().min(0);
const time = z.string().describe("RFC 3339.");
const kind = z.enum(TASK_KINDS);
const names = {
  kind: kind.optional(),
  bucket: z.string().min(1).max(63).optional(),
  rule: z.string().min(1).max(255).optional().describe("Id of a trigger."),
};
const counted = {
  waiting: count,
  dead: count,
  oldest_at: time.nullable().describe("When the oldest waiting task was added."),
};
const tasksAnswer = z.object({
  kinds: z.array(
    z.object({
      kind,
      ...counted,
      running: count,
      ended: count.describe("Since the start, as the next two."),
      failed: count.describe("Attempts that are repeated."),
      abandoned: count.describe("Attempts that made their task dead."),
    }),
  ),
  rules: z
    .array(
      z.object({
        kind,
        bucket: z.string().nullable().describe("Null if it was deleted."),
        rule: z.string().describe("Id of a trigger, or empty."),
        ...counted,
        attempts: count.describe("Most failed attempts of one task."),
      }),
    )
    .describe("At most 1 000."),
});
const deadTask = z.object({
  id: z.int(),
  kind,
  bucket: z.string().nullable(),
  rule: z.string(),
  key: z.string(),
  version_id: z.string(),
  attempts: count,
  reason: z.string(),
  failed_at: time,
});
const chosenBody = z.strictObject({
  ids: z.array(z.int().min(1)).min(1).max(IDS_MAX).optional(),
  ...names,
});

/** Routes that count durable tasks, list the dead ones, and start or discard them. */
export function createTaskRoutes(store: Store): ApiRoute[] {
  return [
    defineRoute({
      method: "GET",
      path: "/admin/tasks",
      tag: TAG,
      summary: "Durable tasks that wait or have failed, by kind and by rule",
      answer: tasksAnswer,
      handle: () => describeTasks(store),
    }),
    defineRoute({
      method: "GET",
      path: "/admin/tasks/dead",
      tag: TAG,
      summary: "Tasks that cannot succeed, with the reason",
      query: pageQuery.extend(names),
      answer: z.object({ items: z.array(deadTask), next_cursor: nextCursor }),
      problems: { 404: "No such bucket" },
      handle: ({ query }) =>
        readPage(query, {
          key: z.number(),
          keyOf: ({ id }: { id: number }) => id,
          read: (length, after = 0) => listDead(store, query, after, length),
        }),
    }),
    createSettleRoute(store, "retry", "Start dead tasks again"),
    createSettleRoute(store, "discard", "Discard dead tasks"),
  ];
}

function createSettleRoute(store: Store, action: "retry" | "discard", summary: string): ApiRoute {
  return defineRoute({
    method: "POST",
    path: `/admin/tasks/dead/${action}`,
    tag: TAG,
    summary,
    description: "Those with the named numbers, kind, bucket and rule; without a name, all.",
    body: chosenBody,
    answer: z.object({ tasks: count }),
    problems: { 404: "No such bucket" },
    handle: async ({ body: { ids, ...chosen } }) => ({
      tasks: await store.settleDeadTasks(action, { ids, ...toFilter(store, chosen) }),
    }),
  });
}

type Names = Pick<z.output<typeof chosenBody>, "kind" | "bucket" | "rule">;

function toFilter(store: Store, { kind: kindName, bucket, rule }: Names): DeadTaskFilter {
  const state = bucket === undefined ? undefined : store.buckets.findState(bucket);
  if (bucket !== undefined && state === undefined)
    throw new PlatformError("not_found", `The bucket ${bucket} does not exist.`);
  return { kind: kindName, bucket: state?.id, rule };
}

async function listDead(store: Store, chosen: Names, after: number, length: number) {
  const tasks = await store.listDeadTasks(toFilter(store, chosen), after, length);
  const names = nameBuckets(store);
  return tasks.map(({ bucket, version, failedMs, ...task }) => ({
    ...task,
    bucket: names.get(bucket) ?? null,
    version_id: version,
    failed_at: new Date(failedMs).toISOString(),
  }));
}

async function describeTasks(store: Store): Promise<z.input<typeof tasksAnswer>> {
  const counts = await store.tasks.count();
  const names = nameBuckets(store);
  return {
    kinds: TASK_KINDS.map((name) => {
      const { ended, failed, dead: abandoned } = store.tasks.readAttempts(name);
      const running = store.tasks.countRunning(name);
      const own = counts.filter((one) => one.kind === name);
      return { kind: name, ...sum(own), running, ended, failed, abandoned };
    }),
    rules: counts.map((one) => ({
      kind: one.kind,
      bucket: names.get(one.bucket) ?? null,
      rule: one.rule,
      ...sum([one]),
      attempts: one.attemptsMax,
    })),
  };
}

function sum(counts: readonly TaskCount[]) {
  const ages = counts.flatMap(({ oldestMs }) => (oldestMs === undefined ? [] : [oldestMs]));
  return {
    waiting: counts.reduce((total, { waiting }) => total + waiting, 0),
    dead: counts.reduce((total, { dead }) => total + dead, 0),
    oldest_at: ages.length === 0 ? null : new Date(Math.min(...ages)).toISOString(),
  };
}

function nameBuckets(store: Store): ReadonlyMap<number, string> {
  return new Map(
    store.buckets.list().map(({ name }) => [store.buckets.requireState(name).id, name]),
  );
}
