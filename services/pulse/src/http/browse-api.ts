// Messages of a topic by place or time, one message, and schemas.
import { z } from "zod";
import { PlatformError } from "@platform/kernel/errors";
import { defineRoute, JsonText, type ApiRoute } from "@platform/kernel/http";
import type { PartitionView } from "@platform/log";
import type { StoredRecord } from "@platform/log/batch";
import { formatMessage, messageAnswer, toMessage } from "../message/message.ts";
import { compileSchema, explainBreak, SCHEMA_KINDS, schemaDocument } from "../schema/schema.ts";
import type { Schemas } from "../schema/schemas.ts";
import { readLatest } from "../store/read-latest.ts";
import { readRecords } from "../store/read-records.ts";
import type { Store } from "../store/store.ts";
import { coversAny } from "../topic/rights.ts";
import type { Topic, Topics } from "../topic/topics.ts";
import { type Admission, isForAllTenants, tenantOf } from "./admission.ts";
import { answerWithClaim, type ClaimedRead } from "./claimed-answer.ts";

/** Payloads of an answer. */
const PAGE_BYTES_MAX = 4 * 1024 * 1024;
/** Stored bytes that one request looks through. */
const SCAN_BYTES_MAX = 16 * 1024 * 1024;
/** Messages that a schema is checked against. */
const CHECKED_MAX = 100;
const SCHEMA_BYTES_MAX = 64 * 1024;

/** Options of the routes. */
export interface BrowseRoutesOptions {
  admission: Admission;
  topics: Topics;
  schemas: Schemas;
  store: Store;
}

const wholeNumber = z
  .string()
  .regex(/^\d{1,15}$/, "a whole number")
  .transform(Number);
/** An offset, or a time in RFC 3339. */
const placeSchema = z.union([
  wholeNumber.transform((offset) => ({ offset })),
  z.iso.datetime({ offset: true }).transform((text) => ({ timestamp: Date.parse(text) })),
]);
type Place = z.output<typeof placeSchema>;
const browseQuery = z.object({
  partition: wholeNumber.default(0),
  from: placeSchema
    .optional()
    .describe("Offset, or time in RFC 3339, of the first message. Default: the oldest."),
  until: placeSchema.optional().describe("The messages before it. Default: the end."),
  limit: z
    .string()
    .regex(/^\d{1,3}$/)
    .transform(Number)
    .refine((limit) => limit >= 1 && limit <= 500, "a whole number from 1 to 500")
    .default(100),
  filter: z
    .string()
    .min(1)
    .max(200)
    .optional()
    .describe("Text that the key or the payload contains, in any case."),
});

/** Routes that read messages by their place. */
export function createBrowseRoutes(options: BrowseRoutesOptions): ApiRoute[] {
  const { topics, admission, store } = options;
  return [
    defineRoute({
      method: "GET",
      path: "/api/v1/topics/{topic}/messages",
      summary: "Messages of a partition from an offset or a time",
      description:
        "Oldest first. `next` continues; one request looks through 16 MiB and answers with 4 MiB at most, so that a page may " +
        "be short, or empty with a filter, although more follow.",
      tag: "Read",
      access: admission.subscribers,
      query: browseQuery,
      problems: { 404: "The topic or the partition does not exist." },
      answer: z.object({
        topic: z.string(),
        partition: z.int(),
        log_start: z.int(),
        log_end: z.int(),
        next: z.int().nullable().describe("`from` of the next page."),
        messages: z.array(messageAnswer),
      }),
      handle: ({ params, query, caller, rawResponse }) => {
        const topic = getTopic(options, caller, params["topic"]!);
        const partition = getPartition(topic, query.partition);
        const bytesMax = Math.min(PAGE_BYTES_MAX, partition.bytes);
        return answerWithClaim(rawResponse, bytesMax, (claimed) =>
          readPage(store, topic, partition, query, claimed),
        );
      },
    }),
    defineRoute({
      method: "GET",
      path: "/api/v1/topics/{topic}/messages/{partition}/{offset}",
      summary: "One message",
      tag: "Read",
      access: admission.subscribers,
      params: z.object({ topic: z.string(), partition: wholeNumber, offset: wholeNumber }),
      problems: { 404: "The topic or the message does not exist, or is no longer stored." },
      answer: messageAnswer,
      handle: async ({ params, caller }) => {
        const topic = getTopic(options, caller, params.topic);
        const partition = getPartition(topic, params.partition);
        const { offset } = params;
        for await (const record of readRecords(store, partition, offset, offset + 1)) {
          return new JsonText(formatMessage(toMessage(topic, partition.index, record)));
        }
        throw new PlatformError("not_found", "The message does not exist.");
      },
    }),
    createSchemaListRoute(options),
    createSchemaCheckRoute(options, topics),
  ];
}

