// Reading without a subscription: tail, committed offsets, lag, replay.
import { z } from "zod";
import { PlatformError } from "@platform/kernel/errors";
import { defineRoute, type ApiRoute } from "@platform/kernel/http";
import type { SharedSubscriptions } from "../dispatch/shared-subscriptions.ts";
import { formatMessage, messageAnswer, toMessage, type Message } from "../message/message.ts";
import { measureLag, type Offsets, type StoredOffset } from "../store/offsets.ts";
import { readRecords } from "../store/read-records.ts";
import type { Store } from "../store/store.ts";
import type { Tenant } from "../topic/name.ts";
import { coversAny } from "../topic/rights.ts";
import type { Topic, Topics } from "../topic/topics.ts";
import { partitionLag } from "./lag.ts";
import { type Admission, isForAllTenants, tenantOf } from "./admission.ts";
import { answerWithClaim, type ClaimedRead } from "./claimed-answer.ts";

const TAIL_MAX = 1_000;
const TAIL_BYTES_MAX = 16 * 1024 * 1024;
/** Rows of the groups of all tenants. */
const ROWS_MAX = 10_000;

/** Options of the reading routes. */
export interface ReadingRoutesOptions {
  admission: Admission;
  store: Store;
  topics: Topics;
  offsets: Offsets;
  groups: SharedSubscriptions;
}

/** Routes for reading without a subscription. */
export function createReadingRoutes(options: ReadingRoutesOptions): ApiRoute[] {
  const { topics, offsets, store, admission } = options;
  const offset = z.int().min(0);
  const partition = z.int().min(0).optional();
  return [
    defineRoute({
      method: "GET",
      path: "/api/v1/tail",
      summary: "The latest messages of a topic, oldest first",
      tag: "Read",
      access: admission.subscribers,
      query: z.object({
        topic: z.string(),
        n: z
          .string()
          .regex(/^\d{1,4}$/, "a whole number from 1 to 1000")
          .transform(Number)
          .refine((n) => n >= 1 && n <= TAIL_MAX, "a whole number from 1 to 1000")
          .default(10),
      }),
      answer: z.object({ topic: z.string(), count: z.int(), messages: z.array(messageAnswer) }),
      handle: ({ query, caller, rawResponse }) => {
        const topic = topics.get(
          tenantOf(caller),
          admission.allow(caller, "subscribe", query.topic),
        );
        const stored = topic.stored.partitions.reduce((sum, { bytes }) => sum + bytes, 0);
        return answerWithClaim(rawResponse, Math.min(TAIL_BYTES_MAX, stored), (bytesMax) =>
          readTail(store, topic, query.n, bytesMax),
        );
      },
    }),
    defineRoute({
      method: "GET",
      path: "/api/v1/offsets",
      summary: "Committed offsets of a group; each is the next one to read",
      tag: "Groups",
      access: admission.subscribers,
      query: z.object({ group: z.string().min(1).max(255), topic: z.string().optional() }),
      answer: z.object({
        group: z.string(),
        offsets: z.array(z.object({ topic: z.string(), partition: z.int(), offset: z.int() })),
      }),
      handle: ({ query, caller }) => {
        const rights = admission.rightsOf(caller);
        const found = [...offsets.list(tenantOf(caller), query.group)]
          .filter(({ topic }) => query.topic === undefined || topic.name === query.topic)
          .filter(({ topic }) => rights.covers("subscribe", topic.name))
          .map(({ topic, partition: at, offset: committed }) => ({
            topic: topic.name,
            partition: at,
            offset: committed,
          }));
        return { group: query.group, offsets: found };
      },
    }),
    defineRoute({
      method: "POST",
      path: "/api/v1/offsets",
      summary: "Commit an offset",
      tag: "Groups",
      access: admission.subscribers,
      body: z.strictObject({ group: z.string(), topic: z.string(), offset, partition }),
      answer: z.object({
        status: z.literal("success"),
        group: z.string(),
        topic: z.string(),
        partition: z.int(),
        offset: z.int(),
      }),
      handle: async ({ body, caller }) => {
        const tenant = tenantOf(caller);
        const topic = topics.get(tenant, admission.allow(caller, "subscribe", body.topic));
        const at = body.partition ?? 0;
        await moveGroup(options, tenant, body.group, topic, at, body.offset);
        return { status: "success" as const, ...body, partition: at };
      },
    }),
    defineRoute({
      method: "GET",
      path: "/api/v1/consumers/lag",
      summary: "Lag of all groups",
      description:
        "Of the caller's tenant; the operator chooses one with `tenant`, or all with `*`, up to 10 000 partitions.",
      tag: "Groups",
      access: admission.anyRight,
      query: z.object({ group: z.string().optional() }),
      answer: z.object({
        groups: z.array(
          partitionLag.extend({
            group: z.string(),
            tenant: z.string().optional().describe("In the list of all tenants."),
          }),
        ),
      }),
      handle: ({ query, caller }) => {
        if (isForAllTenants(caller)) return { groups: listAllLag(offsets, query.group) };
        const rights = admission.rightsOf(caller);
        const listed = listLag(offsets, tenantOf(caller), query.group);
        return { groups: listed.filter(({ topic }) => coversAny(rights, topic)) };
      },
    }),
    defineRoute({
      method: "POST",
      path: "/api/v1/replay",
      summary: "Move a group to an offset",
      tag: "Groups",
      access: admission.subscribers,
      body: z.strictObject({
        topic: z.string(),
        start_offset: offset,
        group_name: z.string(),
        partition,
      }),
      answer: z.object({ replayed: z.int().describe("Messages that are delivered again.") }),
      handle: async ({ body, caller }) => {
        const tenant = tenantOf(caller);
        const topic = topics.get(tenant, admission.allow(caller, "subscribe", body.topic));
        const chosen =
          body.partition === undefined
            ? topic.stored.partitions
            : [getPartition(topic, body.partition)];
        let replayed = 0;
        for (const { index, logStart, durableEnd } of chosen) {
          const to = Math.min(Math.max(body.start_offset, logStart), durableEnd);
          await moveGroup(options, tenant, body.group_name, topic, index, to);
          replayed += durableEnd - to;
        }
        return { replayed };
      },
    }),
    defineRoute({
      method: "POST",
      path: "/api/v1/replay/time",
      summary:
        "Offset of the first message at or after a time; moves the group there if one is given",
      tag: "Groups",
      access: admission.subscribers,
      body: z.strictObject({
        topic: z.string(),
        timestamp: z.int().min(0),
        group_name: z.string().optional(),
        partition,
      }),
      answer: z.object({ offset: z.int() }),
      handle: async ({ body, caller }) => {
        const tenant = tenantOf(caller);
        const topic = topics.get(tenant, admission.allow(caller, "subscribe", body.topic));
        const view = getPartition(topic, body.partition ?? 0);
        const found = await store.log.findTimestamp(view, body.timestamp);
        const to = found?.offset ?? view.durableEnd;
        if (body.group_name !== undefined) {
          await moveGroup(options, tenant, body.group_name, topic, view.index, to);
        }
        return { offset: to };
      },
    }),
  ];
}

