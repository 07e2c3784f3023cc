// The schema of the configuration.
import { createConsoleKeys } from "@platform/console";
import {
  addressKey,
  type ConfigOf,
  createOperationKeys,
  createRestoreKeys,
  createServiceKeys,
  createTlsKeys,
  createTokenKeys,
  defineConfig,
  isLoopbackAddress,
  key,
  networkSchema,
  readPackageVersion,
} from "@platform/kernel/config";
import { z } from "zod";
import { SHARDS_MAX } from "./blob/erasure/reed-solomon.ts";
import { EndpointEmbedder } from "./embed/endpoint.ts";
import type { StoreOptions } from "./open-store.ts";

/** The version of the service: in health answers, `--version` and metrics. */
export const VERSION = readPackageVersion(import.meta.url);
/** The built-in access key. With it, the service listens on loopback only. */
export const DEFAULT_ACCESS_KEY = "platform-vault";
/** The built-in secret. */
export const DEFAULT_SECRET_KEY = "platform-vault-secret";

const LIST_MAX = 1_000;
const MIB = 1024 * 1024;
const MONTH_MS = 30 * 86_400_000;
const domainName = z.string().regex(/^[a-z0-9-]{1,63}(?:\.[a-z0-9-]{1,63}){0,10}$/, {
  error: "expected a lower-case name",
});

/** The path of a secret, or of a folder of secrets. */
const secretPath = z
  .string()
  .max(512)
  .refine((text) => text.split("/").every((name) => /^(?!\.+$)[A-Za-z0-9._-]+$/.test(name)), {
    error: "expected names with slashes between them",
  });

// An empty text is no value.
function unset(schema: z.ZodType<string, string>) {
  return z
    .string()
    .transform((text) => (text === "" ? undefined : text))
    .pipe(schema.optional())
    .optional();
}

