// Converts the configuration without its routes to the workers' settings; with the certificate of the listener.
import { dirname, join } from "node:path";
import type { LiveSecret } from "@platform/kernel/secrets";
import { readAuthorities } from "../config/authorities.ts";
import { GATE_VERSION, type GateConfig } from "../config/document.ts";
import {
  type ConsoleSpec,
  type GlobalSpec,
  type GuestLimits,
  type InternalRoute,
  type JwtSpec,
  type TlsSpec,
  describeTokens,
} from "../shared-state/index.ts";
import type { PendingChallenges } from "../acme/challenge-board.ts";
import { readPrices } from "../resolve/resolve-ai.ts";
import { Confinement } from "../resolve/confinement.ts";
import type { FindService } from "../source/discovery.ts";
import type { ListenerCertificate } from "./listener-certificate.ts";
import type { RouteDefaults } from "../resolve/resolve-route.ts";
import { planConnections, type DescriptorShare } from "../worker/descriptors.ts";

const AUTH_TOKEN = "PLATFORM_GATE_AUTH_TOKEN";
const METRICS_TOKEN = "PLATFORM_METRICS_TOKEN";

/** Global settings that do not come from the configuration. */
export interface GlobalsContext {
  control: { socketPath: string; secret: string };
  /** The console of the start, which a reload does not change. */
  hasConsole: boolean;
  console: ConsoleSpec | undefined;
  internalRoutes: InternalRoute[];
  /** Path of the configuration file, even where it does not exist. */
  configPath: string;
  descriptors: DescriptorShare;
  certificate: Pick<ListenerCertificate, "read">;
  /** Keys of HS256 tokens of the secret service, the present one first. */
  listJwtSecrets?: (() => readonly string[]) | undefined;
  /** Challenges of automatic certificates that are pending; undefined without such certificates. */
  challenges?: (() => PendingChallenges) | undefined;
  /** Follows the replacements of a token of the configuration, by its name in `credentials.env`. */
  followToken: (name: string, value: string) => LiveSecret;
}

/** The logs that routes write. */
export interface UsedLogs {
  access: boolean;
  recording: boolean;
}

/** From the level -1 of guests on. */
const LOG_LEVELS: readonly string[] = ["debug", "info", "warn", "error"];

/** Builds the global settings. Throws ConfigError if the certificate or the file of prices is not usable. */
export function buildGlobals(
  config: GateConfig,
  context: GlobalsContext,
  logs: UsedLogs,
): GlobalSpec {
  const jwt = buildJwt(config, context.listJwtSecrets?.() ?? []);
  const tls = addClientCertificates(context.certificate.read(config), config);
  const challenges = context.challenges?.();
  const aiPrices = readPrices(config.ai_prices);
  return {
    serviceVersion: GATE_VERSION,
    ...buildTokens(config, context),
    ...(jwt === undefined ? {} : { jwt }),
    hasIndex: config.index_file !== undefined,
    hasConsole: context.hasConsole,
    ...(context.console === undefined ? {} : { console: context.console }),
    noRouteStatus: config.no_route_status,
    trustedProxies: config.trusted_proxies,
    internalRoutes: context.internalRoutes,
    control: { socketPath: context.control.socketPath, secret: context.control.secret },
    ...describeTls(tls, challenges, config.auto_tls_ask_url !== undefined),
    limits: {
      ...planConnections(config.max_connections, context.descriptors),
      ...(config.max_connections_per_address === undefined
        ? {}
        : { connectionsPerAddressMax: config.max_connections_per_address }),
      unsentBytesMax: config.max_unsent_size,
      clientIdleMs: config.idle_timeout_ms,
      bodyPaceBytes: config.body_pace_bytes,
      bodyPaceWindowMs: config.body_pace_window_ms,
      answerPaceBytes: config.answer_pace_bytes,
      answerPaceWindowMs: config.answer_pace_window_ms,
      headBytesMax: config.max_head_size,
      headersMax: config.max_headers,
      headTimeoutMs: config.head_timeout_ms,
      keepAliveMs: config.keep_alive_timeout_ms,
      upstreamConnectionsMax: config.max_upstream_connections,
      upstreamIdleMax: config.max_idle_upstream_connections,
      upstreamIdleMs: config.upstream_keep_alive_timeout_ms,
      routeDrainMs: config.route_drain_ms,
      streamDrainMs: config.stream_drain_ms,
    },
    guests: describeGuestLimits(config),
    ...(aiPrices === undefined ? {} : { aiPrices }),
    ...(config.embedding === undefined ? {} : { embedding: config.embedding }),
    ...describeLogs(config, context, logs),
    ...(config.limits_redis_url === undefined ? {} : { limitsRedisUrl: config.limits_redis_url }),
    ...(config.otlp_endpoint === undefined ? {} : { otlpEndpoint: config.otlp_endpoint }),
  };
}