// A shared subscription is moved as well; members of a Kafka group read the offset when they join.
async function moveGroup(
  { offsets, groups }: ReadingRoutesOptions,
  tenant: Tenant,
  name: string,
  topic: Topic,
  partition: number,
  offset: number,
): Promise<void> {
  getPartition(topic, partition);
  const group = groups.find(tenant, name, topic);
  if (group === undefined) await offsets.commit(tenant, name, [{ topic, partition, offset }]);
  else await groups.seek(group, partition, offset);
}

function getPartition(topic: Topic, partition: number) {
  const view = topic.stored.partitions[partition];
  if (view !== undefined) return view;
  throw new PlatformError("not_found", "The topic does not have this partition.");
}

function listLag(offsets: Offsets, tenant: Tenant, only: string | undefined) {
  const rows = [];
  for (const { name } of offsets.groups(tenant)) {
    if (only !== undefined && name !== only) continue;
    for (const stored of offsets.list(tenant, name)) rows.push(describeLag(name, stored));
  }
  return rows;
}

function listAllLag(offsets: Offsets, only: string | undefined) {
  const rows = [];
  for (const stored of offsets.all()) {
    if (only !== undefined && stored.group !== only) continue;
    if (rows.length >= ROWS_MAX) break;
    rows.push({ ...describeLag(stored.group, stored), tenant: stored.tenant });
  }
  return rows;
}

function describeLag(group: string, stored: StoredOffset) {
  const { topic, partition, offset } = stored;
  const { lag, latest } = measureLag(stored);
  return {
    group,
    topic: topic.name,
    partition,
    committed_offset: offset,
    latest_offset: latest,
    lag,
  };
}

/** Keeps messages of `bytesMax` at most; if there are more, it only returns their size. */
async function readTail(
  store: Store,
  topic: Topic,
  count: number,
  bytesMax: number,
): Promise<ClaimedRead> {
  const found: Message[] = [];
  let bytes = 0;
  for (const partition of topic.stored.partitions) {
    const from = Math.max(partition.logStart, partition.durableEnd - count);
    for await (const record of readRecords(store, partition, from)) {
      bytes += record.value?.length ?? 0;
      if (bytes > TAIL_BYTES_MAX) {
        throw new PlatformError(
          "payload_too_large",
          "The latest messages are too large; request fewer.",
        );
      }
      if (bytes <= bytesMax) found.push(toMessage(topic, partition.index, record));
      else found.length = 0;
    }
  }
  if (bytes > bytesMax) return { neededBytes: bytes };
  found.sort(
    (a, b) => a.timestamp - b.timestamp || a.partition - b.partition || a.offset - b.offset,
  );
  const lines = found.slice(-count).map((message) => formatMessage(message));
  const name = JSON.stringify(topic.name);
  return { body: `{"topic":${name},"count":${lines.length},"messages":[${lines.join(",")}]}` };
}
