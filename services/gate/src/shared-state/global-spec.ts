// What a worker needs to know beyond its routes: plain data, already validated, files already read.

import type { OperatorTokenSpec } from "./operator-token.ts";

/** Who may call one of the gateway's own paths. */
export type InternalRouteAccess =
  /** `/healthz` or `/readyz`: answered in place, open, exempt from the connection bound. */
  | "probe"
  /** Proxied to the control plane without a check. */
  | "public"
  /** Proxied to the control plane for the operator or an administrator only. */
  | "admin";

/** One of the gateway's own paths; they win over every route. */
export interface InternalRoute {
  /** Normalised path that starts with `/`. */
  path: string;
  /** `exact`: this path alone. `below`: `path`, which ends in `/`, and everything under it. */
  match: "exact" | "below";
  access: InternalRouteAccess;
  /** Stands for its `route` label in worker metrics, as `RouteSpec.metricsId`; absent: counted as no route. */
  metricsId?: number;
}

/** How user tokens are checked where a route has no `auth` of its own. */
export interface JwtSpec {
  /** HS256 key. */
  secret?: string;
  /** Key set for RS256 and ES256; needs `issuer` and `audience`. */
  jwksUrl?: string;
  issuer?: string;
  audience?: string;
  /** Clock difference that is forgiven, in seconds. */
  leewaySeconds: number;
}

/** A certificate of the gateway and the names it is for. */
export interface TlsContextSpec {
  /** Lower-case DNS names, `*.` wildcards allowed; the first context also serves unknown names. */
  names: string[];
  certPem: string;
  keyPem: string;
}

/** The bounds of one worker, or of all together where the name says `total`. */
export interface LimitsSpec {
  /** Client connections that one worker holds; more are shed with 503, probes excepted. */
  connectionsMax: number;
  /** Connections beyond these that are accepted for 503 answers and probes. */
  shedConnectionsMax: number;
  /** Upstream connections of one worker beyond which idle ones are closed: file descriptors are few. */
  upstreamsMax: number;
  /** Client connections of one address that one worker holds; default half of `connectionsMax`. */
  connectionsPerAddressMax?: number;
  /** Bytes of answers that may wait in one worker for clients to read them. */
  unsentBytesMax: number;
  /** How long a client may read nothing of its answer. */
  clientIdleMs: number;
  /** Bytes of a request body that a client must send in each window; 0: no bound. */
  bodyPaceBytes: number;
  bodyPaceWindowMs: number;
  /** Bytes of an answer that a client must read in each window in which bytes wait for it; 0: no bound. */
  answerPaceBytes: number;
  answerPaceWindowMs: number;
  /** Bytes of a request or response head. */
  headBytesMax: number;
  /** Fields in one head. */
  headersMax: number;
  /** From the first byte of a request to the end of its head. */
  headTimeoutMs: number;
  /** Longest silence between two requests of a connection. */
  keepAliveMs: number;
  /** Open connections of one worker to one upstream. */
  upstreamConnectionsMax: number;
  /** Unused connections of one worker to one upstream that are kept. */
  upstreamIdleMax: number;
  /** How long an unused upstream connection is kept. */
  upstreamIdleMs: number;
  /** How long the streams of a removed route may go on. */
  routeDrainMs: number;
  /** How long event streams and WebSockets may go on once the worker drains. */
  streamDrainMs: number;
}

/** The access log that all workers append to. */
export interface AccessLogSpec {
  path: string;
  /** Bytes after which the file is rotated. */
  fileBytesMax: number;
  /** Rotated files that are kept beside the current one. */
  filesMax: number;
}

/** Everything that is not a route. A change replaces the whole record. */
export interface GlobalSpec {
  serviceVersion: string;
  /** Absent: there is no static token. */
  operatorToken?: OperatorTokenSpec;
  jwt?: JwtSpec;
  /** Addresses and CIDR ranges whose forwarding headers are believed. */
  trustedProxies: string[];
  internalRoutes: InternalRoute[];
  /** Where the control plane listens, and what proves that a request went through the guard. */
  control: { socketPath: string; secret: string };
  /** At least one context where the listener speaks TLS; swapped without dropping connections. */
  tls?: TlsContextSpec[];
  limits: LimitsSpec;
  accessLog?: AccessLogSpec;
  /** OTLP/HTTP base URL; absent: no spans are exported. */
  otlpEndpoint?: string;
}

/** Carries `control.secret` to the control plane; a client's copy is removed. */
export const CONTROL_SECRET_HEADER = "x-platform-gate-secret";

/** Tells the control plane who called: `operator`, `local`, or `user <sub>`; a client's copy is removed. */
export const CONTROL_CALLER_HEADER = "x-platform-gate-caller";

/** The bounds of a gateway that sets none. */
export const LIMITS_DEFAULT: Readonly<LimitsSpec> = {
  connectionsMax: 20_000,
  shedConnectionsMax: 512,
  upstreamsMax: Infinity,
  unsentBytesMax: 268_435_456,
  clientIdleMs: 300_000,
  bodyPaceBytes: 7_680,
  bodyPaceWindowMs: 30_000,
  answerPaceBytes: 15_360,
  answerPaceWindowMs: 60_000,
  headBytesMax: 32_768,
  headersMax: 128,
  headTimeoutMs: 30_000,
  keepAliveMs: 75_000,
  upstreamConnectionsMax: 1_024,
  upstreamIdleMax: 256,
  upstreamIdleMs: 55_000,
  routeDrainMs: 30_000,
  streamDrainMs: 5_000,
};
