// The one schema of the gateway's configuration: every key with its meaning, unit, default, bounds and names.
import * as z from "zod";
import {
  ADDRESS_FORMS,
  type ConfigOf,
  addressSchema,
  createServiceKeys,
  defineConfig,
  key,
  networkSchema,
} from "@platform/kernel/config";
import {
  BODY_BYTES_MAX_DEFAULT,
  CUT_FIELDS_DEFAULT,
  LIMITS_DEFAULT,
  ROUTES_MAX,
  ROUTE_TIMEOUTS_DEFAULT,
  WORKERS_MAX,
  makeRouteKey,
} from "../shared-state/index.ts";
import { type RouteConfig, routeSchema } from "./route.ts";
import {
  BYTES_MAX,
  cuttableField,
  DAY_MS,
  filePath,
  later,
  serviceUrl,
  text,
  unset,
  unsetOr,
  wholeNumber,
} from "./value.ts";

/** The gateway's version: in health answers, `--version` and metrics. */
export const GATE_VERSION = "1.0.0";
/** Longest time that the streams of a removed route may be given, in ms. */
export const ROUTE_DRAIN_MS_MAX = 300_000;

const CONFIG_PATH_DEFAULT = "config.json";
const CONFIG_PATH_VARIABLE = "PLATFORM_GATE_CONFIG";
const TRUSTED_PROXIES_MAX = 1024;
const IDENTITY_FIELDS_MAX = 64;
const HOUR_MS = 3_600_000;

/** A set of routes, each with a prefix and host of its own. */
export const routesSchema = z
  .array(routeSchema)
  .max(ROUTES_MAX)
  .superRefine((list, context) => {
    const seen = new Map<string, number>();
    for (const [index, route] of list.entries()) {
      const name = makeRouteKey(route.host, route.prefix);
      const first = seen.get(name);
      if (first === undefined) seen.set(name, index);
      else {
        context.addIssue({
          code: "custom",
          path: [index, "prefix"],
          message: `routes[${first}] has the same prefix and host`,
        });
      }
    }
  });

const listening = {
  addr: key(unsetOr(addressSchema().default({ host: undefined, port: 8080 })), {
    description: "Where the gateway listens; read at the start only.",
    allowed: `an address such as ${ADDRESS_FORMS}`,
    defaultText: ":8080",
  }),
  admin_addr: key(unset(addressSchema()), {
    description:
      "A listener of its own for the gateway's own paths; the first one then answers the probes only. Read at the start only.",
    allowed: `an address such as ${ADDRESS_FORMS}`,
  }),
  workers: key(unsetOr(z.union([z.literal("auto"), wholeNumber(1, WORKERS_MAX)]).default("auto")), {
    description: "Data-plane threads; auto is one per core. Read at the start only.",
  }),
  tls_cert: key(unset(filePath()), {
    description: "Certificate chain (PEM) that the listener shows; read again on a reload.",
  }),
  tls_key: key(unset(filePath()), {
    description: "Key (PEM) of tls_cert; read again on a reload.",
    secret: false,
    flag: "tls-key",
  }),
  trusted_proxies: key(unsetOr(z.array(networkSchema()).max(TRUSTED_PROXIES_MAX).default([])), {
    description: "Addresses and CIDR ranges whose forwarding headers are believed.",
  }),
};

const identity = {
  auth_token: key(unset(text()), {
    description:
      "The operator's bearer token: asked for on every path but the probes, unless a route says otherwise.",
    secret: true,
  }),
  jwt_secret: key(unset(text()), {
    description: "Key of HS256 tokens.",
    env: ["PLATFORM_GATE_JWT_SECRET", "PLATFORM_JWT_SECRET"],
    secret: true,
  }),
  jwks_url: key(unset(serviceUrl()), {
    description: "Key set of RS256 and ES256 tokens; needs jwt_issuer and jwt_audience.",
    env: ["PLATFORM_GATE_JWKS_URL", "PLATFORM_JWKS_URL"],
  }),
  jwt_issuer: key(unset(text()), {
    description: "Value that `iss` must have.",
    env: ["PLATFORM_GATE_JWT_ISSUER", "PLATFORM_JWT_ISSUER"],
  }),
  jwt_audience: key(unset(text()), {
    description: "Value that `aud` must hold.",
    env: ["PLATFORM_GATE_JWT_AUDIENCE", "PLATFORM_JWT_AUDIENCE"],
  }),
  jwt_leeway_s: key(unsetOr(wholeNumber(1, 600).default(30)), {
    description: "Tolerated difference of the clocks.",
    unit: "s",
  }),
};

const identityFields = {
  identity_fields: key(
    unsetOr(
      z
        .array(cuttableField())
        .max(IDENTITY_FIELDS_MAX)
        .default([...CUT_FIELDS_DEFAULT]),
    ),
    {
      description:
        "Request fields in which an upstream may look for the user: cut from what clients send, with _ for any - as well. X-User-Id, X-User-Roles and X-Tenant-Id are always cut.",
    },
  ),
};

