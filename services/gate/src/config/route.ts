// The schema of one route: every field of the specification, those of this release acted on, the others refused by name.
import { networkSchema } from "@platform/kernel/config";
import * as z from "zod";
import {
  BYTES_MAX,
  DAY_MS,
  filePath,
  hostName,
  later,
  pathPrefix,
  serviceUrl,
  text,
  unset,
  upstreamUrl,
  wholeNumber,
  yesNo,
} from "./value.ts";

const TARGETS_MAX = 256;
const WEIGHT_MAX = 1_000_000;

const LOAD_BALANCERS = ["round_robin", "least_conn", "random", "ip_hash"] as const;

const weightedTargetSchema = z.strictObject({
  url: upstreamUrl().meta({ description: "upstream" }),
  weight: wholeNumber(0, WEIGHT_MAX).meta({
    description: "share relative to the sum of all weights",
  }),
});

const routeAuthSchema = z
  .strictObject({
    type: z
      .enum(["none", "bearer"])
      .meta({ description: "`none` opens the route, `bearer` asks for a JWT of its own issuer" }),
    jwks_url: unset(serviceUrl()).meta({
      description: "key set that the tokens are checked with; the key jwks_url where absent",
    }),
    required_scope: unset(text(256)).meta({ description: "scope that a token must carry" }),
    issuer: unset(text()).meta({
      description: "value that `iss` must have; the key jwt_issuer where absent",
    }),
    audience: unset(text()).meta({
      description: "value that `aud` must hold; the key jwt_audience where absent",
    }),
    leeway_s: later(wholeNumber(1, 600)).meta({
      description: "Not available yet: tolerated difference of the clocks, in seconds",
    }),
  })
  .superRefine((auth, context) => {
    if (auth.type === "none") {
      for (const key of ["jwks_url", "required_scope", "issuer", "audience"] as const) {
        if (auth[key] !== undefined) {
          context.addIssue({
            code: "custom",
            path: [key],
            message: 'expected nothing beside type "none"',
          });
        }
      }
    }
  });

const model = z.strictObject({ url: serviceUrl(), model: text(256) });

const anyText = () => z.string();
const anyNumber = () => z.number();
const anyFlag = () => z.boolean();
const anyObject = () => z.record(z.string(), z.unknown());

