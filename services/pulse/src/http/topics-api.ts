// Topics over HTTP: list, create, delete, settings, schema.
import { z } from "zod";
import { PlatformError } from "@platform/kernel/errors";
import {
  createEtag,
  createValidationError,
  defineRoute,
  requirePreconditions,
  type ApiRoute,
  NO_BODY,
} from "@platform/kernel/http";
import type { TopicConfig } from "@platform/log";
import type { Activity } from "../activity/activity.ts";
import type { Backlog } from "../dispatch/backlog.ts";
import type { SharedSubscriptions } from "../dispatch/shared-subscriptions.ts";
import type { Subscriptions } from "../dispatch/subscription.ts";
import { SCHEMA_KINDS, schemaDocument } from "../schema/schema.ts";
import type { Schemas } from "../schema/schemas.ts";
import { explainTopicName } from "../topic/name.ts";
import { coversAny } from "../topic/rights.ts";
import type { Topic } from "../topic/topics.ts";
import type { Transforms } from "../transform/transforms.ts";
import { isForAllTenants, tenantOf } from "./admission.ts";
import { configAnswer, describeConfig, POLICIES, tagConfig } from "./topic-config.ts";
import {
  createTopicDeadLetterRoutes,
  type TopicDeadLetterOptions,
} from "./topic-dead-letters-api.ts";

const SCHEMA_BYTES_MAX = 64 * 1024;

/** Options of the topic routes. */
export interface TopicRoutesOptions extends TopicDeadLetterOptions {
  subscriptions: Subscriptions;
  groups: SharedSubscriptions;
  backlog: Backlog;
  schemas: Schemas;
  transforms: Transforms;
  activity: Activity;
}

const configFields = {
  retention_ms: z.int().min(-1).optional(),
  retention_bytes: z.int().min(-1).optional(),
  cleanup_policy: z.enum(POLICIES).optional(),
  segment_bytes: z.int().min(1_024).optional(),
  delete_retention_ms: z.int().min(0).optional(),
  offload: z.boolean().optional(),
  key_index: z.boolean().optional(),
  local_retention_ms: z.int().min(-2).optional(),
  local_retention_bytes: z.int().min(-2).optional(),
};
const topicAnswer = z
  .object({
    name: z.string(),
    subscribers: z.int(),
    partitions: z.int(),
    has_transform: z.boolean(),
    dlq_topic: z.string(),
    queue_depth: z.int(),
    queue_depth_max: z.int().nullable(),
    queue_counts: z.enum(["groups", "unread"]),
    messages: z.int(),
    bytes: z.int(),
    messages_per_second: z.number().nullable(),
    config: configAnswer,
  })
  .meta({ id: "Topic" });

export function createTopicRoutes(options: TopicRoutesOptions): ApiRoute[] {
  return [
    ...createCatalogueRoutes(options),
    ...createRuleRoutes(options),
    ...createTopicDeadLetterRoutes(options),
  ];
}

