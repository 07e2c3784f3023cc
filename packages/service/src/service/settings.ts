// Settings of a service from its environment.
import { z } from "zod";
import {
  DATABASE_URL,
  createLossKey,
  createServiceKeys,
  createTokenKeys,
  defineConfig,
  key,
  loadConfig,
  type ConfigOf,
} from "@platform/kernel/config";

const url = z.url({ protocol: /^https?$/ }).optional();
const text = z.string().min(1).max(4_096).optional();

const KEYS = {
  ...createServiceKeys("service"),
  ...createTokenKeys("service", "for routes with `requires`"),
  name: key(
    z
      .string()
      .regex(/^[a-z][a-z0-9-]{0,62}$/)
      .optional(),
    {
      description: "Name in logs, metrics and traces; default: the name of package.json.",
      env: ["PLATFORM_SERVICE_NAME"],
    },
  ),
  port: key(z.int().min(0).max(65_535).optional(), {
    description: "Port; replaces the declared one.",
    env: ["PLATFORM_SERVICE_PORT", "PORT"],
  }),
  host: key(z.string().min(1).optional(), {
    description: "Address to listen on; replaces the declared one.",
    env: ["PLATFORM_SERVICE_HOST", "HOST"],
  }),
  data: key(z.string().min(1).default("./data"), {
    description: "Folder of the SQLite files.",
    env: ["PLATFORM_DATA_DIR"],
  }),
  database_url: key(z.string().regex(DATABASE_URL).optional(), {
    description: "Database of all `database()` declarations, instead of SQLite files.",
    env: ["DATABASE_URL"],
    secret: true,
    allowed: "a URL like postgres://user:password@host/name",
  }),
  accept_loss: createLossKey(),
  gateway: key(z.enum(["platform", "external"]).default("platform"), {
    description:
      "`external`: a gateway other than the platform's applies the access rules that the service declares, so that it admits requests from other machines without a proof of it.",
    env: ["PLATFORM_SERVICE_GATEWAY"],
  }),
  oidc_issuer: key(url, {
    description: "Issuer of identity, for `auth` and for tokens of `messages` and `mail`.",
    env: ["OIDC_ISSUER"],
  }),
  oidc_client_id: key(text, {
    description: "OAuth client of the service.",
    env: ["OIDC_CLIENT_ID"],
  }),
  oidc_client_secret: key(text, {
    description:
      "Secret of the OAuth client; session cookies are encrypted with a key derived from it.",
    env: ["OIDC_CLIENT_SECRET"],
    secret: true,
  }),
  oidc_redirect_url: key(url, {
    description: "Address of the route that calls `auth.finishSignIn`.",
    env: ["OIDC_REDIRECT_URL"],
  }),
  messaging_url: key(url, { description: "Messaging, for `messages`.", env: ["MESSAGING_URL"] }),
  mail_url: key(url, { description: "Mail, for `mail`.", env: ["MAIL_URL"] }),
  s3_endpoint: key(url, { description: "Storage, for `objects`.", env: ["AWS_ENDPOINT_URL_S3"] }),
  s3_region: key(z.string().min(1).max(64).default("us-east-1"), {
    description: "Region of storage.",
    env: ["AWS_REGION"],
  }),
  s3_access_key: key(text, {
    description: "Key of storage.",
    env: ["AWS_ACCESS_KEY_ID"],
    secret: true,
  }),
  s3_secret_key: key(text, {
    description: "Secret of the key.",
    env: ["AWS_SECRET_ACCESS_KEY"],
    secret: true,
  }),
  s3_bucket: key(text, { description: "Bucket of `objects`.", env: ["S3_BUCKET"] }),
} as const;

/** Settings of a service. */
export type Settings = ConfigOf<typeof KEYS>;

/** Declaration of the settings, for the reference. */
export const serviceDefinition = defineConfig({
  service: "service",
  program: "a service",
  version: "1.0.0",
  summary: "Environment variables of services built with @platform/service.",
  keys: KEYS,
});

/** Reads the settings. Throws a ConfigError that lists all invalid variables. */
export function readSettings(env: Readonly<Record<string, string | undefined>>): Settings {
  const loaded = loadConfig(serviceDefinition, { argv: [], env });
  if (loaded.kind !== "run") throw new Error("settings have no commands");
  return loaded.config;
}
