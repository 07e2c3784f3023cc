// The schema of one route.
import {
  type BoundFields,
  boundFields,
  type CacheFields,
  cacheFields,
  checkCacheFields,
  checkLimitFields,
} from "@platform/kernel/route-rules";
import { z } from "zod";
import { type LlmRoutingFields, llmRoutingFields } from "./llm-routing.ts";
import { methodsField } from "./route-methods.ts";
import { checkAiFields, type RouteAiFields, routeAiFields } from "./route-ai.ts";
import { checkPaths, checkVariant, pathsField } from "./route-paths.ts";
import {
  checkClientCertificates,
  type RouteGuardFields,
  routeGuardFields,
} from "./route-guards.ts";
import {
  type RouteResilienceFields,
  checkResilienceFields,
  routeResilienceFields,
} from "./route-resilience.ts";
import { type RouteLimitFields, routeLimitFields } from "./route-limits.ts";
import {
  type RouteMiddlewareFields,
  checkMiddlewareFields,
  routeMiddlewareFields,
} from "./route-middleware.ts";
import { type UpstreamAuthFields, upstreamAuthFields } from "./upstream-auth.ts";
import { checkHidden, type RouteTrafficFields, routeTrafficFields } from "./route-traffic.ts";
import {
  filePath,
  hostName,
  pathPrefix,
  targetUrl,
  text,
  unset,
  upstreamUrl,
  wholeNumber,
  yesNo,
} from "./value.ts";

/** Keys of which a route has exactly one. */
const ORIGINS_OF_RESPONSES = [
  "target",
  "targets",
  "targets_weighted",
  "redirect",
  "respond",
  "files",
] as const;
/** Keys of which a route has at most one; strip_prefix may be together with raw_path. */
const PATH_CHANGES = ["raw_path", "strip_prefix", "replace_prefix", "rewrite"] as const;
const TARGETS_MAX = 256;
const WEIGHT_MAX = 1_000_000;

const LOAD_BALANCERS = ["round_robin", "least_conn", "random", "ip_hash"] as const;

const weightedTargetSchema = z.strictObject({
  url: upstreamUrl().meta({ description: "upstream" }),
  weight: wholeNumber(0, WEIGHT_MAX).meta({
    description: "share relative to the sum of all weights",
  }),
});

const routeFields = {
  prefix: pathPrefix().meta({
    description:
      "path prefix, matched by whole segments; with a trailing `/` it matches only paths below it; identifies the route together with `host` and `methods`",
  }),
  host: unset(hostName()).meta({ description: "limits the route to requests for this host" }),
  methods: methodsField(),
  paths: pathsField(),
  variant: unset(text(2_200)).meta({
    description:
      "name that tells routes with the same prefix, host and methods apart: each has `methods` and one of `paths`, and of those that a request matches the one with the most specific path decides (fixed segments before parameters before the rest, from left to right)",
  }),
  registered_by: unset(text(256)).meta({
    description: "service whose registration created the route; a new one replaces it",
  }),
  cache_version: unset(text(64)).meta({
    description: "keeps stored responses of the route apart from those with another value",
  }),
  declared_at: unset(text(1_024)).meta({
    description:
      "`file:line:column` in the project that has registered the route, where it is changed",
  }),
  target: unset(targetUrl()).meta({
    description:
      "a single upstream, or `service://NAME[/path][?scheme=https]`: the addresses that `discovery` has for a name",
  }),
  targets: unset(
    z
      .array(targetUrl())
      .max(TARGETS_MAX)
      .refine((urls) => new Set(urls).size === urls.length, {
        error: "expected distinct URLs; use targets_weighted for different shares",
        params: { code: "not_distinct" },
      }),
  ).meta({ description: "several upstreams with equal shares" }),
  load_balancer: unset(z.preprocess(spellLoadBalancer, z.enum(LOAD_BALANCERS))).meta({
    description: "strategy; default: round_robin; `roundrobin` and `round-robin` are accepted",
  }),
  targets_weighted: unset(
    z
      .array(weightedTargetSchema)
      .max(TARGETS_MAX)
      .refine((entries) => new Set(entries.map((entry) => entry.url)).size === entries.length, {
        error: "expected distinct URLs",
        params: { code: "not_distinct" },
      })
      .refine((entries) => entries.some((entry) => entry.weight > 0), {
        error: "expected weights with a sum above 0",
        params: { code: "no_weight" },
      }),
  ).meta({ description: "several upstreams with individual shares" }),
  strip_prefix: yesNo().meta({ description: "forward the path without the prefix" }),
  host_header: unset(z.enum(["client", "target"])).meta({
    description: "Host of the upstream request: that of the client (default) or of the target",
  }),
  raw_path: yesNo().meta({
    description:
      "forward the path as sent instead of normalized, with `%2F` and `%5C`; it must literally start with the prefix, which strip_prefix removes",
  }),
  ...boundFields,
  access_log: yesNo().meta({ description: "write a JSONL line for each request of the route" }),
  ...routeGuardFields,
  ...routeTrafficFields,
  client_cert_path: unset(filePath()).meta({
    description: "client certificate for the upstream (PEM)",
  }),
  client_key_path: unset(filePath()).meta({
    description: "private key of the client certificate (PEM)",
  }),
  root_ca_path: unset(filePath()).meta({
    description: "certificate authorities that verify the upstream (PEM)",
  }),
  ...routeLimitFields,
  ...routeResilienceFields,
  ...cacheFields,
  confined: yesNo().meta({
    description:
      "limits the files, variables and addresses that the route may name (`files_roots`, `secret_variables`, `private_networks`); always set for routes of users with `gate:admin`",
  }),
  ...routeMiddlewareFields,
  ...routeAiFields,
  ...upstreamAuthFields,
  ...llmRoutingFields,
};

