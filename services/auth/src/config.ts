// The identity service's configuration: every key with its type, unit, default, bound and environment names.
import {
  addressKey,
  createServiceKeys,
  defineConfig,
  key,
  networkSchema,
  readPackageVersion,
  type ConfigOf,
} from "@platform/kernel/config";
import { z } from "zod";

/** The identity service's version: in health answers, `--version` and metrics. */
export const VERSION = readPackageVersion(import.meta.url);

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;

// Issuer, passkey RP and origin checks all come from it, and OpenID Connect compares issuers by characters.
const publicUrl = z
  .url({ protocol: /^https?$/ })
  .refine((text) => {
    const url = new URL(text);
    return url.pathname === "/" && url.search === "" && url.hash === "" && url.username === "";
  }, "an http or https URL without path, query, fragment and user")
  .transform((text) => new URL(text).origin);

const httpUrl = z.url({ protocol: /^https?$/ });

const listening = {
  addr: addressKey(":8086", {
    description: "Where the service listens.",
    env: ["PLATFORM_AUTH_ADDR", "PLATFORM_AUTH_PORT"],
  }),
  public_url: key(publicUrl.optional(), {
    description:
      "The address that browsers and clients know the service by: issuer, passkey domain, base of links. No path.",
    defaultText: "http://localhost:<port>",
  }),
  connections_max: key(z.int().min(16).max(1_000_000).default(10_000), {
    description: "Connections at a time; one more is closed at once.",
    unit: "connections",
  }),
  connections_per_address_max: key(z.int().min(1).max(1_000_000).optional(), {
    description:
      "Those of one IPv4 address or one IPv6 network of 64 bits; one more is closed at once. Trusted proxies are exempt. By default half of connections_max.",
    unit: "connections",
  }),
  trusted_proxies: key(z.array(networkSchema()).max(256).default([]), {
    description:
      "Addresses and CIDR ranges of proxies whose X-Forwarded-For names the client; throttling and the audit log use it.",
  }),
};

const storage = {
  data_dir: key(z.string().min(1).max(4096).default("./data/auth"), {
    description: "Folder of the SQLite database and of generated secrets.",
  }),
  database_url: key(
    z
      .string()
      .regex(/^(?:postgres(?:ql)?:\/\/|sqlite:).+/)
      .optional(),
    {
      description: "postgres://… or sqlite:path.",
      env: ["PLATFORM_AUTH_DATABASE_URL", "DATABASE_URL"],
      secret: true,
      defaultText: "sqlite:auth.db in the data folder",
    },
  ),
  session_secret: key(z.string().min(1).max(4096).optional(), {
    description:
      "Signs session tokens: 32 raw bytes or more, or hex: or base64: of as many. On SQLite generated once when it is missing; on PostgreSQL it must be given.",
    secret: true,
  }),
  encryption_keys: key(z.string().min(1).max(65_536).optional(), {
    description:
      "Encrypt secrets at rest: hex: or base64: keys of 32 bytes, separated by commas; the first encrypts, all decrypt. On SQLite generated once when it is missing; on PostgreSQL it must be given.",
    secret: true,
  }),
};

const tokens = {
  jwt_algorithm: key(z.enum(["RS256", "ES256"]).default("RS256"), {
    description: "Algorithm of the keys that sign tokens.",
  }),
  jwt_key_path: key(z.string().min(1).max(4096).optional(), {
    description: "Private key (PEM) that seeds the first signing key.",
    env: ["PLATFORM_AUTH_JWT_KEY_PATH", "PLATFORM_AUTH_JWT_SECRET"],
    secret: false,
    flag: "jwt-key-path",
  }),
  egress_networks: key(z.array(networkSchema()).max(64).default([]), {
    description:
      "Private addresses and CIDR ranges that logout notices and key sets of clients may be at; public ones always may.",
  }),
  audience: key(z.string().min(1).max(512).default("platform"), {
    description:
      "Audience of access tokens for the platform's services: of logins, first-party clients and clients that administrators allow it. Must differ from the public URL.",
  }),
  pkce: key(z.enum(["all", "public"]).default("all"), {
    description:
      "Which clients must use PKCE: all, or public and native ones only, for confidential clients that cannot.",
  }),
};

