// The HTTP API with its event streams and WebSockets.
import type { Operation, Service } from "@platform/chassis";
import { createBearerGuard, type ApiRoute } from "@platform/kernel/http";
import { OutgoingBudget } from "@platform/kernel/sockets";
import { LOG_DATA_FORMATS } from "@platform/log";
import type { PulseConfig } from "../config.ts";
import { Admission, createTenantGuard } from "../http/admission.ts";
import { describeConsole } from "../http/console.ts";
import { handleCors } from "../http/cors.ts";
import type { EventStreamOptions } from "../http/event-stream.ts";
import { MessageFrames } from "../http/message-frames.ts";
import type { ConnectionSources } from "../http/connections-api.ts";
import { createMessagingRoutes } from "../http/messaging-routes.ts";
import { createStatsReader, type StatsReader } from "../http/stats-api.ts";

import { Subscribers } from "../http/subscribers.ts";
import { WebSockets } from "../http/web-sockets.ts";
import { MetadataQueries } from "../query/metadata-queries.ts";
import type { MetadataSources } from "../query/metadata-tables.ts";
import { collectMetrics, createFigures, type MetricSources } from "../metrics.ts";
import { takeLogSnapshot } from "../store/backup.ts";
import type { Callers } from "./callers.ts";
import type { Messages } from "./messages.ts";
import type { Wires } from "./wires.ts";

const BODY_BYTES_MAX = 1024 * 1024;

/** Opens the listener of the API, and that of WebSockets of MQTT and STOMP. */
export async function openHttp(
  config: PulseConfig,
  service: Service,
  messages: Messages,
  callers: Callers,
  wires: Wires,
): Promise<void> {
  const { broker } = messages;
  const { log: logger, lifecycle } = service;
  const { cors_origins: origins } = config;
  const subscribers = openSubscribers(config, service, messages);
  const sources = describeSources(service, messages, wires, subscribers);
  collectMetrics(service.metrics, sources, messages.runs);
  const operation = openOperation(service, messages, callers, sources);
  const subscribe = {
    ...broker,
    ackWaitMs: config.ack_wait_ms,
    admission: new Admission(broker.topicRules),
    subscribers,
    frames: new MessageFrames(),
    guard: operation.guard,
  };
  const readStats = createReader(service, messages, wires, subscribers);
  const api = service.createApi({
    title: "Pulse",
    description: "Messages over one durable log.",
    operation,
    routes: listRoutes(service, { ...subscribe, origins }, messages, wires, readStats),
    bodyBytesMax: BODY_BYTES_MAX,
  });
  const sockets = new WebSockets({ ...subscribe, origins, readStats, logger });
  lifecycle.onDrain("WebSockets", () => sockets.close(), "streams");
  const { feeds } = operation;
  const { mqtt, stomp } = wires;
  await service.serve({
    address: config.http_addr,
    setting: "--http-addr or PLATFORM_PULSE_HTTP_ADDR",
    fetch: api.fetch,
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
    outgoing: new OutgoingBudget(config.unsent_bytes_max),
  });
}

function openSubscribers(
  config: PulseConfig,
  { log, lifecycle, followed }: Service,
  { broker: { tenantCounts, topicRules } }: Messages,
): Subscribers {
  const subscribers = new Subscribers({
    subscribersMax: config.subscribers_max,
    perUserMax: config.subscribers_per_user_max,
    stallTimeoutMs: config.stall_timeout_ms,
    onDropped: (tenant) => tenantCounts.addDropped(tenant),
    tokenStreams: followed.streams,
    onError: (error) => log.error("closing slow subscribers failed", { error }),
  });
  topicRules.watch(() => subscribers.endForbidden());
  const close = (): void => subscribers.close("the broker is stopping");
  lifecycle.onDrain("subscribers", close, "streams");
  return subscribers;
}

function describeSources(
  { clock }: Service,
  { broker, journal, offload }: Messages,
  { kafka, mqtt }: Wires,
  subscribers: Subscribers,
): MetricSources {
  const { publisher, topics, counts, activity, anomalies } = broker;
  return {
    published: () => publisher.counts.published + kafka.counts.published,
    mqttConnections: () => mqtt.connectionCount,
    topics: () => topics.count,
    log: () => journal.stats(),
    subscribers: () => subscribers.count,
    lag: () => activity.worstLag,
    anomalies: () => anomalies.countActive(),
    offload: () => offload.status,
    nowMs: () => clock.now(),
    deadLetters: () =>
      publisher.counts.deadLettered +
      kafka.counts.deadLettered +
      counts.expired +
      counts.undelivered,
  };
}

function openOperation(
  service: Service,
  { journal }: Messages,
  { verifier }: Callers,
  sources: MetricSources,
): Operation {
  return service.openOperation({
    guard: createTenantGuard(createBearerGuard(verifier)),
    console: describeConsole(verifier !== undefined),
    figures: createFigures(sources),
    backup: {
      dataFormat: LOG_DATA_FORMATS.newest,
      takeSnapshot: () => takeLogSnapshot(journal),
    },
  });
}

function createReader(
  { clock }: Service,
  { broker, journal, runs }: Messages,
  { kafka }: Wires,
  subscribers: Subscribers,
): StatsReader {
  const { topics, backlog, tenantCounts, publisher } = broker;
  return createStatsReader({
    topics,
    backlog,
    tenantCounts,
    clock,
    readTotals: () => ({
      messages_published: publisher.counts.published + kafka.counts.published,
      wasm_executions: runs.executions,
      wasm_execution_errors: runs.errors,
      wasm_avg_duration_ns: runs.averageNs,
      wal_entries: journal.stats().entries,
      dropped: subscribers.dropped,
    }),
  });
}

function openQueries({ lifecycle, metrics }: Service, sources: MetadataSources): MetadataQueries {
  const finished = metrics.counter({
    name: "platform_pulse_queries_total",
    help: "SQL queries over metadata by their end; killed ones exceeded a limit.",
    labels: ["outcome"],
  });
  const queries = new MetadataQueries(sources, (outcome) => finished.with({ outcome }).add());
  lifecycle.onDrain("metadata queries", () => queries.close());
  return queries;
}

function listRoutes(
  service: Service,
  subscribe: EventStreamOptions,
  { broker, offload }: Messages,
  { kafka, mqtt, stomp }: Wires,
  readStats: StatsReader,
): ApiRoute[] {
  const connections: ConnectionSources = {
    http: (after) => subscribe.subscribers.list(after),
    kafka: (after) => kafka.listConnections(after),
    mqtt: (after) => mqtt.listConnections(after),
    stomp: (after) => stomp.listConnections(after),
  };
  const queries = openQueries(service, {
    ...broker,
    connections: { ...connections },
    countConsumers: (tenant, name) => kafka.describeGroup(tenant, name)?.members.length ?? 0,
    readStats,
  });
  return createMessagingRoutes({
    ...subscribe,
    broker,
    offload,
    readStats,
    queries,
    clock: service.clock,
    connections,
    describeConsumerGroup: (tenant, name) => kafka.describeGroup(tenant, name),
  });
}