/** One route in the configuration file, the API and the overlay, with the field names of the specification. */
export const routeSchema = z
  .strictObject({
    ...routeFields,
    status: z.unknown().optional().meta({
      description: "read-only status of the route; ignored on write",
    }),
  })
  .superRefine((route, context) => {
    const given = ORIGINS_OF_RESPONSES.filter((key) => route[key] !== undefined);
    if (given.length === 0 && route.llm_routing === undefined) {
      context.addIssue({
        code: "custom",
        path: ["target"],
        message: `set exactly one of ${ORIGINS_OF_RESPONSES.join(", ")}, or llm_routing`,
        params: { code: "one_of_members", names: ORIGINS_OF_RESPONSES.join(", ") },
      });
    }
    for (const key of given.slice(1)) {
      context.addIssue({
        code: "custom",
        path: [key],
        message: `is not allowed with ${given[0]}; set exactly one of ${ORIGINS_OF_RESPONSES.join(", ")}`,
      });
    }
    if (isRecorded(route.record) && given[0]?.startsWith("target") === false) {
      context.addIssue({
        code: "custom",
        path: ["record"],
        message: `is not allowed with ${given[0]}, which is no upstream`,
      });
    }
    const paths = PATH_CHANGES.filter((key) => route[key] !== undefined && route[key] !== false);
    const isRawStripped = paths.join() === "raw_path,strip_prefix";
    for (const key of isRawStripped ? [] : paths.slice(1)) {
      context.addIssue({
        code: "custom",
        path: [key],
        message: `is not allowed with ${paths[0]}`,
        params: { code: "not_together", other: paths[0] },
      });
    }
    const [pathChange] = paths;
    if (route.files !== undefined && pathChange !== undefined) {
      context.addIssue({
        code: "custom",
        path: [pathChange],
        message: "is not allowed with files",
      });
    }
    if ((route.client_cert_path === undefined) !== (route.client_key_path === undefined)) {
      context.addIssue({
        code: "custom",
        path: [route.client_cert_path === undefined ? "client_cert_path" : "client_key_path"],
        message: "client_cert_path and client_key_path must be set together",
        params: { code: "only_together", names: "client_cert_path, client_key_path" },
      });
    }
    checkClientCertificates(route, context);
    checkPaths(route, context);
    checkVariant(route, context);
    checkHidden(route as RouteTrafficFields, context);
    checkLimitFields(route as RouteLimitFields, context);
    checkResilienceFields(route as RouteResilienceFields, context);
    checkMiddlewareFields(route as RouteMiddlewareFields, context);
    checkAiFields(route as RouteAiFields, given[0], context);
    checkCacheFields(route as CacheFields, given[0], context);
  })
  .transform(dropAbsent);

/** A validated route without absent keys and without `status`. */
export interface RouteConfig
  extends
    BoundFields,
    RouteResilienceFields,
    RouteGuardFields,
    RouteLimitFields,
    RouteTrafficFields,
    RouteMiddlewareFields,
    RouteAiFields,
    UpstreamAuthFields,
    LlmRoutingFields,
    CacheFields {
  readonly prefix: string;
  readonly host?: string;
  readonly methods?: readonly string[];
  readonly paths?: readonly string[];
  readonly variant?: string;
  readonly registered_by?: string;
  readonly cache_version?: string;
  readonly declared_at?: string;
  readonly target?: string;
  readonly targets?: readonly string[];
  readonly load_balancer?: (typeof LOAD_BALANCERS)[number];
  readonly targets_weighted?: readonly { readonly url: string; readonly weight: number }[];
  readonly strip_prefix?: boolean;
  readonly host_header?: "client" | "target";
  readonly raw_path?: boolean;
  readonly access_log?: boolean;
  readonly client_cert_path?: string;
  readonly client_key_path?: string;
  readonly root_ca_path?: string;
  readonly confined?: boolean;
}

/** A route as the API shows it. */
export const routeAnswer = z.object(routeFields).meta({ id: "Route" }) as unknown as z.ZodType<
  RouteConfig,
  RouteConfig
>;

/** Declares a route as the API shows it, with further members. */
export function extendRouteAnswer<Shape extends z.ZodRawShape>(more: Shape, id: string) {
  type Route = RouteConfig & z.output<z.ZodObject<Shape>>;
  return z.object({ ...routeFields, ...more }).meta({ id }) as unknown as z.ZodType<Route, Route>;
}

function isRecorded(record: RouteTrafficFields["record"]): boolean {
  return record !== undefined && record !== false;
}

function spellLoadBalancer(value: unknown): unknown {
  return value === "roundrobin" || value === "round-robin" ? "round_robin" : value;
}

/** Keys whose default is not false. */
const MEANINGFUL_FALSE: ReadonlySet<string> = new Set(["circuit_breaker", "semantic_rate_limit"]);

/** Other spellings of keys, of which the short one is shown. */
const SPELLINGS: Readonly<Record<string, string>> = {
  enable_prompt_guard: "prompt_guard",
  enable_semantic_cache: "semantic_cache",
};

/** Drops absent keys, so that two spellings of the same route are equal. */
function dropAbsent(route: Record<string, unknown>): RouteConfig {
  const kept: Record<string, unknown> = {};
  for (const [key, value] of Object.entries(route)) {
    const isDefault = value === false && !MEANINGFUL_FALSE.has(key);
    if (key === "status" || value === undefined || isDefault) continue;
    kept[SPELLINGS[key] ?? key] = isPlainObject(value) ? dropAbsentKeys(value) : value;
  }
  return kept as unknown as RouteConfig;
}

function dropAbsentKeys(value: Record<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(value).filter(([, inner]) => inner !== undefined));
}

function isPlainObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