/** One route as it stands in the configuration file, in the API and in the overlay (the specification's field names). */
export const routeSchema = z
  .strictObject({
    prefix: pathPrefix().meta({
      description:
        "path prefix on whole segments; ending in `/` it matches below only; identifies the route together with `host`",
    }),
    host: unset(hostName()).meta({ description: "narrows the route to requests for this host" }),
    target: unset(upstreamUrl()).meta({ description: "the one upstream" }),
    targets: unset(
      z
        .array(upstreamUrl())
        .max(TARGETS_MAX)
        .refine((urls) => new Set(urls).size === urls.length, {
          error: "expected no URL twice; use targets_weighted for shares",
        }),
    ).meta({ description: "several upstreams with equal shares" }),
    load_balancer: unset(z.preprocess(spellLoadBalancer, z.enum(LOAD_BALANCERS))).meta({
      description:
        "strategy, round_robin where absent; `roundrobin` and `round-robin` are read as `round_robin`",
    }),
    targets_weighted: unset(
      z
        .array(weightedTargetSchema)
        .max(TARGETS_MAX)
        .refine((entries) => new Set(entries.map((entry) => entry.url)).size === entries.length, {
          error: "expected no URL twice",
        })
        .refine((entries) => entries.some((entry) => entry.weight > 0), {
          error: "expected weights with a sum above 0",
        }),
    ).meta({ description: "several upstreams with shares of their own" }),
    strip_prefix: yesNo().meta({ description: "forward the path without the prefix" }),
    host_header: unset(z.enum(["client", "target"])).meta({
      description: "Host sent upstream: the client's own (where absent) or the target's",
    }),
    raw_path: yesNo().meta({
      description: "forward the path as it was sent instead of normalised",
    }),
    max_body_size: unset(wholeNumber(1, BYTES_MAX)).meta({
      description: "largest request body in bytes; the key max_body_size where absent",
    }),
    connect_timeout_ms: unset(wholeNumber(1, DAY_MS)).meta({
      description: "opening a connection to the upstream, TLS included, in ms",
    }),
    response_timeout_ms: unset(wholeNumber(1, DAY_MS)).meta({
      description: "from the request's last byte to the head of the answer, in ms",
    }),
    idle_timeout_ms: unset(wholeNumber(1, DAY_MS)).meta({
      description: "silence inside a body, a stream or a WebSocket, in ms",
    }),
    total_timeout_ms: unset(wholeNumber(1, DAY_MS)).meta({
      description: "the whole request up to the head of the answer, retries included, in ms",
    }),
    access_log: yesNo().meta({ description: "write a JSONL line for every request of the route" }),
    auth: unset(routeAuthSchema).meta({
      description: "who may call the route, in place of the global token and JWT settings",
    }),
    client_cert_path: unset(filePath()).meta({
      description: "client certificate shown to the upstream (PEM)",
    }),
    client_key_path: unset(filePath()).meta({ description: "key of the client certificate (PEM)" }),
    root_ca_path: unset(filePath()).meta({
      description: "certificate authorities that the upstream is checked with (PEM)",
    }),
    status: z.unknown().optional().meta({
      description: "read-only state of the route; ignored when written",
    }),

    canary_auto_promote: later(anyFlag()).meta({
      description: "Not available yet: automatic promotion",
    }),
    canary_promote_step: later(wholeNumber(1, 100)).meta({
      description: "Not available yet: points per step",
    }),
    canary_promote_sec: later(wholeNumber(1, 86_400)).meta({
      description: "Not available yet: time between steps, in seconds",
    }),
    canary_max_error_rate: later(anyNumber()).meta({
      description: "Not available yet: fraction above which the canary is rolled back",
    }),
    middleware: later(anyText()).meta({ description: "Not available yet: request middleware" }),
    response_middleware: later(anyText()).meta({
      description: "Not available yet: response middleware",
    }),
    wasm_split: later(anyObject()).meta({
      description: "Not available yet: A/B split of middleware",
    }),
    rate_limit_rpm: later(wholeNumber(1, 1_000_000_000)).meta({
      description: "Not available yet: requests per minute and client address",
    }),
    cache_ttl_seconds: later(wholeNumber(1, 31_536_000)).meta({
      description: "Not available yet: time to live in the response cache, in seconds",
    }),
    cache_methods: later(z.array(anyText())).meta({
      description: "Not available yet: cached methods",
    }),
    max_concurrent_requests: later(wholeNumber(1, 1_000_000)).meta({
      description: "Not available yet: requests at once",
    }),
    max_queue_size: later(wholeNumber(1, 1_000_000)).meta({
      description: "Not available yet: waiting requests",
    }),
    queue_timeout_ms: later(wholeNumber(1, DAY_MS)).meta({
      description: "Not available yet: longest wait in the queue, in ms",
    }),
    ip_allowlist: later(z.array(networkSchema())).meta({
      description: "Not available yet: client addresses let in",
    }),
    ip_blocklist: later(z.array(networkSchema())).meta({
      description: "Not available yet: client addresses kept out",
    }),
    require_api_key: later(anyFlag()).meta({
      description: "Not available yet: ask for a tenant's API key",
    }),
    allowed_tenants: later(z.array(anyText())).meta({
      description: "Not available yet: tenants let in",
    }),
    prompt_guard: later(anyFlag()).meta({
      description: "Not available yet: prompt injection guard",
    }),
    enable_prompt_guard: later(anyFlag()).meta({
      description: "Not available yet: other spelling of `prompt_guard`",
    }),
    pii_redact: later(anyFlag()).meta({ description: "Not available yet: mask personal data" }),
    semantic_cache: later(anyFlag()).meta({ description: "Not available yet: cache by meaning" }),
    enable_semantic_cache: later(anyFlag()).meta({
      description: "Not available yet: other spelling of `semantic_cache`",
    }),
    semantic_rate_limit: later(anyFlag()).meta({
      description: "Not available yet: limit by tokens",
    }),
    semantic_token_limit_per_min: later(wholeNumber(1, 1_000_000_000)).meta({
      description: "Not available yet: tokens per minute",
    }),
    llm_routing: later(
      z.strictObject({
        primary: model,
        fallback: model,
        confidence_header: text(256),
        min_confidence: anyNumber(),
      }),
    ).meta({ description: "Not available yet: fall back to another model when confidence is low" }),
    circuit_breaker: later(anyObject()).meta({ description: "Not available yet: breaker numbers" }),
    health_check: later(anyObject()).meta({
      description: "Not available yet: active health checks",
    }),
    openapi: later(z.union([anyText(), anyObject()])).meta({
      description: "Not available yet: document or file that requests are checked with",
    }),
    openapi_allow_unknown: later(anyFlag()).meta({
      description: "Not available yet: let operations through that the document does not name",
    }),
    policy: later(z.union([anyText(), anyObject()])).meta({
      description: "Not available yet: policy lines",
    }),
    record: later(anyFlag()).meta({
      description: "Not available yet: record headers and bodies for replay",
    }),
  })
  .superRefine((route, context) => {
    const given = (["target", "targets", "targets_weighted"] as const).filter(
      (key) => route[key] !== undefined,
    );
    if (given.length === 0) {
      context.addIssue({
        code: "custom",
        path: ["target"],
        message: "give exactly one of target, targets, targets_weighted",
      });
    }
    for (const key of given.slice(1)) {
      context.addIssue({
        code: "custom",
        path: [key],
        message: `it stands beside ${given[0]}; give exactly one of target, targets, targets_weighted`,
      });
    }
    if ((route.client_cert_path === undefined) !== (route.client_key_path === undefined)) {
      context.addIssue({
        code: "custom",
        path: [route.client_cert_path === undefined ? "client_cert_path" : "client_key_path"],
        message: "client_cert_path and client_key_path belong together",
      });
    }
  })
  .transform(dropAbsent);

