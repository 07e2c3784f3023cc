// The broker without its listeners: all parts between the log and the protocols.
import { RateLimit } from "@platform/kernel/http";
import type { IdSource } from "@platform/kernel/ids";
import { every, type Clock, type RepeatingTimer } from "@platform/kernel/time";
import type { Log } from "@platform/log";
import type { GuestPool } from "@platform/wasm";
import { Activity } from "./activity/activity.ts";
import { Anomalies, type AnomaliesOptions } from "./anomaly/anomalies.ts";
import { TopicRules } from "./access/topic-rules.ts";
import { Compactor } from "./compact/compactor.ts";
import { DeadLetterQueue } from "./deadletter/dead-letter-queue.ts";
import { DeadLetterWriter } from "./deadletter/dead-letter-writer.ts";
import { Backlog } from "./dispatch/backlog.ts";
import { Delays } from "./dispatch/delays.ts";
import { Expiry } from "./dispatch/expiry.ts";
import { Feeds } from "./dispatch/feed.ts";
import { SharedSubscriptions } from "./dispatch/shared-subscriptions.ts";
import { Subscriptions } from "./dispatch/subscription.ts";
import { MessageIds } from "./publish/message-ids.ts";
import { Publisher } from "./publish/publisher.ts";
import { Sequences } from "./publish/sequences.ts";
import { Schemas } from "./schema/schemas.ts";
import { Offsets } from "./store/offsets.ts";
import { StateTable } from "./store/state.ts";
import { Store } from "./store/store.ts";
import { TenantCounts } from "./tenant/tenant-counts.ts";
import { Topics } from "./topic/topics.ts";
import { Transforms, type TransformObserver } from "./transform/transforms.ts";

/** Interval for saving cursors of plain subscribers and compacting state. */
const HOUSEKEEPING_MS = 1_000;
/** Interval of building filters of keys for closed segments. */
const KEY_INDEX_MS = 5_000;
/** Interval of retention. */
const RETENTION_MS = 60_000;
const OFFSET_LIMITS = { groupsPerTenantMax: 10_000, offsetsMax: 1_000_000 };

/** Limits, named like the configuration keys. */
interface BrokerLimits {
  topics_per_tenant_max: number;
  partitions_max: number;
  partitions_default: number;
  offload_default?: boolean;
  backpressure_limit: number;
  publish_rate: number;
  publish_capacity: number;
  message_bytes_max: number;
  message_ids_max: number;
  producers_max: number;
  max_deliveries: number;
  nack_backoff_ms: number;
  nack_backoff_max_ms: number;
  followed_topics_per_user_max: number;
  followed_topics_per_tenant_max: number;
  followed_topics_max: number;
}

/** Options of `openBroker`. The caller closes the log and the pool. */
export interface BrokerOptions {
  journal: Log;
  guests: GuestPool;
  limits: BrokerLimits;
  clock: Clock;
  idSource: IdSource;
  onTransform: TransformObserver;
  /** Called with failures of background work. */
  onError: (error: unknown) => void;
}

/** A running broker. */
export type Broker = Awaited<ReturnType<typeof openBroker>>;

