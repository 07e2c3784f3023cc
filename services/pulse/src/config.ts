// The broker's configuration: every key with its unit, default, bound and environment name.
import { createConsoleKeys } from "@platform/console";
import { z } from "zod";
import {
  addressKey,
  addressSchema,
  createOperationKeys,
  createRestoreKeys,
  createServiceKeys,
  createTlsKeys,
  createTokenKeys,
  defineConfig,
  key,
  networkSchema,
  type ConfigOf,
} from "@platform/kernel/config";
import { isBucket, isEndpoint, isPrefix, isRegion, parseToken } from "./offload-target.ts";

/** The broker's version. */
export const PULSE_VERSION = "1.0.0";

const MEBIBYTE = 1024 * 1024;
const count = (min: number, max: number, fallback: number) =>
  z.int().min(min).max(max).default(fallback);
const file = () => z.string().min(1).optional();

/** The configuration keys of the broker. */
export const pulseDefinition = defineConfig({
  service: "pulse",
  program: "platform-pulse",
  version: PULSE_VERSION,
  summary: "Message broker: one durable log, several protocols.",
  file: { flag: "config", env: ["PLATFORM_PULSE_CONFIG"] },
  keys: {
    http_addr: addressKey(":8082", {
      description:
        "Address for HTTP, SSE and WebSocket. Without configured credentials only programs on this machine are accepted.",
      env: ["PLATFORM_PULSE_HTTP_ADDR", "PLATFORM_PULSE_ADDR"],
    }),
    kafka_addr: addressKey(":9092", {
      description: "Address for Kafka clients.",
      env: ["PLATFORM_PULSE_KAFKA_ADDR"],
    }),
    kafka_tls_addr: key(addressSchema().optional(), {
      description:
        "Address for Kafka clients with TLS; requires wire_tls_cert and wire_tls_key, or tls_cert and tls_key.",
      env: ["PLATFORM_PULSE_KAFKA_TLS_ADDR"],
      allowed: 'an address, like "127.0.0.1:9093" or ":9093"',
    }),
    kafka_advertised: key(
      addressSchema()
        .refine(({ host, port }) => host !== undefined && port > 0)
        .optional(),
      {
        description:
          "Host and port that Kafka clients are told to connect to; by default the address they connected to.",
        env: ["PLATFORM_PULSE_KAFKA_ADVERTISED"],
        allowed: 'a host and a port, like "broker.example:9092"',
      },
    ),
    kafka_connections_max: key(count(1, 100_000, 2_000), {
      description: "Maximum number of Kafka connections; further ones are closed immediately.",
      unit: "connections",
    }),
    kafka_connections_per_address_max: key(count(1, 100_000, 1_000), {
      description:
        "Maximum number of Kafka connections per IPv4 address or IPv6 /64 network; further ones are closed immediately.",
      unit: "connections",
    }),
    kafka_connections_per_user_max: key(count(1, 100_000, 2_000), {
      description:
        "Maximum number of Kafka connections per user or subject of a token; further ones fail to authenticate.",
      unit: "connections",
    }),
    kafka_idle_timeout_ms: key(count(1_000, 86_400_000, 600_000), {
      description:
        "Idle Kafka connections are closed after this time, those that have sent nothing or are not authenticated after a minute. Clients that do not read their answers are disconnected after 30 s.",
      unit: "ms",
    }),
    kafka_auto_create_topics: key(z.boolean().default(true), {
      description: "Whether topics are created when a Kafka client requests their metadata.",
    }),
    kafka_produce_bytes_rate: key(count(0, 10_000_000_000, 0), {
      description:
        "Bytes of records that a tenant may write over Kafka; faster clients are throttled. 0 means unlimited.",
      unit: "bytes/s",
    }),
    kafka_fetch_bytes_rate: key(count(0, 10_000_000_000, 0), {
      description:
        "Bytes of records that a tenant may read over Kafka; faster clients are throttled. 0 means unlimited.",
      unit: "bytes/s",
    }),
    kafka_group_retention_minutes: key(count(0, 5_256_000, 10_080), {
      description:
        "How long a Kafka group without members, and its committed offsets, is kept after its last member or commit; 0 means forever.",
      unit: "minutes",
    }),
    mqtt_addr: addressKey(":1883", {
      description:
        "Address for MQTT clients. They may also use WebSocket on http_addr: the path /mqtt, subprotocol mqtt.",
      env: ["PLATFORM_PULSE_MQTT_ADDR"],
    }),
    mqtt_tls_addr: key(addressSchema().optional(), {
      description:
        "Address for MQTT clients with TLS; requires wire_tls_cert and wire_tls_key, or tls_cert and tls_key.",
      env: ["PLATFORM_PULSE_MQTT_TLS_ADDR"],
      allowed: 'an address, like "127.0.0.1:8883" or ":8883"',
    }),
    mqtt_connections_max: key(count(1, 1_000_000, 20_000), {
      description: "Maximum number of MQTT connections; further ones are closed immediately.",
      unit: "connections",
    }),
    mqtt_connections_per_address_max: key(count(1, 1_000_000, 10_000), {
      description:
        "Maximum number of MQTT connections per IPv4 address or IPv6 /64 network; further ones are closed immediately.",
      unit: "connections",
    }),
    mqtt_connections_per_user_max: key(count(1, 1_000_000, 20_000), {
      description:
        "Maximum number of MQTT connections per user or subject of a token; further ones get the reason code 0x97.",
      unit: "connections",
    }),
    mqtt_sessions_max: key(count(1, 1_000_000, 100_000), {
      description:
        "Maximum number of MQTT sessions, with and without a connection; further clients get the reason code 0x97.",
      unit: "sessions",
    }),
    mqtt_sessions_per_tenant_max: key(count(1, 1_000_000, 50_000), {
      description: "Maximum number of MQTT sessions per tenant.",
      unit: "sessions",
    }),
    mqtt_session_expiry_max_s: key(count(0, 315_360_000, 604_800), {
      description:
        "Longest time for which an MQTT session is kept without a connection. Clients of MQTT 3.1.1 that keep their session get this time.",
      unit: "s",
    }),
    mqtt_subscriptions_per_session_max: key(count(1, 1_000_000, 10_000), {
      description: "Maximum number of subscriptions per MQTT session.",
      unit: "subscriptions",
    }),
    mqtt_retained_per_tenant_max: key(count(0, 10_000_000, 100_000), {
      description:
        "Maximum number of retained messages per tenant; further ones get the reason code 0x97.",
      unit: "messages",
    }),
    mqtt_receive_maximum: key(count(1, 10_000, 1_000), {
      description:
        "MQTT messages with QoS 1 and 2 of a client that may be unacknowledged, in each direction.",
      unit: "messages",
    }),
    mqtt_keep_alive_max_s: key(count(10, 65_535, 3_600), {
      description:
        "Longest keep-alive of MQTT 5 clients; those that ask for more, or for none, are told this.",
      unit: "s",
    }),
    mqtt_publish_bytes_rate: key(count(0, 10_000_000_000, 0), {
      description:
        "Bytes of messages that a tenant may publish over MQTT. Faster clients are read more slowly; beyond 10 s of delay messages get the reason code 0x97. 0 means unlimited.",
      unit: "bytes/s",
    }),
    stomp_addr: addressKey(":61613", {
      description:
        "Address for STOMP clients, with TLS if tls_cert and tls_key are set. They may also use WebSocket on http_addr: the path /stomp, subprotocol v12.stomp, v11.stomp or v10.stomp.",
      env: ["PLATFORM_PULSE_STOMP_ADDR"],
    }),
    stomp_tls_addr: key(addressSchema().optional(), {
      description:
        "Address for STOMP clients with TLS beside stomp_addr; requires wire_tls_cert and wire_tls_key, or tls_cert and tls_key.",
      env: ["PLATFORM_PULSE_STOMP_TLS_ADDR"],
      allowed: 'an address, like "127.0.0.1:61614" or ":61614"',
    }),
    stomp_user: key(z.string().min(1).max(255).optional(), {
      description:
        "Login of the operator for STOMP clients, with stomp_password, in addition to users_file and tokens.",
      env: ["PLATFORM_PULSE_STOMP_USER"],
    }),
    stomp_password: key(z.string().min(1).max(1024).optional(), {
      description: "Passcode of stomp_user.",
      env: ["PLATFORM_PULSE_STOMP_PASSWORD"],
    }),
    stomp_connections_max: key(count(1, 100_000, 5_000), {
      description: "Maximum number of STOMP connections; further ones are closed immediately.",
      unit: "connections",
    }),
    stomp_connections_per_address_max: key(count(1, 100_000, 2_500), {
      description:
        "Maximum number of STOMP connections per IPv4 address or IPv6 /64 network; further ones are closed immediately.",
      unit: "connections",
    }),
    stomp_connections_per_user_max: key(count(1, 100_000, 5_000), {
      description:
        "Maximum number of STOMP connections per user or subject of a token; further ones get an ERROR frame.",
      unit: "connections",
    }),
    stomp_idle_timeout_ms: key(count(1_000, 86_400_000, 600_000), {
      description:
        "STOMP connections without heart-beats and subscriptions are closed after this time without a frame.",
      unit: "ms",
    }),
    stomp_send_bytes_rate: key(count(0, 10_000_000_000, 0), {
      description:
        "Bytes of messages that a tenant may send over STOMP. Receipts of faster clients are delayed, by at most 10 s at a time. 0 means unlimited.",
      unit: "bytes/s",
    }),
    disk_reserve: key(z.int().min(0).optional(), {
      description:
        "Free disk space to keep. With less, publishing is refused (507) and readiness reports disk_full, while reading, acknowledging, deleting topics and retention continue. Default: the smaller of 1 GiB and a quarter of the disk.",
      unit: "bytes",
    }),
    users_file: key(file(), {
      description:
        'JSON file with the users of the wire protocols: [{"name", "password", "tenant"}]. Tokens are accepted as passwords as well.',
    }),
    anonymous: key(z.enum(["loopback", "never"]).default("loopback"), {
      description:
        "Whether Kafka, MQTT and STOMP clients on this machine may connect without credentials, as the operator. They never may if credentials of any kind are configured: token, jwt_secret, jwks_url, users_file or stomp_user.",
    }),
    data_dir: key(z.string().min(1).default("./data"), {
      description: "Data folder of the broker.",
    }),
    wal_path: key(z.string().min(1).default("queue.wal"), {
      description: "Folder of the log, relative to data_dir.",
    }),
    quarantine_bytes_max: key(count(MEBIBYTE, 1024 * 1024 * MEBIBYTE, 16 * 1024 * MEBIBYTE), {
      description:
        "Maximum size of the log's folder `quarantine`. Damaged data and unknown files are moved there and never deleted by the broker; at the limit the broker does not start until an operator has made room.",
      unit: "bytes",
    }),
    fsync: key(
      z
        .string()
        .regex(/^(?:group|os|interval:[1-9]\d{0,5})$/)
        .default("group"),
      {
        description:
          "When a message counts as stored: group waits for the disk, with one sync for all waiting messages; interval:<ms> and os do not wait, so a power cut may lose the last messages.",
        allowed: '"group", "os" or "interval:<ms>"',
      },
    ),
    token: key(z.string().min(1).optional(), {
      description: "Bearer token of the operator, whose topics have no tenant.",
      env: ["PLATFORM_PULSE_TOKEN"],
    }),
    ...createTokenKeys("pulse", "their claim `tenant` separates topics"),
    ...createTlsKeys("pulse", "With it http_addr and stomp_addr accept TLS only.", {
      cert: ["TLS_CERT_FILE"],
      key: ["TLS_KEY_FILE"],
    }),
    wire_tls_cert: key(file(), {
      description:
        "File with the certificate chain (PEM) of kafka_tls_addr, mqtt_tls_addr and stomp_tls_addr, if it is another than tls_cert: http_addr and stomp_addr do not use it. A changed file is loaded within two seconds.",
    }),
    wire_tls_key: key(file(), {
      description: "File with the unencrypted private key of wire_tls_cert (PEM).",
      secret: false,
      flag: "wire-tls-key",
    }),
    wire_tls_awaited: key(z.boolean().default(false), {
      description:
        "The files of wire_tls_cert and wire_tls_key may not exist yet, because another program obtains the certificate: until they do, handshakes fail. They may be one file, with chain and key.",
    }),
    cors_origins: key(z.array(z.string().min(1)).max(64).default([]), {
      description: "Origins whose pages may subscribe and publish from a browser.",
    }),
    publish_rate: key(z.number().min(0).max(10_000_000).default(100), {
      description: "Rate limit of HTTP publishing per tenant; 0 means unlimited.",
      unit: "messages/s",
    }),
    publish_capacity: key(count(1, 10_000_000, 100), {
      description: "Burst size of publish_rate.",
      unit: "messages",
    }),
    backpressure_limit: key(count(0, 10_000_000, 1000), {
      description:
        "Maximum number of messages waiting in a topic; above it publishing is refused. 0 means unlimited.",
      unit: "messages",
    }),
    message_bytes_max: key(count(1_024, 4 * MEBIBYTE, MEBIBYTE), {
      description: "Largest message: payload, key and headers.",
      unit: "bytes",
    }),
    topics_per_tenant_max: key(count(1, 200_000, 100_000), {
      description: "Maximum number of topics per tenant.",
      unit: "topics",
    }),
    partitions_max: key(count(1, 1_000, 100), {
      description: "Maximum number of partitions per topic.",
      unit: "partitions",
    }),
    partitions_default: key(count(1, 1_000, 1), {
      description: "Default number of partitions of a new topic; Kafka's `num.partitions`.",
      unit: "partitions",
    }),
    message_ids_max: key(count(1_000, 10_000_000, 500_000), {
      description:
        "Maximum number of message ids remembered for deduplication (five minutes); above it publishing with a message id is refused.",
      unit: "ids",
    }),
    producers_max: key(count(100, 1_000_000, 100_000), {
      description:
        "Maximum number of producers whose last sequence number is remembered; the least recently active one is dropped.",
      unit: "producers",
    }),
    subscribers_max: key(count(1, 100_000, 20_000), {
      description: "Maximum number of SSE and WebSocket subscribers.",
      unit: "subscribers",
    }),
    subscribers_per_user_max: key(count(1, 100_000, 10_000), {
      description:
        "Maximum number of SSE and WebSocket subscribers per subject of a token; further ones get 429. Callers with the operator's token are one user.",
      unit: "subscribers",
    }),
    followed_topics_per_user_max: key(count(1, 100_000_000, 10_000), {
      description:
        "Maximum number of topics that the subscriptions of a user or subject of a token follow together, over all protocols but Kafka, counted for each subscription and topic, about 1 KiB each. Further subscriptions are refused: HTTP 429, MQTT 0x97, STOMP ERROR. Callers with the operator's token are one user.",
      unit: "topics",
    }),
    followed_topics_per_tenant_max: key(count(1, 100_000_000, 100_000), {
      description: "Maximum number of topics that the subscriptions of a tenant follow together.",
      unit: "topics",
    }),
    followed_topics_max: key(count(1, 100_000_000, 500_000), {
      description:
        "Maximum number of topics that all subscriptions follow together; further ones are refused: HTTP 503, MQTT 0x97, STOMP ERROR.",
      unit: "topics",
      env: ["PLATFORM_PULSE_FOLLOWED_TOPICS_MAX", "PLATFORM_PULSE_MQTT_READERS_MAX"],
    }),
    connections_max: key(count(1, 200_000, 25_000), {
      description: "Maximum number of HTTP connections; further ones are closed immediately.",
      unit: "connections",
    }),
    connections_per_address_max: key(z.int().min(1).max(200_000).optional(), {
      description:
        "Maximum number of HTTP connections per IPv4 address or IPv6 /64 network; further ones are closed immediately. Default: half of connections_max.",
      unit: "connections",
    }),
    unsent_bytes_max: key(count(16 * 1024 * 1024, 1_000_000_000_000, 256 * 1024 * 1024), {
      description:
        "Maximum total of unsent HTTP responses, server-sent events and WebSocket messages. Above it sending pauses (requests except probes get 503), and the clients that have read nothing for longest are disconnected.",
      unit: "bytes",
    }),
    ack_wait_ms: key(count(100, 43_200_000, 30_000), {
      description:
        "Acknowledgement timeout of group members with ack=manual, after which a message is delivered again; a subscription may set its own `ack_wait_ms`.",
      unit: "ms",
    }),
    max_deliveries: key(count(0, 1_000, 10), {
      description:
        "Unacknowledged deliveries of a message to group members with ack=manual after which it becomes a dead letter; 0 means unlimited.",
      unit: "deliveries",
    }),
    nack_backoff_ms: key(count(0, 3_600_000, 1_000), {
      description:
        "Delay before redelivery after a negative acknowledgement; doubles with each failed delivery.",
      unit: "ms",
    }),
    nack_backoff_max_ms: key(count(0, 43_200_000, 60_000), {
      description: "Longest delay after a negative acknowledgement.",
      unit: "ms",
    }),
    stall_timeout_ms: key(count(1_000, 600_000, 30_000), {
      description: "Subscribers that read nothing for this time are disconnected.",
      unit: "ms",
    }),
    transform_ms_max: key(count(1, 10_000, 100), {
      description: "Time limit of a transform per message.",
      unit: "ms",
    }),
    transform_memory_bytes_max: key(count(MEBIBYTE, 1024 * MEBIBYTE, 64 * MEBIBYTE), {
      description: "Memory limit of a transform.",
      unit: "bytes",
    }),
    s3_endpoint: key(z.string().refine(isEndpoint).optional(), {
      description:
        "Object storage for closed segments of topics with offload: any S3-compatible store, addressed by path. With s3_bucket and s3_token; without these keys, the API sets it (POST /api/v1/admin/offloader).",
      allowed: "an http or https URL without a path",
    }),
    s3_bucket: key(z.string().refine(isBucket).optional(), {
      description: "Bucket for offloaded segments.",
      allowed: "the name of a bucket",
    }),
    s3_token: key(
      z
        .string()
        .refine((text) => parseToken(text) !== undefined)
        .optional(),
      {
        description: "Credentials for the bucket: ACCESS_KEY:SECRET_KEY[:SESSION_TOKEN].",
        allowed:
          "ACCESS_KEY:SECRET_KEY or ACCESS_KEY:SECRET_KEY:SESSION_TOKEN, of printable characters",
        secret: true,
      },
    ),
    s3_region: key(z.string().refine(isRegion).default("us-east-1"), {
      description: "Region in the signatures of requests to object storage.",
      allowed: "the name of a region",
    }),
    s3_prefix: key(z.string().refine(isPrefix).default(""), {
      description: "Prefix of the names of offloaded segments.",
      allowed: "empty, or a prefix that ends in /",
    }),
    offload_default: key(z.boolean().default(false), {
      description: "Whether new topics have the setting offload; compacted ones never have.",
    }),
    offload_roll_ms: key(count(1_000, 2_592_000_000, 3_600_000), {
      description: "Age at which the open segment of a topic with offload is closed, and uploaded.",
      unit: "ms",
    }),
    offload_bytes_rate: key(count(0, 100_000_000_000, 0), {
      description: "Bytes of segments uploaded per second; 0 means unlimited.",
      unit: "bytes/s",
    }),
    offload_cache_bytes: key(count(16 * MEBIBYTE, 1_000_000_000_000_000, 4 * 1024 * MEBIBYTE), {
      description:
        "Maximum size of data_dir/offload-cache, the chunks of offloaded segments that were read. The folder may be emptied at any time.",
      unit: "bytes",
    }),
    egress_networks: key(z.array(networkSchema()).max(64).default([]), {
      description:
        "Private networks that object storage set over the API may be in, in CIDR form. Addresses of the configuration may be anywhere.",
    }),
    ...createConsoleKeys(),
    ...createOperationKeys("pulse"),
    ...createServiceKeys("pulse"),
  },
  commands: {
    check: {
      summary:
        "Read the whole log and report damage; look for all segments in object storage. Changes nothing. The broker must be stopped.",
      options: {
        local: key(z.boolean().default(false), {
          description: "Only read the disk: object storage is not asked.",
          env: [],
        }),
        read_offloaded: key(z.boolean().default(false), {
          description: "Also read and verify all segments in object storage.",
          env: [],
        }),
      },
    },
    repair: {
      summary:
        "Repair a damaged log: damaged parts are moved to the folder quarantine, intact data stays. The broker must be stopped.",
      options: {
        dry_run: key(z.boolean().default(false), {
          description: "Only list the data that would be quarantined.",
          env: [],
        }),
        local: key(z.boolean().default(false), {
          description: "Only repair the disk: object storage is not asked.",
          env: [],
        }),
      },
    },
    backup: {
      summary:
        "Copy the log into a new folder, with checksums: messages, offsets, dead letters, schemas and transforms. The broker must be stopped; a running one sends its backup at /api/v1/admin/backup. Not included: configuration, users_file, TLS files.",
      arguments: ["folder"],
      options: {
        include_offloaded: key(z.boolean().default(false), {
          description: "Also copy the segments that are only in object storage.",
          env: [],
        }),
      },
    },
    restore: {
      summary:
        "Verify a backup and restore it to the configured log folder, which must not exist. The broker must be stopped.",
      arguments: ["folder"],
      options: createRestoreKeys(),
    },
  },
});

/** The active configuration. */
export type PulseConfig = ConfigOf<typeof pulseDefinition.keys>;
