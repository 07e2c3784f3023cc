// The tables of the metadata query: what a caller may see of topics, groups, connections and rules. Rows are made only for the
// tables that a statement reads.
import type { SqlTable, SqlValue } from "@platform/kernel/sql-child";
import type { TopicRules } from "../access/topic-rules.ts";
import type { ListConnections } from "../connection/listed-connection.ts";
import type { DeadLetterQueue } from "../deadletter/dead-letter-queue.ts";
import type { DeadLetterWriter } from "../deadletter/dead-letter-writer.ts";
import type { Backlog } from "../dispatch/backlog.ts";
import type { SharedSubscriptions } from "../dispatch/shared-subscriptions.ts";
import type { Subscriptions } from "../dispatch/subscription.ts";
import type { Schemas } from "../schema/schemas.ts";
import { measureLag, type Offsets } from "../store/offsets.ts";
import type { Tenant } from "../topic/name.ts";
import { coversAny, type Rights } from "../topic/rights.ts";
import type { Topic, Topics } from "../topic/topics.ts";
import type { Transforms } from "../transform/transforms.ts";

const BATCH_ROWS = 500;
/** Dead letters that `dlq` counts, the newest. */
const LETTERS_MAX = 10_000;

/** The caller of a query. */
export interface Viewer {
  /** Undefined for all tenants. */
  readonly tenant: Tenant | undefined;
  readonly rights: Rights;
  /** Operators see rules and connections. */
  readonly isOperator: boolean;
}

/** The parts of the broker that the tables describe. */
export interface MetadataSources {
  readonly topics: Topics;
  readonly offsets: Offsets;
  readonly groups: SharedSubscriptions;
  readonly subscriptions: Subscriptions;
  readonly backlog: Backlog;
  readonly schemas: Schemas;
  readonly transforms: Transforms;
  readonly deadLetters: DeadLetterWriter;
  readonly deadLetterQueue: Pick<DeadLetterQueue<unknown>, "countOf" | "summarize">;
  readonly topicRules: Pick<TopicRules, "list">;
  readonly connections: Readonly<Record<string, ListConnections>>;
  /** Members of a consumer group of Kafka's protocol. */
  readonly countConsumers: (tenant: Tenant, group: string) => number;
  /** Figures of a tenant; "" is the operator's, of all. */
  readonly readStats: (tenant: Tenant) => object;
}

type Row = readonly SqlValue[];
type Rows = Iterable<Row> | AsyncIterable<Row>;

/** Rows with the tenant that they belong to. */
type TenantRows = Iterable<readonly [Tenant, Row]> | AsyncIterable<readonly [Tenant, Row]>;

/** The tables. With rows of all tenants each has `tenant` as its first column. */
export function createMetadataTables(sources: MetadataSources, viewer: Viewer): SqlTable[] {
  const define = (name: string, columns: string, rows: () => TenantRows): SqlTable => {
    const isForAll = viewer.tenant === undefined;
    return {
      name,
      columns: [...(isForAll ? ["tenant"] : []), ...columns.split(", ")],
      rows: () => inBatches(withTenants(rows(), isForAll)),
    };
  };
  return [
    define(
      "topics",
      "name, partitions, messages, bytes, cleanup_policy, retention_ms, retention_bytes, has_schema, has_transform, dlq_topic, subscribers, queue_depth",
      () => listTopics(sources, viewer),
    ),
    define("partitions", "topic, partition, log_start, log_end, stable_end, bytes", () =>
      listPartitions(sources, viewer),
    ),
    define("groups", "name, kind, members, topics, lag", () => listGroups(sources, viewer)),
    define(
      "offsets",
      "group_name, topic, partition, committed_offset, latest_offset, lag, committed_at",
      () => listOffsets(sources, viewer),
    ),
    define("subscriptions", "topic, protocol, transport, client, user, address, since", () =>
      listSubscriptions(sources, viewer),
    ),
    define("dlq", "topic, dlq_topic, total, cause, count, first_seen, last_seen", () =>
      listDeadLetters(sources, viewer),
    ),
    define("schemas", "topic, kind, document", () => listSchemas(sources, viewer)),
    define("transforms", "topic, bytes, sha256", () => listTransforms(sources, viewer)),
    {
      name: "rules",
      columns: ["role", "topics", "allow"],
      rows: () => inBatches(viewer.isOperator ? listRules(sources) : []),
    },
    {
      name: "stats",
      columns: ["name", "value"],
      rows: () => inBatches(Object.entries(sources.readStats(viewer.tenant ?? "")) as Row[]),
    },
  ];
}

function* selectTopics({ topics }: MetadataSources, { tenant, rights }: Viewer): Generator<Topic> {
  for (const topic of tenant === undefined ? topics.all() : topics.list(tenant)) {
    if (coversAny(rights, topic.name)) yield topic;
  }
}

function* listTopics(sources: MetadataSources, viewer: Viewer) {
  const { backlog, deadLetters, groups, schemas, subscriptions, transforms } = sources;
  for (const topic of selectTopics(sources, viewer)) {
    const { config, partitions } = topic.stored;
    const messages = partitions.reduce(
      (sum, { durableEnd, logStart: s }) => sum + durableEnd - s,
      0,
    );
    const row: Row = [
      topic.name,
      partitions.length,
      messages,
      partitions.reduce((sum, { bytes }) => sum + bytes, 0),
      config.cleanupPolicy,
      config.retentionMs,
      config.retentionBytes,
      Number(schemas.find(topic) !== undefined),
      Number(transforms.has(topic)),
      deadLetters.nameFor(topic),
      subscriptions.countOf(topic) + groups.memberCountOf(topic),
      backlog.depthOf(topic),
    ];
    yield [topic.tenant, row] as const;
  }
}