/** Loads the stored state and starts to deliver due messages. Rejects with errors of the log. */
export async function openBroker(options: BrokerOptions) {
  const { journal, guests, limits, clock, idSource, onError } = options;
  const store = new Store(journal);
  const state = await StateTable.open(store);
  const topicLimits = {
    topicsPerTenantMax: limits.topics_per_tenant_max,
    partitionsMax: limits.partitions_max,
  };
  const topics = new Topics(journal, topicLimits, defaultsOf(limits));
  const topicRules = new TopicRules(store, state);
  const offsets = Offsets.open(store, state, topics, OFFSET_LIMITS);
  const deadLetters = new DeadLetterWriter(store, state, topics);
  const schemas = new Schemas(store, state, topics);
  const tenantCounts = new TenantCounts();
  const transforms = new Transforms(store, state, topics, guests, (run, topic) => {
    tenantCounts.addRun(topic.tenant, run);
    options.onTransform(run, topic);
  });
  const backlog = new Backlog(store, state, topics, limits.backpressure_limit);
  const counts = { expired: 0, undelivered: 0 };
  const onExpired = () => counts.expired++;
  const expiry = new Expiry({
    store,
    state,
    topics,
    backlog,
    deadLetters,
    clock,
    onExpired,
    onError,
  });
  await expiry.open();
  const delays = new Delays({ store, state, topics, backlog, expiry, clock, onError });
  const feeds = new Feeds(store, topics, onError);
  const subscriptions = new Subscriptions(feeds, topics, backlog, {
    perUserMax: limits.followed_topics_per_user_max,
    perTenantMax: limits.followed_topics_per_tenant_max,
    max: limits.followed_topics_max,
  });
  const groups = new SharedSubscriptions({
    store,
    state,
    topics,
    offsets,
    feeds,
    backlog,
    deadLetters,
    clock,
    redelivery: {
      maxDeliveries: limits.max_deliveries,
      backoffMs: limits.nack_backoff_ms,
      backoffMsMax: limits.nack_backoff_max_ms,
    },
    onUndelivered: () => counts.undelivered++,
    onError,
  });
  const publisher = new Publisher({
    store,
    topics,
    rate: new RateLimit({
      name: "publish",
      detail: "Messages are published faster than the rate limit allows.",
      clock,
      ratePerSecond: limits.publish_rate,
      capacity: limits.publish_capacity,
    }),
    ids: await MessageIds.open(store, clock, limits.message_ids_max),
    sequences: new Sequences(state, limits.producers_max),
    schemas,
    transforms,
    backlog,
    delays,
    expiry,
    deadLetters,
    idSource,
    clock,
    tenantCounts,
    messageBytesMax: limits.message_bytes_max,
  });
  const deadLetterQueue = new DeadLetterQueue({
    store,
    state,
    topics,
    writer: deadLetters,
    republish: async (tenant, message, ordered) => {
      const options = { isRated: false, isRequeue: true, ordered };
      const [outcome] = await publisher.publish(tenant, [message], options);
      return outcome!;
    },
  });
  const compactor = new Compactor({ store, topics, groups, expiry, onError });
  const watch = watchTopics({ store, state, topics, offsets, clock, idSource, onError });
  expiry.start(groups);
  delays.start();
  compactor.start();
  const timers = startUpkeep({ store, state, backlog, expiry, onError });
  return {
    store,
    state,
    topics,
    topicRules,
    offsets,
    schemas,
    transforms,
    deadLetters,
    backlog,
    feeds,
    subscriptions,
    groups,
    publisher,
    deadLetterQueue,
    counts,
    tenantCounts,
    ...watch,
    /** Stops background work and saves its state; the log stays open. */
    async close(): Promise<void> {
      await Promise.all(timers.map((timer) => timer.stop()));
      await watch.activity.stop();
      await watch.anomalies.close();
      await compactor.stop();
      await delays.stop();
      await expiry.stop();
      feeds.close();
      await groups.close();
      await Promise.all([backlog.save(), expiry.save()]);
      await store.finish();
    },
  };
}

function defaultsOf({ partitions_default: partitions, offload_default = false }: BrokerLimits) {
  return { partitions, isOffloaded: offload_default };
}

/** Starts to sample the topics, and to look for what is unusual in the samples. */
function watchTopics(options: Omit<AnomaliesOptions, "activity"> & { offsets: Offsets }) {
  const activity = new Activity(options);
  const anomalies = new Anomalies({ ...options, activity });
  activity.start();
  return { activity, anomalies };
}

interface UpkeepParts {
  readonly store: Store;
  readonly state: StateTable;
  readonly backlog: Backlog;
  readonly expiry: Expiry;
  readonly onError: (error: unknown) => void;
}

/** Starts what is due again and again. */
function startUpkeep({ store, state, backlog, expiry, onError }: UpkeepParts): RepeatingTimer[] {
  const { log } = store;
  const keepHouse = async (): Promise<void> => {
    await Promise.all([backlog.save(), expiry.save(), state.compactIfDue(), log.reclaimSpace()]);
  };
  return [
    every(HOUSEKEEPING_MS, keepHouse, onError),
    // The log ends a pass when it is closed.
    every(KEY_INDEX_MS, () => void log.indexKeys().catch(onError), onError),
    every(RETENTION_MS, () => void log.applyRetention(), onError),
  ];
}
