// The composition root of the broker: creates and connects all parts, from top to bottom.
import { createBackupRoute } from "@platform/kernel/backup";
import { AdminFeeds } from "@platform/kernel/feeds";
import { HealthRegistry } from "@platform/kernel/health";
import { createApi, listenHttp } from "@platform/kernel/http";
import { createIdSource } from "@platform/kernel/ids";
import { followRevocations } from "@platform/kernel/identity";
import { explainListenError, type Lifecycle } from "@platform/kernel/lifecycle";
import type { Logger } from "@platform/kernel/log";
import { createProcessCollector, MetricRegistry } from "@platform/kernel/metrics";
import { OutgoingBudget } from "@platform/kernel/sockets";
import { systemClock } from "@platform/kernel/time";
import { CertificateWatch, pickCertificateFiles } from "@platform/kernel/tls";
import { createServiceTracer } from "@platform/kernel/trace";
import {
  LOG_DATA_FORMATS,
  openLog,
  openNodeDisk,
  type LogStats,
  type SyncMode,
} from "@platform/log";
import { GuestPool } from "@platform/wasm";
import { openBroker } from "./broker.ts";
import { PULSE_VERSION, type PulseConfig } from "./config.ts";
import { createConsole } from "./http/console.ts";
import { Admission } from "./http/admission.ts";
import { handleCors } from "./http/cors.ts";
import { createMessagingRoutes } from "./http/messaging-routes.ts";
import { MessageFrames } from "./http/message-frames.ts";
import { createStatsReader } from "./http/stats-api.ts";
import { Subscribers } from "./http/subscribers.ts";
import { WebSockets } from "./http/web-sockets.ts";
import { createCredentials, KafkaServer } from "./kafka/index.ts";
import { MqttServer } from "./mqtt/index.ts";
import { StompServer } from "./stomp/index.ts";
import { createFigures, PulseMetrics, type MetricSources } from "./metrics.ts";
import { takeLogSnapshot } from "./store/backup.ts";
import { explainOpenError, logEvent, logRecovery } from "./store/events.ts";
import { findLogFolder } from "./store/folder.ts";
import { BATCH_BYTES_MAX } from "./store/store.ts";
import { addStompUser, readUsersFile } from "./user/users-file.ts";
import { createVerifier, hasCredentials } from "./user/verifier.ts";
import { listenForWires } from "./wire-listeners.ts";

const BODY_BYTES_MAX = 1024 * 1024;
/** Largest record batch of a Kafka client, equal to the largest body of the HTTP API. */
const KAFKA_BATCH_BYTES_MAX = 10 * 1024 * 1024;

/** Options of `startPulse`. */
export interface PulseOptions {
  config: PulseConfig;
  log: Logger;
  lifecycle: Lifecycle;
}