const accounts = {
  registration: key(z.enum(["open", "invitation", "closed"]).default("open"), {
    description:
      "Who may make an account: anyone, holders of an invitation, or administrators only.",
  }),
  admin_user: key(z.string().min(1).max(64).optional(), {
    description: "Name of the first administrator, made at the start while there is none.",
  }),
  admin_password: key(z.string().min(1).max(1024).optional(), {
    description: "Password of the first administrator.",
    secret: true,
  }),
  password_hash_concurrency: key(z.int().min(1).max(256).optional(), {
    description: "Passwords hashed at the same time; each takes 19 MiB and one core.",
    secret: false,
    defaultText: "one per core",
  }),
  password_hash_queue: key(z.int().min(1).max(100_000).default(256), {
    description: "Password checks that may wait; more are refused with 503.",
    secret: false,
  }),
  registration_hash_queue: key(z.int().min(1).max(100_000).default(32), {
    description:
      "Registrations that may wait for their password to be hashed; more are refused with 503. Sign-ins do not wait behind them.",
  }),
  registrations_per_address_hourly: key(z.int().min(1).max(1_000_000).default(60), {
    description:
      "Registrations within an hour from one address; more are refused with 429. Those with an invitation do not count.",
  }),
  registrations_per_network_hourly: key(z.int().min(1).max(1_000_000).default(240), {
    description: "The same from one network: the /24 of an IPv4 address, the /64 of an IPv6 one.",
  }),
};

const sessions = {
  session_idle_ms: key(
    z
      .int()
      .min(MINUTE_MS)
      .max(365 * DAY_MS)
      .default(DAY_MS),
    {
      description:
        "A session that is not used for this long ends; its token is renewed in the second half of it.",
      unit: "ms",
    },
  ),
  session_absolute_ms: key(
    z
      .int()
      .min(MINUTE_MS)
      .max(3650 * DAY_MS)
      .default(14 * DAY_MS),
    {
      description: "A session ends after this time, used or not.",
      unit: "ms",
    },
  ),
};

const records = {
  audit_retention_ms: key(
    z
      .int()
      .min(DAY_MS)
      .max(3650 * DAY_MS)
      .default(365 * DAY_MS),
    {
      description: "How long events stay in the audit log.",
      unit: "ms",
    },
  ),
};

const factors = {
  mfa_totp_issuer: key(z.string().min(1).max(64).default("Platform"), {
    description: "Issuer that authenticator apps show.",
  }),
  platform_notify_url: key(httpUrl.optional(), {
    description:
      "The notification service, which delivers codes and links by email and SMS; without it those are refused with 409.",
    env: ["PLATFORM_AUTH_PLATFORM_NOTIFY_URL"],
  }),
  notify_token: key(z.string().min(1).max(8192).optional(), {
    description: "Bearer token for the notification service.",
    secret: true,
  }),
  mail_from: key(z.string().min(3).max(254).default("no-reply@localhost"), {
    description: "Sender of mails.",
  }),
};

/** The identity service's command line and configuration. */
export const authDefinition = defineConfig({
  service: "auth",
  program: "platform-auth",
  version: VERSION,
  summary: "The identity service: accounts, passkeys, sessions, OAuth 2.0 and OpenID Connect.",
  keys: {
    ...listening,
    ...storage,
    ...tokens,
    ...accounts,
    ...sessions,
    ...factors,
    ...records,
    ...createServiceKeys("auth"),
  },
  commands: {
    "admin reset": {
      summary:
        "Make a user an administrator who can sign in again: enabled, without second factors, with a printed link to set a password.",
      arguments: ["username"],
    },
  },
});

/** The configuration after environment and flags. */
export type AuthConfig = ConfigOf<typeof authDefinition.keys>;
