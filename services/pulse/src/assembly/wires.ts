// The servers of the wire protocols: Kafka, MQTT, STOMP.
import type { Service } from "@platform/chassis";
import type { DrainHook } from "@platform/kernel/lifecycle";
import type { PulseConfig } from "../config.ts";
import { createCredentials, KafkaServer } from "../kafka/index.ts";
import { MqttServer } from "../mqtt/index.ts";
import { StompServer } from "../stomp/index.ts";
import { addStompUser } from "../user/users-file.ts";
import type { Callers } from "./callers.ts";
import type { Messages } from "./messages.ts";

/** Time kept of the drain for the broker. */
const BROKER_MS = 2_000;

/** The servers. */
export interface Wires {
  readonly kafka: KafkaServer;
  readonly mqtt: MqttServer;
  readonly stomp: StompServer;
}

/** Opens the servers; they do not listen yet. */
export async function openWires(
  config: PulseConfig,
  service: Service,
  messages: Messages,
  callers: Callers,
): Promise<Wires> {
  const { lifecycle } = service;
  const kafka = await openKafka(config, service, messages, callers);
  lifecycle.onDrain("kafka", closing(kafka), "listeners");
  const mqtt = await openMqtt(config, service, messages, callers);
  // Before the HTTP listener, which waits for their WebSockets.
  lifecycle.onDrain("mqtt", closing(mqtt), "streams");
  const stomp = createStomp(config, service, messages, callers);
  lifecycle.onDrain("stomp", closing(stomp), "streams");
  messages.broker.topicRules.watch(() => {
    mqtt.endForbidden();
    stomp.endForbidden();
  });
  return { kafka, mqtt, stomp };
}

function closing(server: { close(drainMs: number): Promise<void> }): DrainHook {
  return (drain) => server.close(Math.max(0, drain.remainingMs() - BROKER_MS));
}

function openKafka(
  config: PulseConfig,
  { clock, ids: idSource, metrics, log, followed }: Service,
  { broker }: Messages,
  { users, verifier, anonymous }: Callers,
): Promise<KafkaServer> {
  const { store, state, topics, topicRules, offsets, schemas, transforms } = broker;
  return KafkaServer.open({
    store,
    state,
    topics,
    topicRules,
    offsets,
    schemas,
    transforms,
    deadLetters: broker.deadLetters,
    backlog: broker.backlog,
    idSource,
    clock,
    tenantCounts: broker.tenantCounts,
    metrics,
    log,
    credentials: createCredentials(users, verifier, topicRules),
    tokenStreams: followed.streams,
    anonymous,
    advertised: toAdvertised(config),
    isAutoCreating: config.kafka_auto_create_topics,
    messageBytesMax: config.message_bytes_max,
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
}

function toAdvertised({ kafka_advertised }: PulseConfig) {
  if (kafka_advertised?.host === undefined) return undefined;
  return { host: kafka_advertised.host, port: kafka_advertised.port };
}

function openMqtt(
  config: PulseConfig,
  { clock, metrics, log, followed }: Service,
  { broker }: Messages,
  { users, verifier, anonymous }: Callers,
): Promise<MqttServer> {
  const { store, state, topics, feeds, subscriptions, groups } = broker;
  return MqttServer.open({
    store,
    state,
    topics,
    feeds,
    subscriptions,
    groups,
    backlog: broker.backlog,
    deadLetters: broker.deadLetters,
    publisher: broker.publisher,
    clock,
    metrics,
    log,
    credentials: createCredentials(users, verifier, broker.topicRules),
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
}

function createStomp(
  config: PulseConfig,
  { clock, metrics, log, followed }: Service,
  { broker }: Messages,
  { users, verifier, anonymous }: Callers,
): StompServer {
  const { topics, subscriptions, groups, deadLetters, publisher, topicRules } = broker;
  return new StompServer({
    topics,
    subscriptions,
    groups,
    deadLetters,
    publisher,
    clock,
    metrics,
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
}