function createSchemaListRoute({ admission, topics, schemas }: BrowseRoutesOptions): ApiRoute {
  return defineRoute({
    method: "GET",
    path: "/api/v1/schemas",
    summary: "The schemas of all topics",
    tag: "Rules of a topic",
    access: admission.anyRight,
    answer: z.object({
      schemas: z.array(
        z.object({
          topic: z.string(),
          tenant: z.string().optional().describe("In the list of all tenants."),
          kind: z.enum(SCHEMA_KINDS),
          schema: schemaDocument,
        }),
      ),
    }),
    handle: ({ caller }) => {
      const isForAll = isForAllTenants(caller);
      const rights = admission.rightsOf(caller);
      const found = isForAll ? topics.all() : topics.list(tenantOf(caller));
      const list = [...found].flatMap((topic) => {
        const schema = coversAny(rights, topic.name) ? schemas.find(topic) : undefined;
        if (schema === undefined) return [];
        const { kind, document } = schema;
        const tenant = isForAll ? { tenant: topic.tenant } : {};
        return [{ topic: topic.name, ...tenant, kind, schema: document }];
      });
      return { schemas: list };
    },
  });
}

function createSchemaCheckRoute(options: BrowseRoutesOptions, topics: Topics): ApiRoute {
  const { admission, schemas, store } = options;
  return defineRoute({
    method: "POST",
    path: "/api/v1/topics/{topic}/schema/check",
    summary: "Try a schema: its compatibility, and the latest messages that would violate it",
    description: "Changes nothing.",
    tag: "Rules of a topic",
    access: admission.subscribers,
    bodyBytesMax: SCHEMA_BYTES_MAX,
    body: z.strictObject({
      schema: z.record(z.string(), z.unknown()),
      messages: z.int().min(0).max(CHECKED_MAX).default(5).describe("Latest messages to check."),
    }),
    problems: { 400: "The schema is not valid." },
    answer: z.object({
      kind: z.enum(SCHEMA_KINDS),
      is_backward_compatible: z.boolean(),
      reason: z.string().nullable().describe("Why it is not compatible."),
      messages: z.array(
        z.object({
          partition: z.int(),
          offset: z.int(),
          violations: z.array(z.object({ field: z.string(), message: z.string() })),
        }),
      ),
    }),
    handle: async ({ params, body, caller }) => {
      const name = admission.allow(caller, "subscribe", params["topic"]!);
      const topic = topics.find(tenantOf(caller), name);
      const schema = compileSchema(body.schema);
      const before = topic === undefined ? undefined : schemas.find(topic);
      const reason = before === undefined ? undefined : explainBreak(before, schema);
      const results = [];
      for (const { partition, record } of await readLatest(
        store,
        topic?.stored.partitions ?? [],
        body.messages,
      )) {
        const violations = checkValue(schema.check, record.value);
        results.push({ partition, offset: record.offset, violations });
      }
      return {
        kind: schema.kind,
        is_backward_compatible: reason === undefined,
        reason: reason ?? null,
        messages: results,
      };
    },
  });
}

function checkValue(
  check: (payload: unknown) => readonly { field: string; message: string }[],
  value: Buffer | null,
) {
  try {
    return check(JSON.parse((value ?? Buffer.alloc(0)).toString("utf8")));
  } catch {
    return [{ field: "", message: "must be JSON" }];
  }
}

async function readPage(
  store: Store,
  topic: Topic,
  partition: PartitionView,
  query: z.output<typeof browseQuery>,
  bytesMax: number,
): Promise<ClaimedRead> {
  const { logStart, durableEnd } = partition;
  const from = Math.max(logStart, await toOffset(store, partition, query.from, logStart));
  const until = Math.min(durableEnd, await toOffset(store, partition, query.until, durableEnd));
  const filter = query.filter?.toLowerCase();
  const lines: string[] = [];
  let next = from;
  let bytes = 0;
  for await (const record of readRecords(store, partition, from, until, SCAN_BYTES_MAX)) {
    if (lines.length >= query.limit) break;
    if (matches(record, filter)) {
      bytes += record.value?.length ?? 0;
      if (lines.length > 0 && bytes > bytesMax) break;
      lines.push(formatMessage(toMessage(topic, partition.index, record)));
    }
    next = record.offset + 1;
  }
  const head = JSON.stringify({
    topic: topic.name,
    partition: partition.index,
    log_start: logStart,
    log_end: durableEnd,
    next: next < until && next > from ? next : null,
  });
  return { body: `${head.slice(0, -1)},"messages":[${lines.join(",")}]}` };
}

async function toOffset(
  store: Store,
  partition: PartitionView,
  place: Place | undefined,
  otherwise: number,
): Promise<number> {
  if (place === undefined) return otherwise;
  if ("offset" in place) return place.offset;
  const found = await store.log.findTimestamp(partition, place.timestamp);
  return found?.offset ?? partition.durableEnd;
}

function matches({ key, value }: StoredRecord, filter: string | undefined): boolean {
  if (filter === undefined) return true;
  return [key, value].some((bytes) => bytes?.toString("utf8").toLowerCase().includes(filter));
}

function getTopic(
  { topics, admission }: BrowseRoutesOptions,
  caller: Parameters<typeof tenantOf>[0],
  name: string,
): Topic {
  return topics.get(tenantOf(caller), admission.allow(caller, "subscribe", name));
}

function getPartition(topic: Topic, index: number): PartitionView {
  const partition = topic.stored.partitions[index];
  if (partition !== undefined) return partition;
  throw new PlatformError("not_found", "The topic does not have this partition.");
}