function* listPartitions(sources: MetadataSources, viewer: Viewer) {
  for (const { name, tenant, stored } of selectTopics(sources, viewer)) {
    for (const { index, logStart, durableEnd, bytes } of stored.partitions) {
      yield [tenant, [name, index, logStart, durableEnd, durableEnd, bytes]] as const;
    }
  }
}

function* listGroups(sources: MetadataSources, viewer: Viewer) {
  const { countConsumers, groups, offsets } = sources;
  for (const tenant of listTenants(sources, viewer)) {
    for (const { name, kind } of offsets.groups(tenant)) {
      const topics = new Set<Topic>();
      let lag = 0;
      for (const stored of offsets.list(tenant, name)) {
        if (!viewer.rights.covers("subscribe", stored.topic.name)) continue;
        topics.add(stored.topic);
        lag += measureLag(stored).lag;
      }
      // Groups of topics that the caller may not read are not shown.
      if (topics.size === 0 && !viewer.isOperator) continue;
      let members = countConsumers(tenant, name);
      for (const topic of topics) members += groups.find(tenant, name, topic)?.memberCount ?? 0;
      yield [tenant, [name, kind ?? null, members, topics.size, lag]] as const;
    }
  }
}

function* listOffsets(sources: MetadataSources, viewer: Viewer) {
  const { offsets } = sources;
  for (const tenant of listTenants(sources, viewer)) {
    for (const { name } of offsets.groups(tenant)) {
      for (const stored of offsets.list(tenant, name)) {
        const { topic, partition, offset, committedAt } = stored;
        if (!viewer.rights.covers("subscribe", topic.name)) continue;
        const { lag, latest } = measureLag(stored);
        const at = new Date(committedAt).toISOString();
        yield [tenant, [name, topic.name, partition, offset, latest, lag, at]] as const;
      }
    }
  }
}

function* listSubscriptions({ connections }: MetadataSources, viewer: Viewer) {
  if (!viewer.isOperator) return;
  for (const [protocol, list] of Object.entries(connections)) {
    for (const { client, remoteAddress, transport, openedAtMs } of list(0)) {
      const tenant = client?.tenant ?? "";
      if (viewer.tenant !== undefined && tenant !== viewer.tenant) continue;
      const since = new Date(openedAtMs).toISOString();
      const who = [client?.clientId ?? null, client?.user ?? null, remoteAddress];
      for (const topic of client?.subscriptions ?? []) {
        yield [tenant, [topic, protocol, transport, ...who, since]] as const;
      }
    }
  }
}

async function* listDeadLetters(sources: MetadataSources, viewer: Viewer) {
  const { deadLetterQueue } = sources;
  let left = LETTERS_MAX;
  for (const topic of selectTopics(sources, viewer)) {
    if (!viewer.rights.covers("subscribe", topic.name)) continue;
    if (left <= 0 || deadLetterQueue.countOf(topic) === 0) continue;
    const { clusters, counted, dlq_topic, total } = await deadLetterQueue.summarize(topic, left);
    left -= counted;
    for (const { reason, count, first_seen, last_seen } of clusters) {
      const seen = [first_seen, last_seen].map((at) => new Date(at * 1_000).toISOString());
      yield [topic.tenant, [topic.name, dlq_topic, total, reason, count, ...seen] as Row] as const;
    }
  }
}

function* listSchemas(sources: MetadataSources, viewer: Viewer) {
  for (const topic of selectTopics(sources, viewer)) {
    const schema = sources.schemas.find(topic);
    if (schema === undefined) continue;
    yield [topic.tenant, [topic.name, schema.kind, JSON.stringify(schema.document)]] as const;
  }
}

function* listTransforms(sources: MetadataSources, viewer: Viewer) {
  for (const topic of selectTopics(sources, viewer)) {
    const transform = sources.transforms.describe(topic);
    if (transform === undefined) continue;
    yield [topic.tenant, [topic.name, transform.bytes, transform.sha256]] as const;
  }
}

function* listRules({ topicRules }: MetadataSources): Generator<Row> {
  for (const { role, rules } of topicRules.list()) {
    for (const { topics, allow } of rules) yield [role, topics, allow.join(",")];
  }
}

function listTenants({ topics }: MetadataSources, { tenant }: Viewer): Iterable<Tenant> {
  if (tenant !== undefined) return [tenant];
  return new Set([...topics.all()].map((topic) => topic.tenant));
}

async function* withTenants(rows: TenantRows, isForAll: boolean): AsyncGenerator<Row> {
  for await (const [tenant, row] of rows) yield isForAll ? [tenant, ...row] : row;
}

async function* inBatches(rows: Rows): AsyncGenerator<Row[]> {
  let batch: Row[] = [];
  for await (const row of rows) {
    batch.push(row);
    if (batch.length < BATCH_ROWS) continue;
    yield batch;
    batch = [];
  }
  if (batch.length > 0) yield batch;
}