/** Starts the broker; resolves once it listens. */
export async function startPulse({ config, log, lifecycle }: PulseOptions): Promise<void> {
  const clock = systemClock;
  const idSource = createIdSource();
  const files = pickCertificateFiles(config);
  const certificates = files && new CertificateWatch({ pairs: [files], log });
  const tls = certificates?.current.pairs[0];
  for (const key of ["kafka_tls_addr", "mqtt_tls_addr"] as const) {
    if (config[key] === undefined || tls !== undefined) continue;
    throw new Error(`${key} needs tls_cert and tls_key`);
  }
  if (config.partitions_default > config.partitions_max) {
    throw new Error("partitions_default is larger than partitions_max");
  }
  const registry = new MetricRegistry();
  registry.collect(createProcessCollector({ service: "pulse", version: PULSE_VERSION }));
  const followed = followRevocations({ config, clock, log, metrics: registry });
  lifecycle.onDrain("revocations", () => followed.stop());
  const users = config.users_file === undefined ? [] : readUsersFile(config.users_file);
  const verifier = createVerifier(config, followed.revocations, log);
  const anonymous = hasCredentials(config) ? "never" : config.anonymous;

  const journal = await openLog({
    disk: openNodeDisk(findLogFolder(config)),
    sync: toSyncMode(config.fsync),
    ...(config.disk_reserve === undefined ? {} : { reserveBytes: config.disk_reserve }),
    batchBytesMax: BATCH_BYTES_MAX,
    quarantineBytesMax: config.quarantine_bytes_max,
    onEvent: (event) => logEvent(log, event, config),
  }).catch((error: unknown) => {
    throw explainOpenError(error, config);
  });
  lifecycle.onDrain("log", () => journal.close());
  logRecovery(log, journal.recovery);

  const sources: MetricSources = {
    published: () => publisher.counts.published + kafka.counts.published,
    mqttConnections: () => mqtt.connectionCount,
    topics: () => topics.count,
    log: () => journal.stats(),
    subscribers: () => subscribers.count,
    deadLetters: () =>
      publisher.counts.deadLettered +
      kafka.counts.deadLettered +
      broker.counts.expired +
      broker.counts.undelivered,
  };
  const metrics = new PulseMetrics(registry, sources);
  const guests = new GuestPool({
    callMsMax: config.transform_ms_max,
    memoryBytesMax: config.transform_memory_bytes_max,
    outputBytesMax: config.message_bytes_max,
  });
  lifecycle.onDrain("transforms", () => guests.close());
  const broker = await openBroker({
    journal,
    guests,
    limits: config,
    clock,
    idSource,
    onTransform: (run) => metrics.observeRun(run),
    onError: (error) => log.error("background work failed", { error }),
  });
  lifecycle.onDrain("broker", () => broker.close());
  const { store, state, topics, offsets, schemas, transforms, deadLetters, backlog } = broker;
  const { feeds: messageFeeds, subscriptions, groups, publisher } = broker;
  const { tenantCounts, topicRules } = broker;
  const credentials = createCredentials(users, verifier, topicRules);

  const kafka: KafkaServer = await KafkaServer.open({
    store,
    state,
    topics,
    topicRules,
    offsets,
    schemas,
    transforms,
    deadLetters,
    backlog,
    idSource,
    clock,
    tenantCounts,
    metrics: registry,
    log,
    credentials,
    tokenStreams: followed.streams,
    anonymous,
    advertised: toAdvertised(config),
    isAutoCreating: config.kafka_auto_create_topics,
    batchBytesMax: KAFKA_BATCH_BYTES_MAX,
    limits: {
      connectionsMax: config.kafka_connections_max,
      connectionsPerAddressMax: config.kafka_connections_per_address_max,
      connectionsPerUserMax: config.kafka_connections_per_user_max,
      idleTimeoutMs: config.kafka_idle_timeout_ms,
    },
    quotas: {
      produceBytesPerSecond: config.kafka_produce_bytes_rate,
      fetchBytesPerSecond: config.kafka_fetch_bytes_rate,
    },
    groupRetentionMs: config.kafka_group_retention_minutes * 60_000,
  });
  lifecycle.onDrain("kafka", (drain) => kafka.close(Math.max(0, drain.remainingMs() - 2_000)));

  const mqtt: MqttServer = await MqttServer.open({
    store,
    state,
    topics,
    feeds: messageFeeds,
    subscriptions,
    groups,
    backlog,
    deadLetters,
    publisher,
    clock,
    metrics: registry,
    log,
    credentials,
    tokenStreams: followed.streams,
    anonymous,
    messageBytesMax: config.message_bytes_max,
    ackWaitMs: config.ack_wait_ms,
    sessionsMax: config.mqtt_sessions_max,
    sessionsPerTenantMax: config.mqtt_sessions_per_tenant_max,
    subscriptionsPerSessionMax: config.mqtt_subscriptions_per_session_max,
    retainedPerTenantMax: config.mqtt_retained_per_tenant_max,
    publishBytesPerSecond: config.mqtt_publish_bytes_rate,
    limits: {
      connectionsMax: config.mqtt_connections_max,
      connectionsPerAddressMax: config.mqtt_connections_per_address_max,
      connectionsPerUserMax: config.mqtt_connections_per_user_max,
      sessionExpiryMaxSeconds: config.mqtt_session_expiry_max_s,
      receiveMaximum: config.mqtt_receive_maximum,
      keepAliveMaxSeconds: config.mqtt_keep_alive_max_s,
      stallTimeoutMs: config.stall_timeout_ms,
    },
  });
  lifecycle.onDrain("mqtt", (drain) => mqtt.close(Math.max(0, drain.remainingMs() - 2_000)));
  const stomp = new StompServer({
    topics,
    subscriptions,
    groups,
    deadLetters,
    publisher,
    clock,
    metrics: registry,
    log,
    credentials: createCredentials(addStompUser(users, config), verifier, topicRules),
    tokenStreams: followed.streams,
    anonymous,
    messageBytesMax: config.message_bytes_max,
    ackWaitMs: config.ack_wait_ms,
    sendBytesPerSecond: config.stomp_send_bytes_rate,
    limits: {
      connectionsMax: config.stomp_connections_max,
      connectionsPerAddressMax: config.stomp_connections_per_address_max,
      connectionsPerUserMax: config.stomp_connections_per_user_max,
      idleTimeoutMs: config.stomp_idle_timeout_ms,
      stallTimeoutMs: config.stall_timeout_ms,
    },
  });
  lifecycle.onDrain("stomp", (drain) => stomp.close(Math.max(0, drain.remainingMs() - 2_000)));

  const outgoing = new OutgoingBudget(config.unsent_bytes_max);
  const subscribers = new Subscribers({
    subscribersMax: config.subscribers_max,
    perUserMax: config.subscribers_per_user_max,
    stallTimeoutMs: config.stall_timeout_ms,
    onDropped: (tenant) => tenantCounts.addDropped(tenant),
    tokenStreams: followed.streams,
    onError: (error) => log.error("closing slow subscribers failed", { error }),
  });
  topicRules.watch(() => {
    subscribers.endForbidden();
    mqtt.endForbidden();
    stomp.endForbidden();
  });
  const readStats = createStatsReader({
    topics,
    backlog,
    tenantCounts,
    clock,
    readTotals: () => ({
      messages_published: publisher.counts.published + kafka.counts.published,
      wasm_executions: metrics.executions,
      wasm_execution_errors: metrics.errors,
      wasm_avg_duration_ns: metrics.averageNs,
      wal_entries: journal.stats().entries,
      dropped: subscribers.dropped,
    }),
  });
  const health = new HealthRegistry({ service: "pulse", version: PULSE_VERSION });
  health.addCheck("log", () => describeLogState(journal.stats()));
  health.addWarning("log", () => describeDamage(journal.stats()));
  health.addWarning("revocations", followed.describe);
  const tracer = createServiceTracer({
    resource: { service: "pulse", version: PULSE_VERSION },
    endpoint: config.otlp_endpoint,
    metrics: registry,
    ids: idSource,
    clock,
  });
  lifecycle.onDrain("traces", (drain) => tracer.shutdown(Math.min(1_000, drain.remainingMs())));

  const webConsole = createConsole(config, verifier, clock);
  const { guard } = webConsole;
  const feeds = new AdminFeeds({
    service: "pulse",
    version: PULSE_VERSION,
    figures: createFigures(sources),
    registry,
    health,
    guard,
    clock,
    logger: log,
  });
  const frames = new MessageFrames();
  const ackWaitMs = config.ack_wait_ms;
  const admission = new Admission(topicRules);
  const reading = { topics, subscriptions, groups, deadLetters, ackWaitMs, admission };
  const subscribe = { ...reading, subscribers, frames, guard };
  const origins = config.cors_origins;
  const api = createApi({
    service: "pulse",
    version: PULSE_VERSION,
    title: "Pulse",
    description: "Messages over one durable log.",
    routes: [
      ...createMessagingRoutes({
        ...subscribe,
        origins,
        broker,
        readStats,
        connections: {
          http: (after) => subscribers.list(after),
          kafka: (after) => kafka.listConnections(after),
          mqtt: (after) => mqtt.listConnections(after),
          stomp: (after) => stomp.listConnections(after),
        },
        describeConsumerGroup: (tenant, name) => kafka.describeGroup(tenant, name),
      }),
      ...feeds.createRoutes(),
      ...webConsole.createRoutes(),
      createBackupRoute({
        service: "pulse",
        version: PULSE_VERSION,
        dataFormat: LOG_DATA_FORMATS.newest,
        token: config.backup_token,
        takeSnapshot: () => takeLogSnapshot(journal),
        stopping: lifecycle.stopping,
        clock,
        metrics: registry,
      }),
    ],
    guard,
    metricsToken: config.metrics_token,
    health,
    metrics: registry,
    logger: log,
    tracer,
    clock,
    bodyBytesMax: BODY_BYTES_MAX,
  });
  const sockets = new WebSockets({ ...subscribe, origins, readStats, logger: log });
  const listener = await listenHttp({
    address: config.http_addr,
    fetch: (request, bindings) => api.fetch(request, bindings),
    intercept: (request, response) =>
      handleCors(origins, request, response) || api.intercept(request, response),
    onUpgrade: (request, socket, head) => {
      if (feeds.handleUpgrade(request, socket, head)) return;
      if (mqtt.handleUpgrade(request, socket, head)) return;
      if (stomp.handleUpgrade(request, socket, head)) return;
      sockets.handleUpgrade(request, socket, head);
    },
    connectionsMax: config.connections_max,
    connectionsPerAddressMax: config.connections_per_address_max,
    outgoing,
    metrics: registry,
    ...(tls === undefined ? {} : { tls }),
  }).catch(async (error: unknown) => {
    throw await explainListenError(
      error,
      config.http_addr,
      "--http-addr or PLATFORM_PULSE_HTTP_ADDR",
    );
  });
  lifecycle.onDrain("http", (drain) => {
    subscribers.close("the broker is stopping");
    sockets.close();
    return listener.close(Math.max(0, drain.remainingMs() - 2_000));
  });
  feeds.start();
  lifecycle.onDrain("admin feeds", () => feeds.close());
  const scheme = tls === undefined ? "http" : "https";
  const { host = "::", port = 0 } = listener;
  lifecycle.reportListener({ name: scheme, host, port });
  const wires = await listenForWires({ kafka, mqtt, stomp }, config, tls, lifecycle);
  certificates?.follow(lifecycle, ({ pairs: [pair] }) => {
    for (const one of [listener, ...wires]) one.setTls(pair!);
  });
  lifecycle.stopping.addEventListener("abort", () => health.setState("draining"));
  health.setState("ready");
}

function toAdvertised({ kafka_advertised }: PulseConfig) {
  if (kafka_advertised?.host === undefined) return undefined;
  return { host: kafka_advertised.host, port: kafka_advertised.port };
}

function toSyncMode(text: string): SyncMode {
  if (text === "group" || text === "os") return { kind: text };
  return { kind: "interval", ms: Number(text.slice("interval:".length)) };
}

function describeDamage({ damagedRanges }: LogStats): string | undefined {
  if (damagedRanges === 0) return undefined;
  return `${damagedRanges} damaged ranges of stored messages cannot be read`;
}

function describeLogState({ state, diskFull }: LogStats): string | undefined {
  if (state !== "open") return "the log takes no writes";
  return diskFull ? "disk_full: publishing is refused until space is free" : undefined;
}
