// Resolves the settings of AI routes, and the prices of models.
import { readFileSync } from "node:fs";
import { ConfigError, JsonSyntaxError, parseJson, validateJson } from "@platform/kernel/config";
import { modelPricesSchema } from "../config/ai-keys.ts";
import type { RouteConfig } from "../config/route.ts";
import { findAiField } from "../config/route-ai.ts";
import {
  type AiSpec,
  type AnswerCacheSpec,
  type GuardSpec,
  type HeaderRules,
  type ModelPrices,
  PII_KINDS,
  type PiiSpec,
  type RoutingSpec,
} from "../shared-state/index.ts";
import { describeCause } from "./route-fault.ts";

const GUARD_THRESHOLD = 0.8;
const CACHE_TTL_SECONDS = 3_600;
/** The specification's similarity. */
const CACHE_THRESHOLD = 0.85;
const FALLBACK_STATUSES = [429, 500, 502, 503, 504, 529];
const ACCEPT_ENCODING = "Accept-Encoding";

/** Parts of a route's settings that are known before those of AI routes. */
export interface AiPlace {
  readonly streamMsMax: number;
  /** Index of the target of the primary model; that of the fallback follows. */
  readonly firstModel: number;
}

/** Settings of an AI route; undefined for other routes. */
export function resolveAi(
  config: RouteConfig,
  { streamMsMax, firstModel }: AiPlace,
): AiSpec | undefined {
  if (findAiField(config) === undefined) return undefined;
  const { record } = config;
  const recordsPrompts = typeof record === "object" && record.prompts === true;
  const limit = config.semantic_token_limit_per_min;
  return {
    streamMsMax,
    recordsPrompts,
    passesUnknown: config.ai_unknown === "pass",
    ...(config.llm_routing === undefined
      ? {}
      : { routing: resolveRouting(config.llm_routing, firstModel) }),
    ...(config.semantic_cache === true ? { cache: resolveCache(config) } : {}),
    ...(config.prompt_guard === true ? { guard: resolveGuard(config) } : {}),
    ...(config.pii_redact === true ? { pii: resolvePii(config) } : {}),
    ...(limit === undefined || config.semantic_rate_limit === false
      ? {}
      : { tokensPerMinute: limit }),
  };
}

function resolveRouting(
  routing: NonNullable<RouteConfig["llm_routing"]>,
  firstModel: number,
): RoutingSpec {
  const { primary, fallback, confidence_header: field, min_confidence: min } = routing;
  return {
    primary: { target: firstModel, model: primary.model },
    fallback: { target: firstModel + 1, model: fallback.model },
    ...(field === undefined || min === undefined ? {} : { confidence: { field, min } }),
    statuses: routing.on_status ?? FALLBACK_STATUSES,
  };
}

function resolveCache({
  semantic_cache_ttl_s: ttl = CACHE_TTL_SECONDS,
  semantic_cache_threshold: threshold = CACHE_THRESHOLD,
}: RouteConfig): AnswerCacheSpec {
  return { ttlMs: ttl * 1_000, threshold };
}

function resolveGuard(config: RouteConfig): GuardSpec {
  const { prompt_guard_url: url } = config;
  return {
    threshold: config.prompt_guard_threshold ?? GUARD_THRESHOLD,
    blocks: config.prompt_guard_action !== "report",
    roles: config.prompt_guard_roles ?? ["user", "tool"],
    allow: config.prompt_guard_allow ?? [],
    ...(url === undefined ? {} : { url }),
    isOpenOnError: config.prompt_guard_on_error === "open",
  };
}

function resolvePii({
  pii_mode: mode,
  pii_entities: kinds,
  pii_patterns: patterns,
}: RouteConfig): PiiSpec {
  return {
    isReversible: mode === "reversible",
    kinds: kinds ?? PII_KINDS,
    patterns: Object.entries(patterns ?? {}),
  };
}

/** The rules of an AI route's fields: answers must not be coded, because their tokens are counted. */
export function withIdentityCoding(rules: HeaderRules | undefined): HeaderRules {
  const isOther = ([name]: readonly [string, string]): boolean =>
    name.toLowerCase() !== ACCEPT_ENCODING.toLowerCase();
  return {
    removeRequest: [...(rules?.removeRequest ?? []), ACCEPT_ENCODING],
    addRequest: [...(rules?.addRequest ?? []).filter(isOther), [ACCEPT_ENCODING, "identity"]],
    removeResponse: rules?.removeResponse ?? [],
    addResponse: rules?.addResponse ?? [],
  };
}

/** The prices of models, from their file if the key names one. Throws ConfigError. */
export function readPrices(prices: string | ModelPrices | undefined): ModelPrices | undefined {
  if (typeof prices !== "string") return prices;
  const refuse = (message: string): ConfigError =>
    new ConfigError([{ source: prices, path: "ai_prices", message }]);
  let text: string;
  try {
    text = readFileSync(prices, "utf8");
  } catch (cause) {
    throw refuse(`cannot be read: ${describeCause(cause)}`);
  }
  try {
    const result = validateJson(modelPricesSchema, parseJson(text), { name: prices });
    if (result.ok) return result.value;
    throw new ConfigError(
      result.problems.map((problem) => ({ ...problem, path: `ai_prices: ${problem.path}` })),
    );
  } catch (error) {
    if (!(error instanceof JsonSyntaxError)) throw error;
    const { line, column } = error.position;
    throw refuse(`line ${line}, column ${column}: ${error.message}`);
  }
}