/** Throws ConfigError if the authorities are not usable. */
function addClientCertificates(
  tls: TlsSpec | undefined,
  { client_certificates: settings }: GateConfig,
): TlsSpec | undefined {
  if (settings === undefined) return tls;
  const caPem = readAuthorities(settings.ca, "client_certificates.ca");
  return tls && { ...tls, clientCertificates: { mode: settings.mode, caPem } };
}

function describeTls(
  tls: TlsSpec | undefined,
  challenges: PendingChallenges | undefined,
  reportsUnknown: boolean,
): Pick<GlobalSpec, "tls" | "challengeTokens"> {
  if (tls === undefined) return {};
  if (challenges === undefined) return { tls };
  const { certificates, tokens } = challenges;
  return {
    tls: { ...tls, challenges: certificates, reportsUnknown },
    challengeTokens: tokens,
  };
}

function describeGuestLimits(config: GateConfig): GuestLimits {
  return {
    memoryBytes: config.middleware_memory,
    fuelPerCall: config.middleware_fuel,
    logLevel: LOG_LEVELS.indexOf(config.log_level) - 1,
  };
}

function describeLogs(
  config: GateConfig,
  context: GlobalsContext,
  logs: UsedLogs,
): Pick<GlobalSpec, "recording" | "accessLog"> {
  return {
    ...(logs.recording
      ? {
          recording: {
            path: config.record_path ?? join(dirname(context.configPath), "recording.jsonl"),
            fileBytesMax: config.record_max_size,
            filesMax: config.record_files,
          },
        }
      : {}),
    ...(logs.access
      ? {
          accessLog: {
            path: config.access_log_path ?? join(dirname(context.configPath), "access.jsonl"),
            fileBytesMax: config.access_log_max_size,
            filesMax: config.access_log_files,
          },
        }
      : {}),
  };
}

/** Defaults of the configuration for routes. */
export function readRouteDefaults(config: GateConfig, findService?: FindService): RouteDefaults {
  return {
    findService,
    requestsCertificates: config.client_certificates !== undefined,
    confinement: new Confinement({
      roots: config.files_roots ?? [],
      variables: config.secret_variables,
      networks: config.private_networks,
    }),
    bodyBytesMax: config.max_body_size,
    timeouts: {
      connectMs: config.connect_timeout_ms,
      responseHeadMs: config.response_timeout_ms,
      idleMs: config.idle_timeout_ms,
      totalMs: config.total_timeout_ms ?? 0,
    },
    jwksUrl: config.jwks_url,
    issuer: config.jwt_issuer,
    audience: config.jwt_audience,
    isBindingStrict: config.strict_token_binding,
    place: { cluster: config.cluster, region: config.region },
    cutFields: config.identity_fields,
    streamMsMax: config.ai_stream_max_s * 1_000,
  };
}

function buildTokens(
  { auth_token: operator, metrics_token: metrics }: GateConfig,
  { followToken }: Pick<GlobalsContext, "followToken">,
): Pick<GlobalSpec, "operatorTokens" | "metricsTokens"> {
  return {
    ...(operator === undefined
      ? {}
      : { operatorTokens: describeTokens(followToken(AUTH_TOKEN, operator)) }),
    ...(metrics === undefined
      ? {}
      : { metricsTokens: describeTokens(followToken(METRICS_TOKEN, metrics)) }),
  };
}

function buildJwt(config: GateConfig, stored: readonly string[]): JwtSpec | undefined {
  const [secret, ...formerSecrets] = config.jwt_secret === undefined ? stored : [config.jwt_secret];
  if (secret === undefined && config.jwks_url === undefined) return undefined;
  return {
    ...(secret === undefined ? {} : { secret }),
    ...(formerSecrets.length === 0 ? {} : { formerSecrets }),
    ...(config.jwks_url === undefined ? {} : { jwksUrl: config.jwks_url }),
    ...(config.jwt_issuer === undefined ? {} : { issuer: config.jwt_issuer }),
    ...(config.jwt_audience === undefined ? {} : { audience: config.jwt_audience }),
    leewaySeconds: config.jwt_leeway_s,
  };
}
