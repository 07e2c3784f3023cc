// The schema of the gateway's configuration: every key with its description, unit, default, range and names.
import { z } from "zod";
import {
  ADDRESS_FORMS,
  type ConfigOf,
  addressSchema,
  createServiceKeys,
  createTlsKeys,
  defineConfig,
  key,
  networkSchema,
  readPackageVersion,
} from "@platform/kernel/config";
import {
  BODY_BYTES_MAX_DEFAULT,
  CACHE_BYTES_DEFAULT,
  CUT_FIELDS_DEFAULT,
  LIMITS_DEFAULT,
  ROUTES_MAX,
  ROUTE_TIMEOUTS_DEFAULT,
  WORKERS_MAX,
  makeRouteKey,
} from "../shared-state/index.ts";
import { accessKeys } from "./access-keys.ts";
import { acmeKeys } from "./acme-keys.ts";
import { aiKeys } from "./ai-keys.ts";
import { bound } from "./bound.ts";
import { certificateOptions, revokeOptions } from "./certificate-options.ts";
import { consoleKeys } from "./console-keys.ts";
import { edgeKeys } from "./edge-keys.ts";
import { middlewareKeys } from "./middleware-keys.ts";
import { logKeys } from "./log-keys.ts";
import { dashboardOptions } from "./dashboard-options.ts";
import { installOptions } from "./install-options.ts";
import { policyCheckOptions, policyCompileOptions, policyTestOptions } from "./policy-options.ts";
import { replayOptions } from "./replay-options.ts";
import { type RouteConfig, routeSchema } from "./route.ts";
import { findSharedMethods } from "./route-methods.ts";
import { CONFIG_PATH_DEFAULT, CONFIG_PATH_VARIABLE } from "./state-folder.ts";
import { sourceKeys } from "./source-keys.ts";
import {
  BYTES_MAX,
  cuttableField,
  DAY_MS,
  filePath,
  redisUrl,
  serviceUrl,
  text,
  unset,
  unsetOr,
  wholeNumber,
} from "./value.ts";

/** Version of the gateway in health responses, `--version` and metrics. */
export const GATE_VERSION = readPackageVersion(import.meta.url);
/** Maximum of `route_drain_ms`. */
export const ROUTE_DRAIN_MS_MAX = 300_000;

const TRUSTED_PROXIES_MAX = 1024;
const IDENTITY_FIELDS_MAX = 64;
/** The memory is addressed with 32-bit numbers. */
const CACHE_BYTES_MAX = 8_589_934_592;
const HOUR_MS = 3_600_000;

