// A group: its members, its offsets with lag, moving it with a preview, deleting it.
import { z } from "zod";
import { PlatformError } from "@platform/kernel/errors";
import { defineRoute, type ApiRoute, NO_BODY } from "@platform/kernel/http";
import type { Caller } from "@platform/kernel/identity";
import type { PartitionView } from "@platform/log";
import { SAMPLE_MS, type Activity } from "../activity/activity.ts";
import { GROUP_STATES, type GroupDescription } from "../consumer-group/index.ts";
import type { SharedSubscriptions } from "../dispatch/shared-subscriptions.ts";
import { GROUP_KINDS, measureLag, type Offsets } from "../store/offsets.ts";
import type { Store } from "../store/store.ts";
import type { Tenant } from "../topic/name.ts";
import type { Topics } from "../topic/topics.ts";
import { partitionLag } from "./lag.ts";
import { type Admission, tenantOf } from "./admission.ts";

/** Options of the routes. */
export interface GroupRoutesOptions {
  admission: Admission;
  store: Store;
  topics: Topics;
  offsets: Offsets;
  groups: SharedSubscriptions;
  activity: Activity;
  /** A consumer group of Kafka's protocol with members. */
  describeConsumerGroup: (tenant: Tenant, name: string) => GroupDescription | undefined;
}

const PATH = "/api/v1/groups/{group}";
const TAG = "Groups";
const params = z.object({ group: z.string().min(1).max(255) });
const resetBody = z.strictObject({
  topic: z.string(),
  partition: z.int().min(0).optional().describe("Default: all partitions."),
  to: z
    .union([
      z.enum(["start", "end"]),
      z.strictObject({ offset: z.int().min(0) }),
      z.strictObject({ time: z.iso.datetime({ offset: true }) }),
    ])
    .describe("Positions outside of what is stored become its start or end."),
  dry_run: z.boolean().default(false).describe("Only shows what would change."),
});
type Target = z.output<typeof resetBody>["to"];

const groupAnswer = z.object({
  group: z.string(),
  kind: z.enum(GROUP_KINDS).nullable(),
  state: z.enum(GROUP_STATES),
  members: z
    .array(
      z.object({
        id: z.string(),
        instance_id: z.string().nullable(),
        client_id: z.string().nullable(),
        client_host: z.string(),
      }),
    )
    .describe("Of Kafka's protocol."),
  subscribers: z.int(),
  offsets: z.array(partitionLag.extend({ committed_at: z.string() })),
});

/** Routes for one group. */
export function createGroupRoutes(options: GroupRoutesOptions): ApiRoute[] {
  const { admission, offsets } = options;
  return [
    defineRoute({
      method: "GET",
      path: PATH,
      summary: "A group: kind, state, members, and lag by partition",
      tag: TAG,
      access: admission.anyRight,
      params,
      problems: { 404: "The group does not exist." },
      answer: groupAnswer,
      handle: ({ params: { group }, caller }) => describeGroup(options, caller, group),
    }),
    defineRoute({
      method: "GET",
      path: `${PATH}/lag`,
      summary: "The lag of a group by topic over the last ten minutes",
      description:
        "One sample each `sample_ms`, oldest first, since startup. `lagging_since` is the first sample of the current lag. " +
        "1 000 pairs of a group and a topic are sampled.",
      tag: TAG,
      access: admission.anyRight,
      params,
      problems: { 404: "The group does not exist." },
      answer: z.object({
        group: z.string(),
        sample_ms: z.int(),
        topics: z.array(
          z.object({
            topic: z.string(),
            lag: z.int(),
            lagging_since: z.string().nullable(),
            samples: z.array(z.object({ time: z.string(), lag: z.int() })),
          }),
        ),
      }),
      handle: ({ params: { group }, caller }) => describeLag(options, caller, group),
    }),
    defineRoute({
      method: "POST",
      path: PATH,
      summary: "Move a group to the start, the end, an offset or a time, with a preview",
      description:
        "`replayed` messages would be delivered again, `skipped` ones never. Consumers of Kafka's protocol must have stopped.",
      tag: TAG,
      access: admission.subscribers,
      params,
      body: resetBody,
      problems: { 409: "The group has members." },
      answer: z.object({
        group: z.string(),
        topic: z.string(),
        dry_run: z.boolean(),
        changes: z.array(
          z.object({
            partition: z.int(),
            from: z.int().nullable(),
            to: z.int(),
            replayed: z.int(),
            skipped: z.int(),
          }),
        ),
      }),
      handle: ({ params: { group }, body, caller }) => reset(options, caller, group, body),
    }),
    defineRoute({
      method: "DELETE",
      path: PATH,
      summary: "Delete a group and its offsets",
      tag: TAG,
      access: admission.managers,
      params,
      problems: { 404: "The group does not exist.", 409: "The group has members." },
      answer: NO_BODY,
      handle: async ({ params: { group }, caller }) => {
        const tenant = tenantOf(caller);
        const rows = listOffsets(options, tenant, group);
        for (const { topic } of rows) admission.allow(caller, "manage", topic.name);
        requireKnown(options, tenant, group);
        requireIdle(options, tenant, group);
        for (const { topic } of rows) {
          const shared = options.groups.find(tenant, group, topic);
          if (shared === undefined) continue;
          if (shared.memberCount > 0) throw hasMembers();
          await options.groups.remove(shared);
        }
        // Removing the last shared subscription of a group may have removed the group.
        if (isKnown(options, tenant, group)) await offsets.deleteGroup(tenant, group);
      },
    }),
  ];
}

