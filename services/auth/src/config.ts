// The configuration of the identity service.
import { createConsoleKeys } from "@platform/console";
import {
  createDatabaseKeys,
  addressKey,
  createOperationKeys,
  createRestoreCommand,
  createServiceKeys,
  defineConfig,
  key,
  networkSchema,
  readPackageVersion,
  type ConfigOf,
} from "@platform/kernel/config";
import { z } from "zod";

/** Shown in health responses, `--version` and metrics. */
export const VERSION = readPackageVersion(import.meta.url);

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;

// Issuer, passkey RP and origin checks depend on it; OpenID Connect compares issuers character by character.
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
    description: "Listen address.",
    env: ["PLATFORM_AUTH_ADDR", "PLATFORM_AUTH_PORT"],
  }),
  public_url: key(publicUrl.optional(), {
    description: "Public base URL: issuer, passkey domain and base of links. No path.",
    defaultText: "http://localhost:<port>",
  }),
  connections_max: key(z.int().min(16).max(1_000_000).default(10_000), {
    description: "Maximum number of connections; further ones are closed immediately.",
    unit: "connections",
  }),
  connections_per_address_max: key(z.int().min(1).max(1_000_000).optional(), {
    description:
      "Maximum number of connections per IPv4 address or IPv6 /64 network; further ones are closed immediately. Trusted proxies are exempt. Defaults to half of connections_max.",
    unit: "connections",
  }),
  trusted_proxies: key(z.array(networkSchema()).max(256).default([]), {
    description:
      "Addresses and CIDR ranges of proxies whose X-Forwarded-For, or Forwarded without it, is trusted; throttling and the audit log use the client address.",
  }),
};

const storage = {
  data_dir: key(z.string().min(1).max(4096).default("./data/auth"), {
    description: "Data folder: SQLite database and generated secrets.",
  }),
  ...createDatabaseKeys("auth"),
  session_secret: key(z.string().min(1).max(4096).optional(), {
    description:
      "Signs session tokens: at least 32 bytes, raw or with the prefix hex: or base64:. Generated once on SQLite; required on PostgreSQL.",
    secret: true,
  }),
  encryption_keys: key(z.string().min(1).max(65_536).optional(), {
    description:
      "Encrypts secrets at rest: comma-separated 32-byte keys with the prefix hex: or base64:; the first key is used for encryption, every key for decryption. Generated once on SQLite; required on PostgreSQL.",
    secret: true,
  }),
};

const tokens = {
  jwt_algorithm: key(z.enum(["RS256", "ES256"]).default("RS256"), {
    description: "Signing algorithm of tokens.",
  }),
  jwt_key_path: key(z.string().min(1).max(4096).optional(), {
    description: "PEM file with the private key that becomes the first signing key.",
    env: ["PLATFORM_AUTH_JWT_KEY_PATH", "PLATFORM_AUTH_JWT_SECRET"],
    secret: false,
    flag: "jwt-key-path",
  }),
  egress_networks: key(z.array(networkSchema()).max(64).default([]), {
    description:
      "Private addresses and CIDR ranges to which the service may connect to send logout notices and fetch clients' key sets. Public addresses are always allowed.",
  }),
  audience: key(z.string().min(1).max(512).default("platform"), {
    description:
      "`aud` of access tokens for the platform's services. Such tokens are issued at sign-in, to first-party clients, and to clients that an administrator has allowed. Must differ from the public URL.",
  }),
  default_tenant: key(
    z
      .string()
      .regex(/^[A-Za-z0-9.-][A-Za-z0-9._-]{0,127}$/)
      .optional(),
    {
      description:
        "Claim `tenant` in access tokens of users and clients without a tenant of their own. Without it, their tokens have no such claim, and messaging refuses them.",
      allowed: "1 to 128 letters, digits or . _ -, not beginning with _",
    },
  ),
  // The form of RFC 6750 section 2.1: other characters could not be sent.
  revocations_token: key(
    z
      .string()
      .regex(/^[A-Za-z0-9._~+/-]{32,1024}=*$/)
      .optional(),
    {
      description:
        "Bearer token of the platform's other services for the revocation feed. It grants nothing else.",
      allowed: "32 or more letters, digits or . _ ~ + / - =",
      secret: true,
    },
  ),
  pkce: key(z.enum(["all", "public"]).default("all"), {
    description: "Clients that must use PKCE: all, or only public and native ones.",
  }),
};