/** A set of routes with distinct prefixes, hosts and methods. */
export const routesSchema = z
  .array(routeSchema)
  .max(ROUTES_MAX)
  .superRefine((list, context) => {
    const seen = new Map<string, number>();
    for (const [index, route] of list.entries()) {
      const name = makeRouteKey(route.host, route.prefix, route.methods, route.variant);
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
    for (const { index, method } of findSharedMethods(list)) {
      context.addIssue({
        code: "custom",
        path: [index, "methods"],
        message: `another route with the same prefix and host has ${method}, too`,
      });
    }
  });

const listening = {
  ...consoleKeys,
  addr: key(unsetOr(addressSchema().default({ host: undefined, port: 8080 })), {
    description: "Listen address of the gateway; read only at startup.",
    allowed: `an address such as ${ADDRESS_FORMS}`,
    defaultText: ":8080",
  }),
  admin_addr: key(unset(addressSchema()), {
    description:
      "Listen address for the gateway's internal routes; the main listener then serves only the probes. Read only at startup.",
    allowed: `an address such as ${ADDRESS_FORMS}`,
  }),
  workers: key(unsetOr(z.union([z.literal("auto"), wholeNumber(1, WORKERS_MAX)]).default("auto")), {
    description: "Number of worker threads; auto is one per core. Read only at startup.",
  }),
  ...createTlsKeys("gate", "With it the listener accepts TLS only."),
  ...edgeKeys,
  ...acmeKeys,
  ...sourceKeys,
  trusted_proxies: key(unsetOr(z.array(networkSchema()).max(TRUSTED_PROXIES_MAX).default([])), {
    description: "Addresses and CIDR ranges whose forwarding headers are trusted.",
  }),
};

const identity = {
  auth_token: key(unset(text()), {
    description:
      "Bearer token of the operator. If it is set, every path except the probes requires authentication, unless a route overrides it.",
    secret: true,
  }),
  jwt_secret: key(unset(text()), {
    description: "Key of HS256 tokens.",
    env: ["PLATFORM_GATE_JWT_SECRET", "PLATFORM_JWT_SECRET"],
    secret: true,
  }),
  jwks_url: key(unset(serviceUrl()), {
    description:
      "Key set (JWKS) of tokens signed with RSA, ECDSA or Ed25519; requires jwt_issuer and jwt_audience.",
    env: ["PLATFORM_GATE_JWKS_URL", "PLATFORM_JWKS_URL"],
  }),
  jwt_issuer: key(unset(text()), {
    description: "Required value of `iss`.",
    env: ["PLATFORM_GATE_JWT_ISSUER", "PLATFORM_JWT_ISSUER"],
  }),
  jwt_audience: key(unset(text()), {
    description: "Value that `aud` must contain.",
    env: ["PLATFORM_GATE_JWT_AUDIENCE", "PLATFORM_JWT_AUDIENCE"],
  }),
  revocations_url: key(unset(serviceUrl()), {
    description:
      "Revocation feed of the issuer, read every second: revoked tokens are rejected, and what they opened ends. Requires revocations_token and jwt_issuer. Read only at startup.",
    env: ["PLATFORM_GATE_REVOCATIONS_URL", "PLATFORM_REVOCATIONS_URL"],
  }),
  revocations_token: key(unset(text()), {
    description: "Bearer token for the revocation feed. Read only at startup.",
    env: ["PLATFORM_GATE_REVOCATIONS_TOKEN", "PLATFORM_REVOCATIONS_TOKEN"],
    secret: true,
  }),
  jwt_leeway_s: key(unsetOr(wholeNumber(1, 600).default(30)), {
    description: "Accepted clock skew.",
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
        "Request header fields that upstreams may trust, because they identify the user or the path that a proxy received. They are removed from client requests, also when spelled with _ instead of -. X-User-Id, X-User-Roles and X-Tenant-Id are always removed.",
    },
  ),
};

const bounds = {
  max_connections: bound("Maximum client connections per worker; more are refused with 503.", {
    default: LIMITS_DEFAULT.connectionsMax,
    max: 1_000_000,
  }),
  max_connections_per_address: key(unset(wholeNumber(1, 1_000_000)), {
    description:
      "Maximum client connections per worker from one IPv4 address or one IPv6 /64 network; more are closed immediately. Trusted proxies are exempt.",
    defaultText: "half of the accepted connections",
  }),
  max_unsent_size: bound(
    "Maximum response bytes that one worker buffers for slow clients; beyond it, clients that read nothing are disconnected.",
    {
      default: LIMITS_DEFAULT.unsentBytesMax,
      min: 16_777_216,
      max: BYTES_MAX,
      unit: "bytes",
    },
  ),
  body_pace_bytes: key(wholeNumber(0, 1_000_000_000).default(LIMITS_DEFAULT.bodyPaceBytes), {
    description:
      "Request body bytes that a client must send in each body_pace_window_ms while the upstream accepts them; slower requests are refused with 408. 0 disables the limit.",
    unit: "bytes",
  }),
  body_pace_window_ms: bound("Time window to which body_pace_bytes applies.", {
    default: LIMITS_DEFAULT.bodyPaceWindowMs,
    min: 1_000,
    max: HOUR_MS,
    unit: "ms",
  }),
  answer_pace_bytes: key(wholeNumber(0, 1_000_000_000).default(LIMITS_DEFAULT.answerPaceBytes), {
    description:
      "Response bytes that a client must read in each answer_pace_window_ms while bytes are buffered for it; slower clients are disconnected. Idle streams are not affected. 0 disables the limit.",
    unit: "bytes",
  }),
  answer_pace_window_ms: bound("Time window to which answer_pace_bytes applies.", {
    default: LIMITS_DEFAULT.answerPaceWindowMs,
    min: 1_000,
    max: HOUR_MS,
    unit: "ms",
  }),
  max_head_size: bound("Maximum size of a request or response head.", {
    default: LIMITS_DEFAULT.headBytesMax,
    min: 1024,
    max: 1_048_576,
    unit: "bytes",
  }),
  max_headers: bound("Maximum number of fields in a request or response head.", {
    default: LIMITS_DEFAULT.headersMax,
    min: 16,
    max: 4096,
  }),
  max_body_size: bound(
    "Maximum size of a request body; default for routes without their own limit.",
    {
      default: BODY_BYTES_MAX_DEFAULT,
      max: BYTES_MAX,
      unit: "bytes",
    },
  ),
  max_upstream_connections: bound("Maximum open connections per worker to one upstream.", {
    default: LIMITS_DEFAULT.upstreamConnectionsMax,
    max: 65_535,
  }),
  max_idle_upstream_connections: bound("Maximum idle connections per worker to one upstream.", {
    default: LIMITS_DEFAULT.upstreamIdleMax,
    max: 65_535,
  }),
  head_timeout_ms: bound("Timeout from the first byte of a request to the end of its head.", {
    default: LIMITS_DEFAULT.headTimeoutMs,
    max: HOUR_MS,
    unit: "ms",
  }),
  keep_alive_timeout_ms: bound("Idle timeout between two requests of a connection.", {
    default: LIMITS_DEFAULT.keepAliveMs,
    max: HOUR_MS,
    unit: "ms",
  }),
  upstream_keep_alive_timeout_ms: bound("Idle timeout of upstream connections.", {
    default: LIMITS_DEFAULT.upstreamIdleMs,
    max: HOUR_MS,
    unit: "ms",
  }),
  connect_timeout_ms: bound("Timeout for opening a connection to an upstream, including TLS.", {
    default: ROUTE_TIMEOUTS_DEFAULT.connectMs,
    max: DAY_MS,
    unit: "ms",
  }),
  response_timeout_ms: bound("Timeout from the last byte of a request to the response head.", {
    default: ROUTE_TIMEOUTS_DEFAULT.responseHeadMs,
    max: DAY_MS,
    unit: "ms",
  }),
  idle_timeout_ms: bound(
    "Maximum time without data during a body, stream or WebSocket. Applies to upstreams, to clients that are sending a body, and to clients that have unread response bytes.",
    {
      default: ROUTE_TIMEOUTS_DEFAULT.idleMs,
      max: DAY_MS,
      unit: "ms",
    },
  ),
  total_timeout_ms: key(unset(wholeNumber(1, DAY_MS)), {
    description: "Timeout for the whole request up to the response head, including retries.",
    unit: "ms",
    defaultText: "no timeout",
  }),
  route_drain_ms: bound("Drain timeout for streams of a removed route.", {
    default: LIMITS_DEFAULT.routeDrainMs,
    max: ROUTE_DRAIN_MS_MAX,
    unit: "ms",
  }),
  stream_drain_ms: bound(
    "Drain timeout for event streams and WebSockets when the gateway stops, within drain_timeout_ms; then they are closed gracefully, and their clients can reconnect.",
    { default: LIMITS_DEFAULT.streamDrainMs, max: HOUR_MS, unit: "ms" },
  ),
};

const unrouted = {
  no_route_status: key(unsetOr(z.union([z.literal(502), z.literal(404)]).default(502)), {
    description: "Status of requests that no route matches.",
  }),
  index_file: key(unset(filePath()), {
    description:
      "HTML file that is the response to GET / if no route matches it. Only for programs on this machine: loopback peer and Host, without a forwarding header.",
  }),
};

const limits = {
  limits_redis_url: key(unset(redisUrl()), {
    description:
      "Redis that counts the requests of rate limits, and the tokens and costs of models, for all gateways, and through which they share API keys, revoked users, the global policy and, with cookie_keys, automatic certificates. While it does not respond within 50 ms, each gateway counts its own requests.",
    secret: true,
  }),
};

const cache = {
  cache_size: key(unsetOr(wholeNumber(1_048_576, CACHE_BYTES_MAX).default(CACHE_BYTES_DEFAULT)), {
    description:
      "Maximum size of the response cache, which all workers share; the least recently used responses are dropped. Read only at startup.",
    unit: "bytes",
  }),
};

const overlayOptions = {
  config: key(text().default(CONFIG_PATH_DEFAULT), {
    description: "Configuration file of the overlay.",
    env: [CONFIG_PATH_VARIABLE],
  }),
};

/** The gateway's command line and configuration. */
export const gateDefinition = defineConfig({
  service: "gate",
  program: "platform-gate",
  version: GATE_VERSION,
  summary: "Gateway: routes, secures and balances HTTP traffic.",
  file: { flag: "config", env: [CONFIG_PATH_VARIABLE], default: CONFIG_PATH_DEFAULT },
  keys: {
    ...listening,
    ...identity,
    ...identityFields,
    ...bounds,
    ...unrouted,
    ...limits,
    ...cache,
    ...logKeys,
    ...middlewareKeys,
    ...aiKeys,
    ...accessKeys,
    ...createServiceKeys("gate"),
    ephemeral: key(z.boolean().default(false), {
      description:
        "Keep changes made through the API only in memory; the state on disk is read, not written.",
    }),
    routes: key(unsetOr(routesSchema.default([])), {
      description: "Routes; see below.",
      env: [],
      flag: false,
    }),
  },
  commands: {
    validate: { summary: "Validate the configuration." },
    "overlay show": {
      summary: "Show the changes that were made through the API.",
      options: overlayOptions,
      standalone: true,
    },
    "overlay clear": {
      summary: "Remove the changes that were made through the API.",
      options: overlayOptions,
      standalone: true,
    },
    "certificates list": {
      summary: "List the certificates of a running gateway, and names without one.",
      options: certificateOptions,
      standalone: true,
    },
    "certificates renew": {
      summary: "Obtain a new automatic certificate of a name now.",
      arguments: ["name"],
      options: certificateOptions,
      standalone: true,
    },
    "certificates revoke": {
      summary: "Revoke the automatic certificate of a name, and obtain a new one.",
      arguments: ["name"],
      options: revokeOptions,
      standalone: true,
    },
    dashboard: {
      summary:
        "Show requests, latency, circuits and cache hits of a running gateway in the terminal.",
      options: dashboardOptions,
      standalone: true,
    },
    replay: {
      summary:
        "Send recorded requests to a candidate and compare its responses, or pass them by middleware (exit code 1: different).",
      options: replayOptions,
      standalone: true,
    },
    install: {
      summary: "Install WebAssembly middleware from a registry: NAME or NAME@VERSION.",
      arguments: ["name"],
      options: installOptions,
      standalone: true,
    },
    "registry index": {
      summary: "Write the documents of a registry of static files.",
      arguments: ["folder"],
      standalone: true,
    },
    "policy compile": {
      summary: "Compile a policy to WebAssembly middleware.",
      arguments: ["file"],
      options: policyCompileOptions,
      standalone: true,
    },
    "policy check": {
      summary: "Report all faults of a policy.",
      arguments: ["file"],
      options: policyCheckOptions,
      standalone: true,
    },
    "policy test": {
      summary: "Report which recorded requests a policy denies (exit code 1: some).",
      arguments: ["file"],
      options: policyTestOptions,
      standalone: true,
    },
  },
});

/** The configuration from file, environment and flags. */
export type GateConfig = Omit<ConfigOf<typeof gateDefinition.keys>, "routes"> & {
  routes: RouteConfig[];
};

/** True if the listener accepts TLS only. */
export function usesTls(
  config: Pick<GateConfig, "tls_cert" | "certificates" | "auto_tls">,
): boolean {
  const { tls_cert: cert, certificates, auto_tls: isAutomatic } = config;
  return cert !== undefined || certificates.length > 0 || isAutomatic;
}
