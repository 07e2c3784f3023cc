// What a worker needs to know about one route: plain data, already validated, files already read.

/** Identifies a route: the pair of (host or none, prefix). Made by {@link makeRouteKey} only. */
export type RouteKey = string & { readonly __brand: "RouteKey" };

/** How a route picks among its targets. */
export type BalancerKind = "round_robin" | "least_conn" | "random" | "ip_hash";

/** One upstream of a route. */
export interface TargetSpec {
  /** `http://` or `https://` origin with an optional path, which is prepended to the forwarded path. */
  url: string;
  /** Relative, a non-negative integer; 0 takes no traffic. All 1 where the route gives none. */
  weight: number;
  /** Cell in {@link import("./target-state.ts").SharedTargetState}; equal for equal {@link makeTargetKey}. */
  slot: number;
}

/** Material for TLS to the upstreams of a route, as PEM text. */
export interface UpstreamTlsSpec {
  /** Client certificate chain and its key for mutual TLS; both or neither. */
  certPem?: string;
  keyPem?: string;
  /** The only roots accepted for the upstream's certificate; the system's where absent. */
  caPem?: string;
}

/** Who may use a proxied route. `inherit`: the global token and JWT settings apply. */
export type RouteAuthSpec =
  | { type: "inherit" }
  | { type: "none" }
  | {
      type: "bearer";
      jwksUrl: string;
      /** A scope that the token must carry; 403 without. */
      requiredScope?: string;
      issuer?: string;
      audience?: string;
    };

/** Time bounds of one exchange in milliseconds; 0 means no bound of that kind. */
export interface RouteTimeouts {
  /** TCP and TLS handshake of a new upstream connection. */
  connectMs: number;
  /** From the request's last byte to the response's head. */
  responseHeadMs: number;
  /** Longest pause between two pieces of a response's body. */
  idleMs: number;
  /** The whole exchange from its head to its end, retries and streams included; WebSockets are not cut by it. */
  totalMs: number;
}

/** One route. `0`, `""` and `[]` of the configuration are already resolved to defaults. */
export interface RouteSpec {
  key: RouteKey;
  /** Starts with `/`, normalised. With a trailing `/` it matches below itself only. */
  prefix: string;
  /** Lower case, without a port; absent: any host. */
  host?: string;
  /** Cell in {@link import("./route-state.ts").SharedRouteState}. */
  slot: number;
  /** Stands for the `route` label in worker metrics; see {@link import("./metric-block.ts").MetricBlock}. Above 0. */
  metricsId: number;
  /** At least one; the sum of weights is above 0. */
  targets: TargetSpec[];
  balancer: BalancerKind;
  /** Removes the prefix from the forwarded path. */
  stripPrefix: boolean;
  /** `client` forwards the client's Host, `target` sends the target's authority. */
  hostHeader: "client" | "target";
  /** Forwards the path as it was sent instead of normalised. */
  rawPath: boolean;
  /** Largest request body in bytes; {@link BODY_BYTES_MAX_DEFAULT} where the route gives none. */
  bodyBytesMax: number;
  timeouts: RouteTimeouts;
  /** Write a JSONL line for each request. */
  accessLog: boolean;
  auth: RouteAuthSpec;
  /** Further request fields that a client may not set for the upstream; see {@link CUT_FIELDS_DEFAULT}. */
  cutFields: readonly string[];
  upstreamTls?: UpstreamTlsSpec;
}

/** 10 MiB, the specification's default of `max_body_size`. */
export const BODY_BYTES_MAX_DEFAULT = 10_485_760;

/** Fields in which proxies and servers pass on who the user is: an upstream may believe them. */
export const CUT_FIELDS_DEFAULT: readonly string[] = [
  "X-User",
  "X-Forwarded-User",
  "Remote-User",
  "X-SSL-Client-Cert",
];

/** The time bounds of a route that sets none. */
export const ROUTE_TIMEOUTS_DEFAULT: Readonly<RouteTimeouts> = {
  connectMs: 5_000,
  responseHeadMs: 60_000,
  idleMs: 300_000,
  totalMs: 0,
};

/** The key of a route; hosts compare case-insensitively, prefixes do not. */
export function makeRouteKey(host: string | undefined, prefix: string): RouteKey {
  return `${(host ?? "").toLowerCase()} ${prefix}` as RouteKey;
}

/** The `route` label of a route in metrics, logs and spans: its prefix, after its host where it has one. */
export function makeRouteLabel(host: string | undefined, prefix: string): string {
  return host === undefined ? prefix : `${host.toLowerCase()}${prefix}`;
}

/**
 * What makes two targets the same upstream, so that routes share its counts, health and pool:
 * the URL's origin and the TLS material. Paths and weights do not matter. Throws on a bad URL.
 */
export function makeTargetKey(url: string, tls: UpstreamTlsSpec | undefined): string {
  const origin = new URL(url).origin;
  if (tls === undefined) return origin;
  return JSON.stringify([origin, tls.certPem ?? "", tls.keyPem ?? "", tls.caPem ?? ""]);
}