const accounts = {
  registration: key(z.enum(["open", "invitation", "closed"]).default("open"), {
    description:
      "Registration: open to everyone, by invitation, or closed (administrators create accounts).",
  }),
  admin_user: key(z.string().min(1).max(64).optional(), {
    description: "Name of the first administrator, created at startup if there is none.",
  }),
  admin_password: key(z.string().min(1).max(1024).optional(), {
    description: "Password of the first administrator.",
    secret: true,
  }),
  bootstrap_file: key(z.string().min(1).max(4096).optional(), {
    description:
      "JSON file with the secret of the client platform-cli and the first administrator's name and password; readable by its owner only. Written by `platform up`.",
  }),
  password_hash_concurrency: key(z.int().min(1).max(256).optional(), {
    description: "Concurrent password hashes; each uses 19 MiB and one core.",
    secret: false,
    defaultText: "one per core",
  }),
  password_hash_queue: key(z.int().min(1).max(100_000).default(256), {
    description: "Maximum number of waiting password checks; further ones fail with 503.",
    secret: false,
  }),
  registration_hash_queue: key(z.int().min(1).max(100_000).default(32), {
    description:
      "Maximum number of registrations that wait for their password hash; further ones fail with 503. They do not delay sign-ins.",
  }),
  registrations_per_address_hourly: key(z.int().min(1).max(1_000_000).default(60), {
    description:
      "Registrations per hour and address; further ones fail with 429. Registrations with an invitation do not count.",
  }),
  registrations_per_network_hourly: key(z.int().min(1).max(1_000_000).default(240), {
    description:
      "Registrations per hour and network: the /24 of an IPv4 address or the /64 of an IPv6 address.",
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
        "Idle timeout of a session; its token is renewed in the second half of this time.",
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
      description: "Maximum lifetime of a session.",
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
      description: "Retention of audit events.",
      unit: "ms",
    },
  ),
};

const factors = {
  mfa_totp_issuer: key(z.string().min(1).max(64).default("Platform"), {
    description: "Issuer shown by authenticator apps.",
  }),
  platform_notify_url: key(httpUrl.optional(), {
    description:
      "URL of the mail service, which delivers codes and links by email and SMS. If it is not set, operations that need to send a message fail with 409.",
    env: ["PLATFORM_AUTH_PLATFORM_NOTIFY_URL"],
  }),
  notify_token: key(z.string().min(1).max(8192).optional(), {
    description: "Bearer token for the mail service.",
    secret: true,
  }),
  mail_from: key(z.string().min(3).max(254).default("no-reply@localhost"), {
    description: "Sender address of emails.",
  }),
};

const color = z
  .string()
  .regex(/^#[0-9a-fA-F]{6}$/)
  .optional();

const brand = {
  // Control characters would be invisible in titles and messages.
  brand_name: key(
    z
      .string()
      .regex(/^[^\p{C}]{1,64}$/u)
      .optional(),
    {
      description: "Name on pages and in the dialogs of passkeys.",
      allowed: "1 to 64 characters",
      defaultText: "mfa_totp_issuer",
    },
  ),
  brand_logo: key(z.string().min(1).max(4096).optional(), {
    description:
      "Logo on pages: a PNG of at most 2048 × 2048 pixels or an SVG without scripts and references to other files, at most 256 KiB.",
  }),
  brand_color: key(color, {
    description:
      "Colour of buttons and links on light pages. Its contrast must be at least 4.5:1, otherwise the service does not start.",
    allowed: "#rrggbb",
  }),
  brand_color_dark: key(color, {
    description: "The same for dark pages.",
    allowed: "#rrggbb",
    defaultText: "brand_color, as much lighter as necessary",
  }),
};

/** Command line and configuration of the identity service. */
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
    ...brand,
    ...records,
    ...createConsoleKeys(),
    ...createOperationKeys("auth"),
    ...createServiceKeys("auth"),
  },
  commands: {
    "admin reset": {
      summary:
        "Make a user an enabled administrator without second factors, and print a link for setting a password.",
      arguments: ["username"],
    },
    restore: createRestoreCommand(),
  },
});

/** The validated configuration. */
export type AuthConfig = ConfigOf<typeof authDefinition.keys>;