const bounds = {
  max_connections: bound("Client connections of one worker; more are refused with 503.", {
    default: LIMITS_DEFAULT.connectionsMax,
    max: 1_000_000,
  }),
  max_connections_per_address: key(unset(wholeNumber(1, 1_000_000)), {
    description:
      "Client connections of one worker from one IPv4 address or one IPv6 network of 64 bits; one more is closed at once. Trusted proxies are exempt.",
    defaultText: "half of the connections that are accepted",
  }),
  max_unsent_size: bound(
    "Memory of one worker for bytes of answers that clients have not read yet; beyond it, clients that read nothing are disconnected.",
    {
      default: LIMITS_DEFAULT.unsentBytesMax,
      min: 16_777_216,
      max: BYTES_MAX,
      unit: "bytes",
    },
  ),
  body_pace_bytes: key(wholeNumber(0, 1_000_000_000).default(LIMITS_DEFAULT.bodyPaceBytes), {
    description:
      "Bytes of a request's body that a client must send in each body_pace_window_ms in which the upstream takes them; a slower one is refused with 408. 0 switches this off.",
    unit: "bytes",
  }),
  body_pace_window_ms: bound("Length of the window of body_pace_bytes.", {
    default: LIMITS_DEFAULT.bodyPaceWindowMs,
    min: 1_000,
    max: HOUR_MS,
    unit: "ms",
  }),
  answer_pace_bytes: key(wholeNumber(0, 1_000_000_000).default(LIMITS_DEFAULT.answerPaceBytes), {
    description:
      "Bytes of an answer that a client must read in each answer_pace_window_ms in which bytes wait for it; a slower one is disconnected. Streams with nothing to send are left alone. 0 switches this off.",
    unit: "bytes",
  }),
  answer_pace_window_ms: bound("Length of the window of answer_pace_bytes.", {
    default: LIMITS_DEFAULT.answerPaceWindowMs,
    min: 1_000,
    max: HOUR_MS,
    unit: "ms",
  }),
  max_head_size: bound("Size of a request's or an answer's head.", {
    default: LIMITS_DEFAULT.headBytesMax,
    min: 1024,
    max: 1_048_576,
    unit: "bytes",
  }),
  max_headers: bound("Fields of one head.", {
    default: LIMITS_DEFAULT.headersMax,
    min: 16,
    max: 4096,
  }),
  max_body_size: bound("Largest request body of a route that sets none.", {
    default: BODY_BYTES_MAX_DEFAULT,
    max: BYTES_MAX,
    unit: "bytes",
  }),
  max_upstream_connections: bound("Open connections of one worker to one upstream.", {
    default: LIMITS_DEFAULT.upstreamConnectionsMax,
    max: 65_535,
  }),
  max_idle_upstream_connections: bound("Unused connections of one worker to one upstream.", {
    default: LIMITS_DEFAULT.upstreamIdleMax,
    max: 65_535,
  }),
  head_timeout_ms: bound("From a request's first byte to the end of its head.", {
    default: LIMITS_DEFAULT.headTimeoutMs,
    max: HOUR_MS,
    unit: "ms",
  }),
  keep_alive_timeout_ms: bound("Silence between two requests of a connection.", {
    default: LIMITS_DEFAULT.keepAliveMs,
    max: HOUR_MS,
    unit: "ms",
  }),
  upstream_keep_alive_timeout_ms: bound("How long an unused upstream connection is kept.", {
    default: LIMITS_DEFAULT.upstreamIdleMs,
    max: HOUR_MS,
    unit: "ms",
  }),
  connect_timeout_ms: bound("Opening a connection to an upstream, TLS included.", {
    default: ROUTE_TIMEOUTS_DEFAULT.connectMs,
    max: DAY_MS,
    unit: "ms",
  }),
  response_timeout_ms: bound("From a request's last byte to the head of the answer.", {
    default: ROUTE_TIMEOUTS_DEFAULT.responseHeadMs,
    max: DAY_MS,
    unit: "ms",
  }),
  idle_timeout_ms: bound(
    "Silence inside a body, a stream or a WebSocket: of the upstream, and of a client that sends a body or has bytes to read.",
    {
      default: ROUTE_TIMEOUTS_DEFAULT.idleMs,
      max: DAY_MS,
      unit: "ms",
    },
  ),
  total_timeout_ms: key(unset(wholeNumber(1, DAY_MS)), {
    description: "The whole request up to the head of the answer, retries included.",
    unit: "ms",
    defaultText: "no bound",
  }),
  route_drain_ms: bound("How long streams of a removed route may go on.", {
    default: LIMITS_DEFAULT.routeDrainMs,
    max: ROUTE_DRAIN_MS_MAX,
    unit: "ms",
  }),
  stream_drain_ms: bound(
    "How long event streams and WebSockets may go on when the gateway stops, within drain_timeout_ms: then they are ended in order, and their clients come again elsewhere.",
    { default: LIMITS_DEFAULT.streamDrainMs, max: HOUR_MS, unit: "ms" },
  ),
};

