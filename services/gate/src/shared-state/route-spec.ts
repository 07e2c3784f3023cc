// Settings of one route for workers: plain, validated data; files are already read.

import type { HealthCheckSpec, ResilienceSpec } from "./resilience-spec.ts";
import type { StepSpecs } from "./step-specs.ts";

/** Identifies a route by its optional host, prefix, optional methods and optional variant. Created by {@link makeRouteKey} only. */
export type RouteKey = string & { readonly __brand: "RouteKey" };

/** Load balancing strategy of a route. */
export type BalancerKind = "round_robin" | "least_conn" | "random" | "ip_hash";

/** One upstream of a route. */
export interface TargetSpec {
  /** `http://` or `https://` origin with an optional path that is prepended to the forwarded path. */
  url: string;
  /** Relative weight, a non-negative integer; 0 receives no traffic. 1 if the route sets no weights. */
  weight: number;
  /** Slot in {@link import("./target-state.ts").SharedTargetState}; equal for equal {@link makeTargetKey}. */
  slot: number;
  /** Slot of this target on this route in {@link import("./link-state.ts").SharedLinkState}. */
  link: number;
  /** Set for the target of a model, which has rules of its own. */
  model?: { readonly headers?: HeaderRules; readonly keepsHost: boolean };
}

/** TLS material for the upstreams of a route, as PEM text. */
export interface UpstreamTlsSpec {
  /** Client certificate chain for mutual TLS; requires `keyPem`. */
  certPem?: string;
  keyPem?: string;
  /** The only trusted roots for the upstream's certificate; default: the system's roots. */
  caPem?: string;
}

/** Tokens of a key set. */
export interface BearerAuth {
  type: "bearer";
  jwksUrl: string;
  /** Scope that the token must have; 403 without it. */
  requiredScope?: string;
  /** Checked if present, like `audience`; without one of them any type of token is accepted. */
  issuer?: string;
  audience?: string;
  /** Accepted clock skew; default 30. */
  leewaySeconds?: number;
}

/** Identities of workloads: SPIFFE JWT-SVIDs. */
export interface WorkloadAuth {
  type: "workload";
  jwksUrl: string;
  audience: string;
  trustDomain: string;
  leewaySeconds?: number;
}

/** Another service judges each request. */
export interface ForwardAuth {
  type: "forward";
  url: string;
  timeoutMs: number;
  /** Request fields that the service gets; absent: all. */
  requestFields?: readonly string[];
  /** Fields of its response for the upstream. */
  upstreamFields: readonly string[];
}

/** Browser users sign in at an identity provider. */
export interface OidcAuth {
  type: "oidc";
  /** See `describeOidcClient`. */
  client: string;
  /** Fields for the upstream and the claims that they get. */
  claimFields: readonly (readonly [field: string, claim: string])[];
}

/** Access control of a proxied route. `inherit`: the global token and JWT settings apply. */
export type RouteAuthSpec =
  | { type: "inherit" }
  | { type: "none" }
  | BearerAuth
  | WorkloadAuth
  | ForwardAuth
  | OidcAuth;

/** Timeouts of one exchange in milliseconds; 0 disables a timeout. */
export interface RouteTimeouts {
  /** TCP and TLS handshake of a new upstream connection. */
  connectMs: number;
  /** From the last byte of the request to the response head. */
  responseHeadMs: number;
  /** Maximum pause between two chunks of a response body. */
  idleMs: number;
  /** The whole exchange including retries and streams; does not apply to WebSockets. */
  totalMs: number;
}

/** Changes of fields, compiled into the forwarding plan. */
export interface HeaderRules {
  removeRequest: readonly string[];
  addRequest: readonly (readonly [name: string, value: string])[];
  removeResponse: readonly string[];
  addResponse: readonly (readonly [name: string, value: string])[];
}

/** Limits of a route that a user has set. */
export interface ConfinedSpec {
  /** Absolute paths of the folders below which its files must be. */
  roots: readonly string[];
  /** Networks that it may reach beside public addresses. */
  networks: readonly string[];
}