const KEYS = {
  addr: addressKey(":9000", {
    description: "Address of the object API.",
    env: ["PLATFORM_VAULT_ADDR", "PORT"],
    flag: "port",
  }),
  admin_addr: addressKey(":9001", {
    description: "Address of the admin API, the metrics and the console.",
    env: ["PLATFORM_VAULT_ADMIN_ADDR", "ADMIN_PORT"],
    flag: "admin-port",
  }),
  public_url: key(z.url({ protocol: /^https?$/ }).optional(), {
    description:
      "Address of the object API in links that the console creates. Default: the host of the console with the port of the object API.",
  }),
  ...createTlsKeys("vault", "With it both listeners accept TLS only."),
  data_dir: key(z.string().min(1).default("./data"), {
    description: "Data folder.",
  }),
  disk_reserve: key(z.int().min(0).optional(), {
    description:
      "Bytes of the disk that stay free: where less is left, nothing is stored (507), and reading and deleting go on. By default the larger of 1 GiB and 1 %.",
    unit: "bytes",
  }),
  index_check_limit: key(
    z
      .int()
      .min(0)
      .default(64 * MIB),
    {
      description:
        "Size up to which the whole index is checked at startup, and a damaged one refused. In a larger index, damaged rows are detected when they are read or copied.",
      unit: "bytes",
    },
  ),
  index_copy_interval_ms: key(z.int().min(0).max(MONTH_MS).default(3_600_000), {
    description:
      "Interval of checking the index and copying it on the same disk, as a source for fsck; 0 disables it. Stores on several drives make no copies.",
    unit: "ms",
  }),
  index_log_limit: key(
    z
      .int()
      .min(8 * MIB)
      .default(1024 * MIB),
    {
      description:
        "Limit of the index's log (its WAL). A copy of the index keeps the log from restarting: beyond the limit, the copy ends and begins again.",
      unit: "bytes",
    },
  ),
  quarantine_limit: key(
    z
      .int()
      .min(0)
      .default(10 * 1024 * MIB),
    {
      description:
        "Bytes of files without an object that are kept in the folder quarantine of each drive; files beyond it stay where they are. Nothing in it is deleted by the server.",
      unit: "bytes",
    },
  ),
  drives: key(z.array(z.string().min(1)).max(SHARDS_MAX).default([]), {
    description:
      "Folders for objects, each on its own drive, in a fixed order. Everything else is kept in data_dir.",
  }),
  drive_parity: key(
    z
      .int()
      .min(1)
      .max(SHARDS_MAX - 1)
      .default(1),
    {
      description: "Number of drives that may be lost; fixed when the store is created.",
      unit: "drives",
    },
  ),
  access_key_id: key(
    z
      .string()
      .regex(/^[A-Za-z0-9_.-]{3,128}$/)
      .default(DEFAULT_ACCESS_KEY),
    {
      description:
        "Access key of the root user. With the built-in key and secret, the listeners accept connections from this machine only.",
      env: ["STORE_ACCESS_KEY_ID"],
      flag: false,
    },
  ),
  secret_access_key: key(z.string().min(8).max(128).default(DEFAULT_SECRET_KEY), {
    description: "Secret of the root access key.",
    env: ["STORE_SECRET_ACCESS_KEY"],
    secret: true,
  }),
  master_key: key(z.base64().length(44).optional(), {
    description:
      "Master key that encrypts secrets and objects: 32 bytes in base64. By default it is stored in a file in the data folder.",
    secret: true,
  }),
  master_key_source: key(z.enum(["file", "secret_service"]).default("file"), {
    description:
      "Where the master key is, unless master_key is set: in the file access/master.key of the data folder, or in the secret service (secret_url).",
    secret: false,
  }),
  enable_web_admin: key(z.boolean().default(true), {
    description: "Enables the console and its sessions on the admin listener.",
  }),
  default_buckets: key(z.array(z.string()).max(LIST_MAX).default([]), {
    description: "Buckets that are made at the start where they are missing.",
  }),
  region: key(
    z
      .string()
      .regex(/^[a-z0-9-]{1,64}$/)
      .default("us-east-1"),
    {
      description: "Default region of buckets. Requests may be signed for any region.",
    },
  ),
  domain: key(domainName.optional(), {
    description: "Domain for virtual-host style: a request to BUCKET.DOMAIN addresses that bucket.",
  }),
  website_domain: key(domainName.optional(), {
    description:
      "Domain for websites: a request to BUCKET.DOMAIN is answered as the website of that bucket.",
  }),
  max_connections: key(z.int().min(16).max(1_000_000).default(16_384), {
    description:
      "Limit of connections to the object API. Further connections are closed immediately.",
    unit: "connections",
  }),
  max_connections_per_address: key(z.int().min(1).max(1_000_000).optional(), {
    description:
      "Limit of connections from one IPv4 address or one /64 IPv6 network. Further connections are closed immediately. Trusted proxies are exempt. Default: half of max_connections.",
    unit: "connections",
  }),
  max_unsent_size: key(
    z
      .int()
      .min(16 * MIB)
      .max(1_024 * 1_024 * MIB)
      .default(256 * MIB),
    {
      description:
        "Memory for bytes of answers that clients have not read yet. As it fills up, read-ahead shrinks; when it is exhausted, clients that read nothing are disconnected.",
      unit: "bytes",
    },
  ),
  trusted_proxies: key(z.array(networkSchema()).max(LIST_MAX).default([]), {
    description:
      "Addresses and ranges whose X-Forwarded-For, -Host and -Proto headers, or Forwarded without X-Forwarded-For, are trusted.",
  }),
  event_networks: key(z.array(networkSchema()).max(LIST_MAX).default([]), {
    description:
      "Private addresses and ranges that events may be sent to. Public addresses are always allowed.",
  }),
  remote_networks: key(z.array(networkSchema()).max(LIST_MAX).default([]), {
    description:
      "Private addresses and ranges that remotes (other stores that objects are moved to) may have. Public addresses are always allowed; those of this machine are if both listeners are on loopback.",
  }),
  event_broker_url: key(
    z
      .string()
      .regex(/^stomps?:\/\/[^/?#@]+$/)
      .optional(),
    {
      description:
        "Broker to which subscriptions with the URL stomp://platform send events, at destinations that begin with /topic/store. or /queue/store.; its address may be private.",
      allowed: 'a URL like "stomp://127.0.0.1:61613"',
    },
  ),
  event_broker_user: key(z.string().min(1).max(255).optional(), {
    description: "Login at event_broker_url.",
  }),
  event_broker_password: key(z.string().min(1).max(1024).optional(), {
    description: "Passcode of event_broker_user.",
  }),
  event_broker_ca_file: key(z.string().min(1).optional(), {
    description:
      "Certificates (PEM) of the authorities that may have issued the certificate of a stomps: broker, or that certificate itself. Default: those of the system.",
  }),
  tenant_rate: key(z.int().min(0).max(10_000_000).default(1_000), {
    description: "Sustained request rate of each access key, per second; 0 disables rate limits.",
    unit: "requests/s",
  }),
  tenant_burst: key(z.int().min(1).max(10_000_000).default(2_000), {
    description: "Burst size.",
    unit: "requests",
  }),
  body_pace_bytes: key(z.int().min(0).max(1_000_000_000).default(7_680), {
    description:
      "Request body bytes that a client must send in each body_pace_window_ms while the server waits for them. Slower requests are refused (RequestTimeout). 0 disables the limit.",
    unit: "bytes",
  }),
  body_pace_window_ms: key(z.int().min(1_000).max(3_600_000).default(30_000), {
    description: "Time window to which body_pace_bytes applies.",
    unit: "ms",
  }),
  answer_pace_bytes: key(z.int().min(0).max(1_000_000_000).default(15_360), {
    description:
      "Response bytes that a client must read in each answer_pace_window_ms while bytes are buffered for it. Slower clients are disconnected. 0 disables the limit.",
    unit: "bytes",
  }),
  answer_pace_window_ms: key(z.int().min(1_000).max(3_600_000).default(60_000), {
    description: "Time window to which answer_pace_bytes applies.",
    unit: "ms",
  }),
  select_threads: key(z.int().min(1).max(64).default(2), {
    description:
      "Threads that answer questions about the content of objects (select). Further questions wait, at most 32.",
    unit: "threads",
  }),
  select_timeout_ms: key(z.int().min(100).max(86_400_000).default(300_000), {
    description:
      "Limit of the working time of a question about the content of an object. Waits for the disk and for the client do not count.",
    unit: "ms",
  }),
  sql_timeout_ms: key(z.int().min(100).max(600_000).default(30_000), {
    description: "Limit of the time of a question about the metadata of a bucket (SQL).",
    unit: "ms",
  }),
  vector_memory: key(
    z
      .int()
      .min(16 * MIB)
      .max(3_072 * MIB)
      .default(512 * MIB),
    {
      description:
        "Memory for vectors of the buckets that were searched last, one byte for each number, four for exact searches. Vectors that do not fit are read from the index, which is slower.",
      unit: "bytes",
    },
  ),
  embedding_url: key(z.url({ protocol: /^https?$/ }).optional(), {
    description:
      "Endpoint of embeddings with OpenAI's API, such as https://api.openai.com/v1: computes the vectors of indexes with embed. Default: the built-in lexical embedding, which compares words.",
  }),
  embedding_model: key(z.string().min(1).max(256).default("text-embedding-3-small"), {
    description: "Model of embedding_url.",
  }),
  embedding_key: key(z.string().min(1).max(4_096).optional(), {
    description: "Key for embedding_url.",
    secret: true,
  }),
  ask_url: key(z.url({ protocol: /^https?$/ }).optional(), {
    description:
      "Chat endpoint with OpenAI's API, such as https://api.openai.com/v1: reads plain questions (GET ?ask=). It is sent the question and the names of the fields, no key and no metadata. Default: the built-in grammar, which also answers when the endpoint fails.",
  }),
  ask_model: key(z.string().min(1).max(256).default("gpt-4o-mini"), {
    description: "Model of ask_url.",
  }),
  ask_key: key(z.string().min(1).max(4_096).optional(), {
    description: "Key for ask_url.",
    secret: true,
  }),
  guest_threads: key(z.int().min(0).max(64).default(2), {
    description:
      "Chains of modules that run at the same time, on objects; each module of a chain has a thread. A module never occupies all places. 0: none run; triggers wait for a start with another number, all other calls of modules fail with 503.",
    unit: "threads",
  }),
  guest_memory: key(
    z
      .int()
      .min(MIB)
      .max(4_096 * MIB)
      .default(256 * MIB),
    {
      description: "Limit of the memory of one running module.",
      unit: "bytes",
    },
  ),
  job_rate: key(z.int().min(0).max(1_000_000).default(500), {
    description: "Objects per second of a batch job that names no rate; 0 is no limit.",
    unit: "objects/s",
  }),
  backup_dir: key(z.string().min(1).max(4_096).optional(), {
    description:
      "Folder of backup repositories, into which jobs back up and from which they restore. Without it, they are refused.",
  }),
  backup_passphrase_file: key(z.string().min(1).max(4_096).optional(), {
    description: "File with a passphrase, with which repositories are encrypted.",
    secret: false,
  }),
  repository_endpoint: key(z.url({ protocol: /^https?$/ }).optional(), {
    description:
      "S3 service of the repository that a command names as s3://BUCKET/PREFIX. The daemon does not use it: jobs name a registered remote.",
  }),
  repository_region: key(z.string().min(1).max(64).default("us-east-1"), {
    description: "Region of that service.",
  }),
  repository_access_key: key(z.string().min(1).max(256).optional(), {
    description: "Access key of that service.",
    secret: false,
  }),
  repository_secret_key: key(z.string().min(1).max(1_024).optional(), {
    description: "Secret key of that service.",
    secret: true,
  }),
  enable_audit: key(z.boolean().default(true), {
    description: "Writes an access log to the bucket system-access-logs.",
  }),
  bucket_logging_interval_s: key(z.number().int().min(1).max(86_400).default(300), {
    description:
      "Time for which access logs of buckets (`?logging`) are collected before they are written. Lines that wait are lost with the process.",
  }),
  secret_url: key(unset(z.url({ protocol: /^https?$/ })), {
    description:
      "Secret service (KV v2 of OpenBao or Vault) for named keys and the master key. Requires secret_api_key or secret_token_file.",
    env: ["PLATFORM_VAULT_SECRET_URL", "PLATFORM_SECRET_URL"],
  }),
  secret_api_key: key(unset(z.string().max(4_096)), {
    description: "Token for the secret service.",
    env: ["PLATFORM_VAULT_SECRET_API_KEY", "PLATFORM_SECRET_API_KEY"],
    secret: true,
  }),
  secret_token_file: key(z.string().min(1).max(4_096).optional(), {
    description:
      "File with the token for the secret service, read for each request. Takes precedence over secret_api_key.",
    secret: false,
  }),
  secret_tenant_id: key(unset(z.string().max(256)), {
    description: "Tenant of the secrets, sent as namespace; `default` is the root namespace.",
    env: ["PLATFORM_VAULT_SECRET_TENANT_ID", "PLATFORM_SECRET_TENANT_ID"],
    secret: false,
  }),
  secret_mount: key(secretPath.default("secret"), {
    description: "Mount of the KV engine.",
    secret: false,
  }),
  secret_keys_path: key(secretPath.default("storage/keys"), {
    description:
      "Folder of named keys, each with the field `key`: 32 bytes in base64. The name of a key is that of its secret.",
    secret: false,
  }),
  secret_master_key_path: key(secretPath.default("storage/master-key"), {
    description: "Secret with the master key in the field `key`: 32 bytes in base64.",
    secret: false,
  }),
  secret_ca: key(z.string().min(1).max(4_096).optional(), {
    description:
      "File with the authorities (PEM) that the secret service's certificate is verified with. Default: those of the system.",
    secret: false,
  }),
  secret_cache_s: key(z.int().min(1).max(31_536_000).default(86_400), {
    description:
      "Time for which named keys serve from memory while the secret service cannot be reached. Then objects under them are answered with 503.",
    unit: "s",
    secret: false,
  }),
  force: key(z.boolean().default(false), {
    description:
      "Starts although keys of objects are not available. These objects are answered with 503.",
  }),
  ...createTokenKeys(
    "vault",
    "the admin API accepts tokens: for storage those with a role of storage, for everything those with the scope vault:admin",
  ),
  ...createConsoleKeys(),
  ...createOperationKeys("vault"),
  ...createServiceKeys("vault"),
};

export type VaultConfig = ConfigOf<typeof KEYS>;

/** The definition of the command line. */
export const vaultDefinition = defineConfig({
  service: "vault",
  program: "platform-vaultd",
  version: VERSION,
  summary: "Object storage with the API of existing object-store clients.",
  keys: KEYS,
  commands: {
    fsck: {
      summary:
        "Check every file of a stopped store and report damage and what can be restored. Changes nothing without --repair. Exits with 1 if anything is damaged or lost.",
      options: {
        repair: key(z.boolean().default(false), {
          description:
            "Restore everything that can be restored. Replaced files are kept in the folder quarantine.",
          env: [],
        }),
        remotes: key(z.boolean().default(false), {
          description:
            "Read the bodies in remotes as well, against their checksums, and list keys there that no object needs.",
          env: [],
        }),
      },
    },
    backup: {
      summary:
        "Add a snapshot of a stopped store to a repository, a folder that is created if it is missing, or s3://BUCKET/PREFIX at repository_endpoint. Only what the repository does not have is stored. A running store is backed up with POST /admin/backup.",
      arguments: ["folder"],
      options: { passphrase_file: createRestoreKeys().passphrase_file },
    },
    "adopt-tier": {
      summary:
        "Make the keys in remotes that the objects of a stopped store refer to its own, after it was restored from a backup. Only right if the store that was backed up does not exist any more: this one deletes them with their objects.",
    },
    "rotate-master-key": {
      summary:
        "Replace the master key. A running store is asked by its admin API with the key of root; objects stay as they are, and backups keep their keys.",
      options: {
        key_file: key(z.string().min(1).max(4_096).optional(), {
          description:
            "File with the next key in base64, for a stopped store whose key is in the setting master_key. Both keys open the store until it was started with the next one.",
          env: [],
          secret: false,
        }),
      },
    },
    restore: {
      summary:
        "Verify a backup, or the last snapshot of a repository (a folder, or s3://BUCKET/PREFIX), and restore it to the configured data folder, which must be missing or empty.",
      arguments: ["folder"],
      options: {
        ...createRestoreKeys(),
        snapshot: key(z.string().min(1).max(64).optional(), {
          description: "Id of a snapshot of a repository. Default: the last one.",
          env: [],
        }),
      },
    },
    "repository check": {
      summary:
        "Read every file of a repository (a folder, or s3://BUCKET/PREFIX), verify it, and list its snapshots. Exits with 1 if anything is damaged or missing.",
      arguments: ["folder"],
      options: { passphrase_file: createRestoreKeys().passphrase_file },
    },
  },
  file: { flag: "config", env: ["PLATFORM_VAULT_CONFIG"], default: "config.json" },
});

/** True if the root user has the built-in credentials. */
export function hasDefaultCredentials(config: VaultConfig): boolean {
  return config.secret_access_key === DEFAULT_SECRET_KEY;
}

// With the built-in credentials, the listeners are restricted to loopback.
function isLocal(config: VaultConfig): boolean {
  return hasDefaultCredentials(config) || [config.addr, config.admin_addr].every(isLoopbackAddress);
}

const LOOPBACK_NETWORKS = ["127.0.0.0/8", "::1/128"];

/** The options of the store. */
export function toStoreOptions(config: VaultConfig): StoreOptions {
  const { drives: folders, drive_parity: parity, disk_reserve: reserveBytes } = config;
  return {
    dataDir: config.data_dir,
    inspectedBytesMax: config.index_check_limit,
    indexCopyEveryMs: config.index_copy_interval_ms,
    quarantineBytesMax: config.quarantine_limit,
    logBytesMax: config.index_log_limit,
    remoteNetworks: [...config.remote_networks, ...(isLocal(config) ? LOOPBACK_NETWORKS : [])],
    ...(config.embedding_url === undefined
      ? {}
      : {
          embedder: new EndpointEmbedder({
            url: config.embedding_url,
            model: config.embedding_model,
            key: config.embedding_key,
          }),
        }),
    ...(reserveBytes === undefined ? {} : { reserveBytes }),
    ...(folders.length === 0 ? {} : { drives: { folders, parity } }),
  };
}