/** A route that passed the schema: absent keys are left out, `status` is gone. */
export interface RouteConfig {
  readonly prefix: string;
  readonly host?: string;
  readonly target?: string;
  readonly targets?: readonly string[];
  readonly load_balancer?: (typeof LOAD_BALANCERS)[number];
  readonly targets_weighted?: readonly { readonly url: string; readonly weight: number }[];
  readonly strip_prefix?: boolean;
  readonly host_header?: "client" | "target";
  readonly raw_path?: boolean;
  readonly max_body_size?: number;
  readonly connect_timeout_ms?: number;
  readonly response_timeout_ms?: number;
  readonly idle_timeout_ms?: number;
  readonly total_timeout_ms?: number;
  readonly access_log?: boolean;
  readonly auth?: {
    readonly type: "none" | "bearer";
    readonly jwks_url?: string;
    readonly required_scope?: string;
    readonly issuer?: string;
    readonly audience?: string;
    readonly leeway_s?: number;
  };
  readonly client_cert_path?: string;
  readonly client_key_path?: string;
  readonly root_ca_path?: string;
}

function spellLoadBalancer(value: unknown): unknown {
  return value === "roundrobin" || value === "round-robin" ? "round_robin" : value;
}

/** Leaves out absent keys, so that two spellings of the same route compare equal. */
function dropAbsent(route: Record<string, unknown>): RouteConfig {
  const kept: Record<string, unknown> = {};
  for (const [key, value] of Object.entries(route)) {
    if (key === "status" || value === undefined || value === false) continue;
    kept[key] = isPlainObject(value) ? dropAbsentKeys(value) : value;
  }
  return kept as unknown as RouteConfig;
}

function dropAbsentKeys(value: Record<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(value).filter(([, inner]) => inner !== undefined));
}

function isPlainObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
