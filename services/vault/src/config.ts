// The one schema of the vault's configuration.
import {
  addressKey,
  createServiceKeys,
  createTokenKeys,
  defineConfig,
  key,
  networkSchema,
} from "@platform/kernel/config";
import type { ConfigOf } from "@platform/kernel/config";
import { z } from "zod";
import { SHARDS_MAX } from "./blob/erasure/reed-solomon.ts";

/** The vault's version: in health answers, `--version` and metrics. */
export const VERSION = "2.0.0";
/** The built-in access key: with it, the vault listens on loopback only. */
export const DEFAULT_ACCESS_KEY = "platform-vault";
/** The built-in secret. */
export const DEFAULT_SECRET_KEY = "platform-vault-secret";

const LIST_MAX = 1_000;
const MIB = 1024 * 1024;
const MONTH_MS = 30 * 86_400_000;
const domainName = z.string().regex(/^[a-z0-9-]{1,63}(?:\.[a-z0-9-]{1,63}){0,10}$/, {
  error: "expected a name in lower case",
});

const keys = {
  addr: addressKey(":9000", {
    description: "Where the object API listens.",
    env: ["PLATFORM_VAULT_ADDR", "PORT"],
    flag: "port",
  }),
  admin_addr: addressKey(":9001", {
    description: "Where the admin API, the metrics and the console listen.",
    env: ["PLATFORM_VAULT_ADMIN_ADDR", "ADMIN_PORT"],
    flag: "admin-port",
  }),
  tls_cert: key(z.string().min(1).optional(), {
    description:
      "Certificate chain (PEM) of both listeners, which speak TLS alone then; read again within ten seconds when it changes.",
  }),
  tls_key: key(z.string().min(1).optional(), {
    description: "Key (PEM) of tls_cert.",
    secret: false,
  }),
  data_dir: key(z.string().min(1).default("./data"), {
    description: "Folder that everything is kept in.",
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
        "Size up to which the index is read as a whole at the start, and a damaged one refused. In a larger one, damaged rows are found when they are read or copied.",
      unit: "bytes",
    },
  ),
  index_copy_interval_ms: key(z.int().min(0).max(MONTH_MS).default(3_600_000), {
    description:
      "How often the index is checked and copied on the same disk, for fsck to restore from; 0 switches that off. Stores on several drives make no copies.",
    unit: "ms",
  }),
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
      "Folders on drives of their own that objects are kept on, in an order that stays; what else the vault keeps is in data_dir.",
  }),
  drive_parity: key(
    z
      .int()
      .min(1)
      .max(SHARDS_MAX - 1)
      .default(1),
    {
      description: "How many of the drives may be lost; chosen when the store is made.",
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
        "Access key of the root user. With the built-in key and secret, only programs on this machine are listened to.",
      env: ["STORE_ACCESS_KEY_ID"],
      flag: false,
    },
  ),
  secret_access_key: key(z.string().min(8).max(128).default(DEFAULT_SECRET_KEY), {
    description: "Secret of the root user's access key.",
    env: ["STORE_SECRET_ACCESS_KEY"],
    secret: true,
  }),
  master_key: key(z.base64().length(44).optional(), {
    description:
      "32 bytes in base64 that secrets and encrypted objects are sealed with; without it a file in the data folder holds them.",
    secret: true,
  }),
  enable_web_admin: key(z.boolean().default(true), {
    description: "Whether the admin listener offers the console and its sessions.",
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
      description:
        "Region of buckets that are made without one. Requests may be signed for any region.",
    },
  ),
  domain: key(domainName.optional(), {
    description:
      "Requests to names below it are for the bucket that the name begins with (virtual-host style).",
  }),
  website_domain: key(domainName.optional(), {
    description:
      "Requests to names below it are answered as the web site of the bucket that the name begins with.",
  }),
  max_connections: key(z.int().min(16).max(1_000_000).default(16_384), {
    description: "Connections to the object API at a time; one more is closed at once.",
    unit: "connections",
  }),
  max_connections_per_address: key(z.int().min(1).max(1_000_000).optional(), {
    description:
      "Those of one IPv4 address or one IPv6 network of 64 bits; one more is closed at once. Trusted proxies are exempt. By default half of max_connections.",
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
        "Memory for bytes of answers that clients have not read yet. The more of it is used, the less is read ahead for each; beyond it, clients that read nothing are disconnected.",
      unit: "bytes",
    },
  ),
  trusted_proxies: key(z.array(networkSchema()).max(LIST_MAX).default([]), {
    description: "Addresses and ranges whose X-Forwarded-For, -Host and -Proto are believed.",
  }),
  event_networks: key(z.array(networkSchema()).max(LIST_MAX).default([]), {
    description: "Private addresses and ranges that events may be sent to; public ones always may.",
  }),
  tenant_rate: key(z.int().min(0).max(10_000_000).default(1_000), {
    description:
      "Requests a second that each access key may make in the long run; 0 switches the budgets off.",
    unit: "requests/s",
  }),
  tenant_burst: key(z.int().min(1).max(10_000_000).default(2_000), {
    description: "Requests at once after a rest.",
    unit: "requests",
  }),
  body_pace_bytes: key(z.int().min(0).max(1_000_000_000).default(7_680), {
    description:
      "Bytes of a request's body that a client must send in each body_pace_window_ms in which the server waits for it; a slower one is refused (RequestTimeout). 0 switches this off.",
    unit: "bytes",
  }),
  body_pace_window_ms: key(z.int().min(1_000).max(3_600_000).default(30_000), {
    description: "Length of the window of body_pace_bytes.",
    unit: "ms",
  }),
  answer_pace_bytes: key(z.int().min(0).max(1_000_000_000).default(15_360), {
    description:
      "Bytes of an answer that a client must read in each answer_pace_window_ms in which bytes wait for it; a slower one is disconnected. 0 switches this off.",
    unit: "bytes",
  }),
  answer_pace_window_ms: key(z.int().min(1_000).max(3_600_000).default(60_000), {
    description: "Length of the window of answer_pace_bytes.",
    unit: "ms",
  }),
  enable_audit: key(z.boolean().default(true), {
    description: "Whether requests are written to the bucket system-access-logs.",
  }),
  ...createTokenKeys(
    "vault",
    "the admin API takes those with the scope vault:admin or the role admin",
  ),
  ...createServiceKeys("vault"),
};

/** The vault's configuration. */
export type VaultConfig = ConfigOf<typeof keys>;

/** The program. */
export const vaultDefinition = defineConfig({
  service: "vault",
  program: "platform-vaultd",
  version: VERSION,
  summary: "Object storage over the API that existing object-store clients speak.",
  keys,
  commands: {
    fsck: {
      summary:
        "Check every file of a stopped store: what is whole, damaged or can be restored. Changes nothing without --repair; exits with 1 if anything is damaged or lost.",
      options: {
        repair: key(z.boolean().default(false), {
          description:
            "Restore what can be restored. What it replaces is kept in the folder quarantine.",
          env: [],
        }),
      },
    },
  },
  file: { flag: "config", env: ["PLATFORM_VAULT_CONFIG"], default: "config.json" },
});

/** Whether the root user has the credentials that everybody knows. */
export function hasDefaultCredentials(config: VaultConfig): boolean {
  return config.secret_access_key === DEFAULT_SECRET_KEY;
}
