// The broker's configuration: every key with its unit, default, bound and environment name.
import { z } from "zod";
import {
  addressKey,
  addressSchema,
  createServiceKeys,
  createTokenKeys,
  defineConfig,
  key,
  type ConfigOf,
} from "@platform/kernel/config";

/** The broker's version. */
export const PULSE_VERSION = "1.0.0";

const MEBIBYTE = 1024 * 1024;
const count = (min: number, max: number, fallback: number) =>
  z.int().min(min).max(max).default(fallback);
const file = () => z.string().min(1).optional();
// Refused by name: a setting that is silently ignored would be believed in.
const later = (what: string) =>
  key(
    z
      .string()
      .optional()
      .refine((text) => text === undefined || text === "", "not available yet"),
    { description: `${what}: not available yet.`, secret: false },
  );

/** Every key of the broker. */
export const pulseDefinition = defineConfig({
  service: "pulse",
  program: "platform-pulse",
  version: PULSE_VERSION,
  summary: "The message broker of the platform: one durable log behind several protocols.",
  file: { flag: "config", env: ["PLATFORM_PULSE_CONFIG"] },
  keys: {
    http_addr: addressKey(":8082", {
      description:
        "Where the HTTP, SSE and WebSocket face listens. Without any credential only programs on this machine are answered.",
      env: ["PLATFORM_PULSE_HTTP_ADDR", "PLATFORM_PULSE_ADDR"],
    }),
    kafka_addr: addressKey(":9092", {
      description: "Where Kafka clients connect.",
      env: ["PLATFORM_PULSE_KAFKA_ADDR"],
    }),
    kafka_tls_addr: key(addressSchema().optional(), {
      description: "Where Kafka clients connect by TLS; needs tls_cert_file and tls_key_file.",
      env: ["PLATFORM_PULSE_KAFKA_TLS_ADDR"],
      allowed: 'an address, like "127.0.0.1:9093" or ":9093"',
    }),
    kafka_advertised: key(
      addressSchema()
        .refine(({ host, port }) => host !== undefined && port > 0)
        .optional(),
      {
        description:
          "Host and port that Kafka clients are told to connect to; without it the address that they have reached.",
        env: ["PLATFORM_PULSE_KAFKA_ADVERTISED"],
        allowed: 'a host and a port, like "broker.example:9092"',
      },
    ),
    kafka_connections_max: key(count(1, 100_000, 2_000), {
      description: "Kafka connections at a time; one more is closed at once.",
      unit: "connections",
    }),
    kafka_connections_per_address_max: key(count(1, 100_000, 1_000), {
      description:
        "Those of one IPv4 address or one IPv6 network of 64 bits; one more is closed at once.",
      unit: "connections",
    }),
    kafka_idle_timeout_ms: key(count(1_000, 86_400_000, 600_000), {
      description:
        "A Kafka connection on which nothing happens for so long is closed. Clients that do not read their answers are disconnected after 30 s.",
      unit: "ms",
    }),
    kafka_auto_create_topics: key(z.boolean().default(true), {
      description: "Whether a Kafka client that asks for a topic makes it.",
    }),
    kafka_produce_bytes_rate: key(count(0, 10_000_000_000, 0), {
      description:
        "Bytes of records that a tenant may write over Kafka; whoever is faster is told to pause, and paused. 0 means without limit.",
      unit: "bytes/s",
    }),
    kafka_fetch_bytes_rate: key(count(0, 10_000_000_000, 0), {
      description:
        "Bytes of records that a tenant may read over Kafka; as kafka_produce_bytes_rate.",
      unit: "bytes/s",
    }),
    kafka_group_retention_minutes: key(count(0, 5_256_000, 10_080), {
      description:
        "How long a Kafka group without members is kept after its last member or commit, and with it what it has committed; 0 means for ever.",
      unit: "minutes",
    }),
    disk_reserve: key(z.int().min(0).optional(), {
      description:
        "Bytes of the disk that stay free: below, publishing is refused (507) and readiness reports disk_full, while reading, acknowledging, deleting topics and retention continue. By default the smaller of 1 GiB and a quarter of the disk.",
      unit: "bytes",
    }),
    users_file: key(file(), {
      description:
        'JSON list of the users of the wire protocols: [{"name", "password", "tenant"}]. Tokens are taken as passwords as well.',
    }),
    anonymous: key(z.enum(["loopback", "never"]).default("loopback"), {
      description:
        "Whether wire protocol clients on this machine may come without credentials, as the operator.",
    }),
    data_dir: key(z.string().min(1).default("./data"), {
      description: "Folder for everything that the broker keeps.",
    }),
    wal_path: key(z.string().min(1).default("queue.wal"), {
      description: "The log's folder, inside of data_dir unless it is absolute.",
    }),
    quarantine_bytes_max: key(count(MEBIBYTE, 1024 * 1024 * MEBIBYTE, 16 * 1024 * MEBIBYTE), {
      description:
        "Bytes that the folder `quarantine` of the log may hold. Damaged parts and files that belong to nothing are moved there and never deleted by the broker; at the bound the start is refused until an operator has made room.",
      unit: "bytes",
    }),
    fsync: key(
      z
        .string()
        .regex(/^(?:group|os|interval:[1-9]\d{0,5})$/)
        .default("group"),
      {
        description:
          "When a message counts as stored: group waits for the disk, one sync for everyone; interval:<ms> and os do not wait, and a power cut may lose the last messages.",
        allowed: '"group", "os" or "interval:<ms>"',
      },
    ),
    token: key(z.string().min(1).optional(), {
      description: "Token of the operator, whose topics have no tenant.",
      env: ["PLATFORM_PULSE_TOKEN"],
    }),
    ...createTokenKeys("pulse", "their claim `tenant` keeps topics apart"),
    tls_cert_file: key(file(), {
      description: "Certificate chain (PEM); with tls_key_file the HTTP face speaks TLS only.",
      env: ["PLATFORM_PULSE_TLS_CERT_FILE", "TLS_CERT_FILE"],
    }),
    tls_key_file: key(file(), {
      description: "Key (PEM) of tls_cert_file.",
      env: ["PLATFORM_PULSE_TLS_KEY_FILE", "TLS_KEY_FILE"],
      secret: false,
      flag: "tls-key-file",
    }),
    cors_origins: key(z.array(z.string().min(1)).max(64).default([]), {
      description: "Origins whose pages may subscribe and publish from a browser.",
    }),
    publish_rate: key(z.number().min(0).max(10_000_000).default(100), {
      description: "Messages that a tenant may publish over HTTP; 0 means without limit.",
      unit: "messages/s",
    }),
    publish_capacity: key(count(1, 10_000_000, 100), {
      description: "Messages that a tenant may publish at once before publish_rate counts.",
      unit: "messages",
    }),
    backpressure_limit: key(count(0, 10_000_000, 1000), {
      description:
        "Messages that may wait in a topic before publishing to it is refused; 0 for no limit.",
      unit: "messages",
    }),
    message_bytes_max: key(count(1_024, 4 * MEBIBYTE, MEBIBYTE), {
      description: "Largest message: payload, key and headers.",
      unit: "bytes",
    }),
    topics_per_tenant_max: key(count(1, 200_000, 100_000), {
      description: "Topics that a tenant may have.",
      unit: "topics",
    }),
    partitions_max: key(count(1, 1_000, 100), {
      description: "Partitions that a topic may have.",
      unit: "partitions",
    }),
    partitions_default: key(count(1, 1_000, 1), {
      description:
        "Partitions of a topic that is made in passing, or without saying how many; Kafka's `num.partitions`.",
      unit: "partitions",
    }),
    message_ids_max: key(count(1_000, 10_000_000, 500_000), {
      description:
        "Message ids remembered for five minutes at most; past it publishing with one is refused.",
      unit: "ids",
    }),
    producers_max: key(count(100, 1_000_000, 100_000), {
      description: "Producers whose last sequence number is remembered; the quietest goes first.",
      unit: "producers",
    }),
    subscribers_max: key(count(1, 100_000, 20_000), {
      description: "SSE and WebSocket subscribers at a time.",
      unit: "subscribers",
    }),
    connections_max: key(count(1, 200_000, 25_000), {
      description: "HTTP connections at a time; one more is closed at once.",
      unit: "connections",
    }),
    connections_per_address_max: key(z.int().min(1).max(200_000).optional(), {
      description:
        "Those of one IPv4 address or one IPv6 network of 64 bits; one more is closed at once. By default half of connections_max.",
      unit: "connections",
    }),
    unsent_bytes_max: key(count(16 * 1024 * 1024, 1_000_000_000_000, 256 * 1024 * 1024), {
      description:
        "Bytes of HTTP answers, server-sent events and WebSocket messages that may wait for clients, in all. Beyond it nothing further is sent (requests are answered with 503), and clients that have read nothing for longest are disconnected.",
      unit: "bytes",
    }),
    ack_wait_ms: key(count(100, 43_200_000, 30_000), {
      description:
        "Time that a group's member with ack=manual has to acknowledge a message before it is delivered again; a subscription may set its own as `ack_wait_ms`.",
      unit: "ms",
    }),
    max_deliveries: key(count(0, 1_000, 10), {
      description:
        "Deliveries of a message to a group's members with ack=manual, all unacknowledged, after which it becomes a dead letter; 0 means without limit.",
      unit: "deliveries",
    }),
    nack_backoff_ms: key(count(0, 3_600_000, 1_000), {
      description:
        "Wait before a message is delivered again after a negative acknowledgement; doubles with each failed delivery.",
      unit: "ms",
    }),
    nack_backoff_max_ms: key(count(0, 43_200_000, 60_000), {
      description: "Longest wait after a negative acknowledgement.",
      unit: "ms",
    }),
    stall_timeout_ms: key(count(1_000, 600_000, 30_000), {
      description: "A subscriber that takes nothing for so long is dropped.",
      unit: "ms",
    }),
    transform_ms_max: key(count(1, 10_000, 100), {
      description: "Time that a transform may take for one message.",
      unit: "ms",
    }),
    transform_memory_bytes_max: key(count(MEBIBYTE, 1024 * MEBIBYTE, 64 * MEBIBYTE), {
      description: "Memory that a transform may have.",
      unit: "bytes",
    }),
    s3_endpoint: later("Endpoint of the object store for cold segments"),
    s3_bucket: later("Bucket for cold segments"),
    s3_token: later("Token for the bucket of cold segments"),
    ...createServiceKeys("pulse"),
  },
  commands: {
    check: {
      summary:
        "Read everything in the log's folder and list what is damaged. Changes nothing. The broker must be stopped.",
    },
    repair: {
      summary:
        "Make a damaged log whole: damaged parts go to the folder quarantine, everything intact stays. The broker must be stopped.",
      options: {
        dry_run: key(z.boolean().default(false), {
          description: "Only list what would be quarantined.",
          env: [],
        }),
      },
    },
    backup: {
      summary:
        "Copy the log into a new folder, with checksums: messages, offsets, dead letters, schemas and transforms. The broker must be stopped. Not included: configuration, users_file, TLS files.",
      arguments: ["folder"],
    },
    restore: {
      summary:
        "Verify a backup and restore it to where the configuration expects the log; nothing may be there. The broker must be stopped.",
      arguments: ["folder"],
    },
  },
});

/** The configuration in force. */
export type PulseConfig = ConfigOf<typeof pulseDefinition.keys>;