function createCatalogueRoutes(options: TopicRoutesOptions): ApiRoute[] {
  const { topics, admission } = options;
  const tag = "Topics";
  return [
    defineRoute({
      method: "GET",
      path: "/api/v1/topics",
      summary: "List all topics, with what they hold and their settings",
      description:
        "`bytes` are those of stored batches; `messages` may count ones that compaction has removed. " +
        "`queue_depth` counts what the slowest shared subscription has not read (`queue_counts`: `groups`), otherwise what was " +
        "published over HTTP and nobody has read (`unread`); at `queue_depth_max` publishing is refused. " +
        "`messages_per_second` is that of the last ten seconds, null before they are over and beyond 10 000 topics. " +
        "Of the caller's tenant; the operator chooses one with `tenant`, as in all other operations, or all with `*`.",
      tag,
      access: admission.anyRight,
      answer: z.object({
        topics: z.array(
          topicAnswer.extend({
            tenant: z.string().optional().describe("In the list of all tenants."),
          }),
        ),
        count: z.int(),
      }),
      handle: ({ caller }) => {
        const isForAll = isForAllTenants(caller);
        const found = isForAll ? topics.all() : topics.list(tenantOf(caller));
        const rights = admission.rightsOf(caller);
        const visible = [...found].filter(({ name }) => coversAny(rights, name));
        const list = visible.map((topic) => ({
          ...describeTopic(options, topic),
          ...(isForAll ? { tenant: topic.tenant } : {}),
        }));
        return { topics: list, count: list.length };
      },
    }),
    defineRoute({
      method: "POST",
      path: "/api/v1/topics",
      summary: "Create a topic",
      tag,
      access: admission.managers,
      status: 201,
      body: z.strictObject({
        name: z.string(),
        partitions: z.int().min(1).optional(),
        config: z.strictObject(configFields).optional(),
      }),
      answer: topicAnswer,
      handle: async ({ body, caller }) => {
        const { name, partitions, config = {} } = body;
        const allowed = admission.allow(caller, "manage", name);
        checkNew(name, partitions, topics.partitionsMax);
        const topic = await topics.create(tenantOf(caller), allowed, {
          ...(partitions === undefined ? {} : { partitions }),
          config: toConfig(config),
        });
        return describeTopic(options, topic);
      },
    }),
    defineRoute({
      method: "GET",
      path: "/api/v1/topics/{topic}",
      summary: "Describe a topic",
      description: "`config_etag` is for If-Match in changes of its settings.",
      tag,
      access: admission.anyRight,
      answer: topicAnswer.extend({ config_etag: z.string() }),
      handle: ({ params, caller }) => {
        const topic = topics.get(
          tenantOf(caller),
          admission.allow(caller, "any", params["topic"]!),
        );
        return { ...describeTopic(options, topic), config_etag: tagConfig(options, topic) };
      },
    }),
    defineRoute({
      method: "DELETE",
      path: "/api/v1/topics/{topic}",
      summary: "Delete a topic and its messages",
      tag,
      access: admission.managers,
      answer: NO_BODY,
      handle: async ({ params, caller }) => {
        await topics.delete(
          topics.get(tenantOf(caller), admission.allow(caller, "manage", params["topic"]!)),
        );
      },
    }),
    defineRoute({
      method: "POST",
      path: "/api/v1/topics/retention",
      summary: "Set the retention of a topic; settings that are not given stay",
      description: "With If-Match, only if `config_etag` of the topic is still the same.",
      tag,
      access: admission.managers,
      body: z.strictObject({ topic: z.string(), ...configFields }),
      problems: { 412: "The settings have changed" },
      answer: z.object({ topic: z.string(), ...configAnswer.shape }),
      handle: async ({ body, headers, caller }) => {
        const { topic: name, ...changes } = body;
        const topic = topics.get(tenantOf(caller), admission.allow(caller, "manage", name));
        requirePreconditions(headers, tagConfig(options, topic));
        await topics.configure(topic, toConfig(changes));
        return { topic: topic.name, ...describeConfig(topic) };
      },
    }),
  ];
}

function createRuleRoutes({ topics, schemas, admission }: TopicRoutesOptions): ApiRoute[] {
  const tag = "Rules of a topic";
  return [
    defineRoute({
      method: "POST",
      path: "/api/v1/topics/{topic}/schema",
      summary: "Set the schema of payloads: a map of fields to types, or JSON Schema",
      description:
        "With If-Match, only if the schema has this ETag; with `If-None-Match: *`, only if there is none.",
      tag,
      access: admission.managers,
      bodyBytesMax: SCHEMA_BYTES_MAX,
      query: z.object({ compatibility: z.enum(["backward", "none"]).default("none") }),
      body: z.record(z.string(), z.unknown()),
      problems: {
        409: "The schema is not backward compatible",
        412: "The schema has changed",
      },
      answer: z.object({
        status: z.literal("success"),
        topic: z.string(),
        kind: z.enum(SCHEMA_KINDS),
        schema: schemaDocument,
      }),
      handle: async ({ params, query, body, headers, caller }) => {
        const topic = await topics.ensure(
          tenantOf(caller),
          admission.allow(caller, "manage", params["topic"]!),
        );
        requirePreconditions(headers, tagSchema(schemas, topic));
        const { kind, document } = await schemas.register(topic, body, query.compatibility);
        return { status: "success" as const, topic: topic.name, kind, schema: document };
      },
    }),
    defineRoute({
      method: "GET",
      path: "/api/v1/topics/{topic}/schema",
      summary: "The schema of a topic",
      tag,
      access: admission.anyRight,
      answer: schemaDocument,
      handle: ({ params, caller, answerHeaders }) => {
        const topic = topics.get(
          tenantOf(caller),
          admission.allow(caller, "any", params["topic"]!),
        );
        const schema = schemas.find(topic);
        if (schema === undefined) throw new PlatformError("not_found", "The topic has no schema.");
        answerHeaders.set("ETag", tagSchema(schemas, topic)!);
        return schema.document;
      },
    }),
    defineRoute({
      method: "DELETE",
      path: "/api/v1/topics/{topic}/schema",
      summary: "Delete the schema",
      tag,
      access: admission.managers,
      problems: { 412: "The schema has changed" },
      answer: NO_BODY,
      handle: async ({ params, headers, caller }) => {
        const topic = topics.get(
          tenantOf(caller),
          admission.allow(caller, "manage", params["topic"]!),
        );
        requirePreconditions(headers, tagSchema(schemas, topic));
        await schemas.clear(topic);
      },
    }),
  ];
}