const accessLog = {
  access_log_path: key(unset(filePath()), {
    description: "The JSONL file that routes with access_log write to.",
    defaultText: "access.jsonl beside the configuration",
  }),
  access_log_max_size: bound("Size at which the access log is rotated.", {
    default: 104_857_600,
    min: 4096,
    max: BYTES_MAX,
    unit: "bytes",
  }),
  access_log_files: bound("Rotated access logs that are kept.", { default: 5, max: 1000 }),
};

const notBuilt = {
  http_addr: unbuilt(text(), "Plain-text listener under automatic TLS."),
  auto_tls: unbuilt(z.boolean(), "Certificates through ACME.", "PLATFORM_AUTO_TLS"),
  auto_tls_domain: unbuilt(text(), "Domain of the certificate.", "PLATFORM_AUTO_TLS_DOMAIN"),
  config_store_bucket: unbuilt(
    text(),
    "Bucket that holds the configuration.",
    "PLATFORM_CONFIG_STORE_BUCKET",
  ),
  discovery: unbuilt(text(), "Service discovery.", "PLATFORM_DISCOVERY"),
  secret_url: unbuilt(text(), "Secret service for certificates.", "PLATFORM_SECRET_URL"),
  secret_api_key: unbuilt(text(), "Key for the secret service.", "PLATFORM_SECRET_API_KEY"),
  secret_tenant_id: unbuilt(text(), "Tenant of the secrets.", "PLATFORM_SECRET_TENANT_ID"),
  limits_redis_url: unbuilt(
    text(),
    "Redis that shares rate limits.",
    "PLATFORM_GATE_LIMITS_REDIS_URL",
  ),
  registry: unbuilt(text(), "Registry of middleware.", "PLATFORM_REGISTRY"),
  cluster: unbuilt(text(), "Cluster name in policies.", "PLATFORM_CLUSTER"),
  region: unbuilt(text(), "Region name in policies.", "PLATFORM_REGION"),
  gitops: unbuilt(z.record(z.string(), z.unknown()), "Webhook that pulls the configuration."),
};

const overlayOptions = {
  config: key(text().default(CONFIG_PATH_DEFAULT), {
    description: "The configuration file that the overlay belongs to.",
    env: [CONFIG_PATH_VARIABLE],
  }),
};

/** The gateway's command line and configuration. */
export const gateDefinition = defineConfig({
  service: "gate",
  program: "platform-gate",
  version: GATE_VERSION,
  summary: "The gateway: routes, secures and balances HTTP traffic.",
  file: { flag: "config", env: [CONFIG_PATH_VARIABLE], default: CONFIG_PATH_DEFAULT },
  keys: {
    ...listening,
    ...identity,
    ...identityFields,
    ...bounds,
    ...accessLog,
    ...createServiceKeys("gate"),
    ephemeral: key(z.boolean().default(false), {
      description: "Keep changes made through the API in memory only.",
    }),
    routes: key(unsetOr(routesSchema.default([])), {
      description: "The routes; see below.",
      env: [],
      flag: false,
    }),
    ...notBuilt,
  },
  commands: {
    validate: { summary: "Check the configuration and say what is wrong with it." },
    "overlay show": {
      summary: "Show what the API changed on top of the configuration.",
      options: overlayOptions,
      standalone: true,
    },
    "overlay clear": {
      summary: "Remove what the API changed.",
      options: overlayOptions,
      standalone: true,
    },
    dashboard: { summary: "Terminal dashboard (not available yet).", standalone: true },
    replay: { summary: "Replay recorded traffic (not available yet).", standalone: true },
    install: { summary: "Install middleware (not available yet).", standalone: true },
    policy: { summary: "Compile a policy (not available yet).", standalone: true },
  },
});

/** The configuration after file, environment and flags. */
export type GateConfig = Omit<ConfigOf<typeof gateDefinition.keys>, "routes"> & {
  routes: RouteConfig[];
};

function bound(
  description: string,
  options: { default: number; min?: number; max: number; unit?: string },
) {
  return key(unsetOr(wholeNumber(options.min ?? 1, options.max).default(options.default)), {
    description,
    ...(options.unit === undefined ? {} : { unit: options.unit }),
  });
}

function unbuilt<T extends z.ZodType>(schema: T, description: string, env?: string) {
  return key(later(schema), {
    secret: env === "PLATFORM_SECRET_API_KEY",
    description: `${description} Not available yet.`,
    env: env === undefined ? [] : [env],
    flag: false,
  });
}
