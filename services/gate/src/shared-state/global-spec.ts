// Settings of a worker other than its routes: plain, validated data; files are already read.
import type { TokenProfile } from "@platform/kernel/identity";
import type { ModelPrices } from "./ai-spec.ts";
import type { GuestLimits } from "./guest-spec.ts";
import type { OperatorTokenSpec } from "./operator-token.ts";
import type { TlsSpec } from "./tls-spec.ts";

/** Access control of an internal route. */
export type InternalRouteAccess =
  /** `/healthz` or `/readyz`: answered by the worker, open, exempt from `connectionsMax`. */
  | "probe"
  /** Proxied to the control plane without authorization. */
  | "public"
  /** As `public` for programs on this machine, as `admin` for others. */
  | "local"
  /** As `public` for holders of the metrics token; as `local` without `auth_token`, as `admin` with it. */
  | "metrics"
  /** As `local` without `auth_token`, as `admin` with it: it describes the routes. */
  | "document"
  /** Proxied to the control plane for the operator and administrators only. */
  | "admin"
  /** Proxied to the console, which knows its own sessions, on the hosts of `GlobalSpec.console`; elsewhere no internal route. */
  | "console";

/** A route that the gateway serves itself; internal routes take precedence over all others. */
export interface InternalRoute {
  /** Normalized path that starts with `/`. */
  path: string;
  /** `exact`: only this path. `below`: `path`, which ends in `/`, and all paths below it. */
  match: "exact" | "below";
  access: InternalRouteAccess;
}

/** Verification of tokens. */
export interface JwtSpec {
  /** HS256 key. */
  secret?: string;
  /** Keys that `secret` has replaced a short time ago. */
  formerSecrets?: readonly string[];
  /** Key set of tokens with public keys; what it requires depends on `profile`. */
  jwksUrl?: string;
  /** Default: access tokens. */
  profile?: TokenProfile;
  issuer?: string;
  audience?: string;
  /** Accepted clock skew in seconds. */
  leewaySeconds: number;
  /** The only networks that `jwksUrl` may be in, beside public addresses; absent: anywhere. */
  networks?: readonly string[];
}

/** Limits of one worker. */
export interface LimitsSpec {
  /** Maximum client connections; requests on further ones get 503, except for probes. */
  connectionsMax: number;
  /** Additional connections that are accepted for 503 responses and probes. */
  shedConnectionsMax: number;
  /** Upstream connections above which idle ones are closed to save file descriptors. */
  upstreamsMax: number;
  /** Maximum client connections from one address; default half of `connectionsMax`. */
  connectionsPerAddressMax?: number;
  /** Maximum response bytes buffered for slow clients. */
  unsentBytesMax: number;
  /** Maximum time without reading after which a client is disconnected. */
  clientIdleMs: number;
  /** Request body bytes that a client must send in each window; 0 disables the limit. */
  bodyPaceBytes: number;
  bodyPaceWindowMs: number;
  /** Response bytes that a client must read in each window in which bytes are buffered; 0 disables the limit. */
  answerPaceBytes: number;
  answerPaceWindowMs: number;
  /** Maximum bytes of a request or response head. */
  headBytesMax: number;
  /** Maximum number of fields in one head. */
  headersMax: number;
  /** Timeout from the first byte of a request to the end of its head. */
  headTimeoutMs: number;
  /** Idle timeout between two requests of a connection. */
  keepAliveMs: number;
  /** Maximum open connections to one upstream. */
  upstreamConnectionsMax: number;
  /** Maximum idle connections to one upstream. */
  upstreamIdleMax: number;
  /** Idle timeout of upstream connections. */
  upstreamIdleMs: number;
  /** Drain timeout for the streams of a removed route. */
  routeDrainMs: number;
  /** Drain timeout for event streams and WebSockets when the worker drains. */
  streamDrainMs: number;
}

/** The access log or the recording, shared by all workers. */
export interface AccessLogSpec {
  path: string;
  /** File size in bytes that triggers a rotation. */
  fileBytesMax: number;
  /** Number of rotated files to keep. */
  filesMax: number;
}

/** The console on the gateway's own listener. */
export interface ConsoleSpec {
  /** Socket of the console. */
  socketPath: string;
  /** Names at which browsers open it: lower case, without ports, IPv6 in brackets. */
  hosts: string[];
  /** True if the hosts are the console's: of all routes only those that name one of them are served there. */
  ownsHosts: boolean;
}

/** All settings that do not belong to a route. A change replaces the whole object. */
export interface GlobalSpec {
  serviceVersion: string;
  /** Absent without a static token. */
  operatorTokens?: readonly OperatorTokenSpec[];
  /** Absent without a metrics token. */
  metricsTokens?: readonly OperatorTokenSpec[];
  jwt?: JwtSpec;
  /** Addresses and CIDR ranges whose forwarding headers are trusted. */
  trustedProxies: string[];
  internalRoutes: InternalRoute[];
  /** Socket of the control plane, and the secret that proves that a request passed the guard. */
  control: { socketPath: string; secret: string };
  /** Absent if the listener does not use TLS; replaced without dropping connections. */
  tls?: TlsSpec;
  /** Key authorizations of HTTP-01 challenges by token, for the plain listener (RFC 8555, section 8.3). */
  challengeTokens?: Readonly<Record<string, string>>;
  limits: LimitsSpec;
  guests: GuestLimits;
  /** Prices of models; absent if there are none. */
  aiPrices?: ModelPrices;
  /** Service that turns questions into vectors, which only the control plane asks. */
  embedding?: {
    readonly url: string;
    readonly model: string;
    /** Environment variable with its key. */
    readonly key_env?: string | undefined;
  };
  accessLog?: AccessLogSpec;
  /** The recording; absent if no route records. */
  recording?: AccessLogSpec;
  /** True if `/` without a route is an index page for programs on this machine. */
  hasIndex: boolean;
  /** True if there is a console elsewhere, to which `/ui/` leads for programs on this machine if no route matches it. */
  hasConsole: boolean;
  /** Absent if the console has a listener of its own, or there is none. */
  console?: ConsoleSpec;
  /** Status of requests without a route. */
  noRouteStatus: 404 | 502;
  /** Redis server that counts rate-limited requests for all gateways. */
  limitsRedisUrl?: string;
  /** OTLP/HTTP base URL; absent if spans are not exported. */
  otlpEndpoint?: string;
}

/** Carries `control.secret` to the control plane; removed from client requests. */
export const CONTROL_SECRET_HEADER = "x-platform-gate-secret";

/**
 * Carries the caller to the control plane: `operator`, `local`, `user <sub>`, or `reader <sub>`, who may only read; removed
 * from client requests.
 */
export const CONTROL_CALLER_HEADER = "x-platform-gate-caller";

/** Carries the client's address to the console; removed from client requests. */
export const CONSOLE_CLIENT_HEADER = "x-platform-gate-client";

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