/** One route. Values `0`, `""` and `[]` of the configuration are already replaced by defaults. */
export interface RouteSpec {
  key: RouteKey;
  /** Normalized, starts with `/`. With a trailing `/` it matches only paths below it. */
  prefix: string;
  /** Lower case without a port; absent: any host. */
  host?: string;
  /** Sorted, in upper case; absent: all that no other route with this prefix and host has. */
  methods?: readonly string[];
  /** Patterns of whole paths below the prefix, normalized like it; absent: all paths. */
  paths?: readonly string[];
  /** Set for a route that decides by its one path, before others with its prefix, host and methods. */
  variant?: string;
  /** Slot in {@link import("./route-state.ts").SharedRouteState}. */
  slot: number;
  /** ID of the `route` label in worker metrics, above 0; see {@link import("./metric-block.ts").MetricBlock}. */
  metricsId: number;
  /** The sum of weights is above 0. Empty for a service without an address, and for routes that answer themselves. */
  targets: TargetSpec[];
  balancer: BalancerKind;
  /** Removes the prefix from the forwarded path. */
  stripPrefix: boolean;
  /** Path in place of the prefix; absent: the prefix stays unless `stripPrefix` is set. */
  replacePrefix?: string;
  /** Changes of the fields of requests and responses. */
  headers?: HeaderRules;
  /** `client` forwards the client's Host, `target` sends the target's authority. */
  hostHeader: "client" | "target";
  /** Forwards the path as sent instead of normalized. */
  rawPath: boolean;
  /** Maximum size of a request body in bytes; default {@link BODY_BYTES_MAX_DEFAULT}. */
  bodyBytesMax: number;
  timeouts: RouteTimeouts;
  /** Writes a JSONL line for each request. */
  accessLog: boolean;
  auth: RouteAuthSpec;
  /** Additional request fields that clients may not set for the upstream; see {@link CUT_FIELDS_DEFAULT}. */
  cutFields: readonly string[];
  upstreamTls?: UpstreamTlsSpec;
  steps: StepSpecs;
  /** Absent if the route uses none of it. */
  resilience?: ResilienceSpec;
  /** Absent without active health checks. */
  healthCheck?: HealthCheckSpec;
  /** Absent: the route may reach everything. */
  confined?: ConfinedSpec;
}

/** 10 MiB, the specification's default of `max_body_size`. */
export const BODY_BYTES_MAX_DEFAULT = 10_485_760;

/** Fields in which proxies pass the user's identity, or the request that they received: an upstream may trust them. */
export const CUT_FIELDS_DEFAULT: readonly string[] = [
  "X-User",
  "X-Forwarded-User",
  "Remote-User",
  "X-SSL-Client-Cert",
  "X-Forwarded-Uri",
  "X-Forwarded-Method",
  "X-Original-Uri",
  "X-Original-Url",
  "X-Original-Method",
  "X-Rewrite-Url",
];

/** Fields with the certificate of a client (RFC 9440), which the gateway sets itself. */
export const CLIENT_CERT_FIELDS = ["Client-Cert", "Client-Cert-Chain"] as const;

/** Default timeouts of a route. */
export const ROUTE_TIMEOUTS_DEFAULT: Readonly<RouteTimeouts> = {
  connectMs: 5_000,
  responseHeadMs: 60_000,
  idleMs: 300_000,
  totalMs: 0,
};

/** Creates the key of a route; hosts are case-insensitive, prefixes and methods, which are sorted, are not. */
export function makeRouteKey(
  host: string | undefined,
  prefix: string,
  methods: readonly string[] = [],
  variant?: string,
): RouteKey {
  const suffix = methods.length === 0 ? "" : ` ${methods.join()}`;
  // No prefix and no method has a `#`.
  const end = variant === undefined ? "" : ` #${variant}`;
  return `${(host ?? "").toLowerCase()} ${prefix}${suffix}${end}` as RouteKey;
}

/** The `route` label of a route in metrics, logs and spans: its prefix, preceded by its host if it has one. */
export function makeRouteLabel(host: string | undefined, prefix: string): string {
  return host === undefined ? prefix : `${host.toLowerCase()}${prefix}`;
}

/**
 * Identifies an upstream by the origin of its URL and its TLS material: targets with equal keys share counts, health and
 * pool, whatever their paths and weights. Throws on an invalid URL.
 */
export function makeTargetKey(url: string, tls: UpstreamTlsSpec | undefined): string {
  const origin = new URL(url).origin;
  if (tls === undefined) return origin;
  return JSON.stringify([origin, tls.certPem ?? "", tls.keyPem ?? "", tls.caPem ?? ""]);
}