function describeTopic(options: TopicRoutesOptions, topic: Topic): z.infer<typeof topicAnswer> {
  const { subscriptions, groups, transforms, deadLetters, backlog, activity } = options;
  return {
    name: topic.name,
    subscribers: subscriptions.countOf(topic) + groups.memberCountOf(topic),
    partitions: topic.stored.partitions.length,
    has_transform: transforms.has(topic),
    dlq_topic: deadLetters.nameFor(topic),
    queue_depth: backlog.depthOf(topic),
    queue_depth_max: backlog.depthMax === 0 ? null : backlog.depthMax,
    queue_counts: backlog.hasGroups(topic) ? "groups" : "unread",
    ...measure(topic),
    messages_per_second: activity.rateOf(topic) ?? null,
    config: describeConfig(topic),
  };
}

// The catalogue has the same rules, but not the places of the values in the request.
function checkNew(name: string, partitions: number | undefined, partitionsMax: number): void {
  const reason = explainTopicName(name);
  if (reason !== undefined) {
    throw createValidationError([
      { in: "body", path: "name", message: `${reason}.`, code: "topic_name" },
    ]);
  }
  if (partitions === undefined || partitions <= partitionsMax) return;
  const message = `A topic has 1 to ${partitionsMax} partitions.`;
  throw createValidationError([
    {
      in: "body",
      path: "partitions",
      message,
      code: "too_large",
      params: { max: partitionsMax },
    },
  ]);
}

function measure({ stored: { partitions } }: Topic) {
  let messages = 0;
  let bytes = 0;
  for (const partition of partitions) {
    messages += partition.durableEnd - partition.logStart;
    bytes += partition.bytes;
  }
  return { messages, bytes };
}

function tagSchema(schemas: Schemas, topic: Topic): string | undefined {
  const schema = schemas.find(topic);
  return schema === undefined ? undefined : createEtag(JSON.stringify(schema.document));
}

function toConfig(fields: z.output<z.ZodObject<typeof configFields>>): Partial<TopicConfig> {
  const config: Partial<TopicConfig> = {};
  if (fields.retention_ms !== undefined) config.retentionMs = fields.retention_ms;
  if (fields.retention_bytes !== undefined) config.retentionBytes = fields.retention_bytes;
  if (fields.cleanup_policy !== undefined) config.cleanupPolicy = fields.cleanup_policy;
  if (fields.segment_bytes !== undefined) config.segmentBytes = fields.segment_bytes;
  if (fields.delete_retention_ms !== undefined) {
    config.deleteRetentionMs = fields.delete_retention_ms;
  }
  if (fields.offload !== undefined) config.offload = fields.offload;
  if (fields.key_index !== undefined) config.keyIndex = fields.key_index;
  if (fields.local_retention_ms !== undefined) config.localRetentionMs = fields.local_retention_ms;
  if (fields.local_retention_bytes !== undefined) {
    config.localRetentionBytes = fields.local_retention_bytes;
  }
  return config;
}