function describeGroup(options: GroupRoutesOptions, caller: Caller, name: string) {
  const { admission, groups, offsets, describeConsumerGroup } = options;
  const tenant = tenantOf(caller);
  const active = describeConsumerGroup(tenant, name);
  if (active === undefined) requireKnown(options, tenant, name);
  const rights = admission.rightsOf(caller);
  const rows = listOffsets(options, tenant, name).filter(({ topic }) =>
    rights.covers("subscribe", topic.name),
  );
  const topics = [...new Set(rows.map(({ topic }) => topic))];
  return {
    group: name,
    kind: active === undefined ? (offsets.kindOf(tenant, name) ?? null) : "kafka",
    state: active?.state ?? "Empty",
    members:
      active?.members.map(({ memberId, instanceId, clientId, clientHost }) => ({
        id: memberId,
        instance_id: instanceId,
        client_id: clientId,
        client_host: clientHost,
      })) ?? [],
    subscribers: topics.reduce(
      (sum, topic) => sum + (groups.find(tenant, name, topic)?.memberCount ?? 0),
      0,
    ),
    offsets: rows.map(({ topic, partition, offset, committedAt }) => {
      const { lag, latest } = measureLag({ topic, partition, offset });
      return {
        topic: topic.name,
        partition,
        committed_offset: offset,
        latest_offset: latest,
        lag,
        committed_at: new Date(committedAt).toISOString(),
      };
    }),
  };
}

function describeLag(options: GroupRoutesOptions, caller: Caller, name: string) {
  const { admission, activity } = options;
  const tenant = tenantOf(caller);
  requireKnown(options, tenant, name);
  const rights = admission.rightsOf(caller);
  const topics = [];
  for (const { topic, laggingSinceMs, samples } of activity.lagOf(tenant, name)) {
    if (!rights.covers("subscribe", topic.name)) continue;
    topics.push({
      topic: topic.name,
      lag: samples.at(-1)!.lag,
      lagging_since: laggingSinceMs === undefined ? null : new Date(laggingSinceMs).toISOString(),
      samples: samples.map(({ atMs, lag }) => ({ time: new Date(atMs).toISOString(), lag })),
    });
  }
  return { group: name, sample_ms: SAMPLE_MS, topics };
}

async function reset(
  options: GroupRoutesOptions,
  caller: Caller,
  name: string,
  { topic: topicName, partition, to, dry_run: isDryRun }: z.output<typeof resetBody>,
) {
  const { topics, admission, groups, offsets } = options;
  const tenant = tenantOf(caller);
  const topic = topics.get(tenant, admission.allow(caller, "subscribe", topicName));
  const all = topic.stored.partitions;
  const chosen = partition === undefined ? all : all.slice(partition, partition + 1);
  if (chosen.length === 0) {
    throw new PlatformError("not_found", "The topic does not have this partition.");
  }
  const changes = await Promise.all(
    chosen.map(async (view) => {
      const committed = offsets.find(tenant, name, topic, view.index)?.offset ?? -1;
      const before = committed < 0 ? view.logStart : committed;
      const after = await toOffset(options.store, view, to);
      return {
        partition: view.index,
        from: committed < 0 ? null : committed,
        to: after,
        replayed: Math.max(0, before - after),
        skipped: Math.max(0, after - before),
      };
    }),
  );
  if (!isDryRun) {
    requireIdle(options, tenant, name);
    const shared = groups.find(tenant, name, topic);
    for (const change of shared === undefined ? [] : changes) {
      await groups.seek(shared!, change.partition, change.to);
    }
    if (shared === undefined) {
      const commits = changes.map((change) => ({ ...change, topic, offset: change.to }));
      await offsets.commit(tenant, name, commits);
    }
  }
  return { group: name, topic: topic.name, dry_run: isDryRun, changes };
}

async function toOffset(store: Store, view: PartitionView, to: Target): Promise<number> {
  if (to === "start") return view.logStart;
  if (to === "end") return view.durableEnd;
  if ("offset" in to) return Math.min(Math.max(to.offset, view.logStart), view.durableEnd);
  const found = await store.log.findTimestamp(view, Date.parse(to.time));
  return found?.offset ?? view.durableEnd;
}

function listOffsets({ offsets }: GroupRoutesOptions, tenant: Tenant, group: string) {
  return [...offsets.list(tenant, group)];
}

function isKnown({ offsets }: GroupRoutesOptions, tenant: Tenant, group: string): boolean {
  for (const { name } of offsets.groups(tenant)) if (name === group) return true;
  return false;
}

function requireKnown(options: GroupRoutesOptions, tenant: Tenant, group: string): void {
  if (isKnown(options, tenant, group)) return;
  throw new PlatformError("not_found", "The group does not exist.");
}

// Members would commit their own positions over the new ones.
function requireIdle(options: GroupRoutesOptions, tenant: Tenant, group: string): void {
  const active = options.describeConsumerGroup(tenant, group);
  if (active !== undefined && active.members.length > 0) throw hasMembers();
}

function hasMembers(): PlatformError {
  return new PlatformError("conflict", "The group has members; stop its consumers first.");
}
