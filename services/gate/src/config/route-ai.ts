// Fields of AI routes.
import { z } from "zod";
import { RE2JS } from "re2js";
import { PII_KINDS, type PiiKind, TEXT_ROLES, type TextRole } from "../shared-state/index.ts";
import type { LlmRoutingFields } from "./llm-routing.ts";
import { serviceUrl, text, unset, wholeNumber, yesNo } from "./value.ts";

const TOKENS_MAX = 1_000_000_000;
const PATTERNS_MAX = 32;
const PATTERN_CHARACTERS_MAX = 1_024;
const TTL_SECONDS_MAX = 2_592_000;
const PATTERN_NAME = /^[A-Z][A-Z0-9_]{0,30}$/;
const PATTERN_NAME_FAULT = "expected a name of capital letters, digits and _";

const GUARD_SETTINGS = [
  "prompt_guard_threshold",
  "prompt_guard_action",
  "prompt_guard_roles",
  "prompt_guard_allow",
  "prompt_guard_url",
  "prompt_guard_on_error",
] as const;

const rePattern = () =>
  text(PATTERN_CHARACTERS_MAX).superRefine((pattern, context) => {
    try {
      RE2JS.compile(pattern);
    } catch (error) {
      const message = `expected a regular expression of RE2: ${(error as Error).message}`;
      context.addIssue({ code: "custom", message });
    }
  });

/** Fields of {@link RouteAiFields} with their schemas. */
export const routeAiFields = {
  ai: yesNo().meta({
    description:
      "requests to models of OpenAI's and Anthropic's APIs: they are checked strictly, metered and priced (`X-Token-Cost`), and errors have the form of the API",
  }),
  ai_unknown: unset(z.literal("pass")).meta({
    description:
      "`pass` forwards bodies that are no requests to models, also with `pii_redact`; default: 400 `unsupported_ai_request`",
  }),
  prompt_guard: yesNo().meta({
    description:
      "judges requests to models: prompt injections are refused with 400 `prompt_blocked`; `X-Prompt-Risk` has the score",
  }),
  enable_prompt_guard: yesNo().meta({ description: "other spelling of `prompt_guard`" }),
  prompt_guard_threshold: unset(z.number().gt(0).max(1)).meta({
    description: "score from which a request is refused; default: 0.8",
  }),
  prompt_guard_action: unset(z.enum(["block", "report"])).meta({
    description: "`report` forwards such requests and counts them; default: block",
  }),
  prompt_guard_roles: unset(z.array(z.enum(TEXT_ROLES)).max(TEXT_ROLES.length)).meta({
    description: "messages that are judged; default: user and tool",
  }),
  prompt_guard_allow: unset(z.array(rePattern()).max(PATTERNS_MAX)).meta({
    description: "regular expressions (RE2): texts that one of them matches are not judged",
  }),
  prompt_guard_url: unset(serviceUrl()).meta({
    description:
      "service that judges, too: POST `{text}`, response `{score}` from 0 to 1 within 500 ms; the higher score counts",
  }),
  prompt_guard_on_error: unset(z.enum(["block", "open"])).meta({
    description:
      "requests while that service fails: refused (default), or judged by the rules alone",
  }),
  pii_redact: yesNo().meta({
    description:
      "replaces personal data and secrets in requests, and in answers, by placeholders such as `[EMAIL_1]`",
  }),
  pii_mode: unset(z.enum(["mask", "reversible"])).meta({
    description:
      "`reversible`: clients get their own values back where answers have the placeholders; default: mask",
  }),
  pii_entities: unset(z.array(z.enum(PII_KINDS)).max(PII_KINDS.length)).meta({
    description: "kinds that are replaced; default: all",
  }),
  pii_patterns: unset(
    z
      .record(z.string().regex(PATTERN_NAME, { error: PATTERN_NAME_FAULT }), rePattern())
      .refine((patterns) => Object.keys(patterns).length <= PATTERNS_MAX, {
        error: `expected at most ${PATTERNS_MAX} patterns`,
      }),
  ).meta({
    description: "further regular expressions (RE2) by the name in their placeholders",
  }),
  semantic_cache: yesNo().meta({
    description:
      "stores answers of models, and answers the same question of the same tenant, model and parameters from them (`X-Cache`, `X-Cache-Similarity`); with `embedding` questions that are alike, too",
  }),
  enable_semantic_cache: yesNo().meta({ description: "other spelling of `semantic_cache`" }),
  semantic_cache_ttl_s: unset(wholeNumber(1, TTL_SECONDS_MAX)).meta({
    description: "time for which an answer is stored, in s; default: 3600",
  }),
  semantic_cache_threshold: unset(z.number().gt(0).max(1)).meta({
    description:
      "cosine of the vectors of two questions above which they may have the same answer; default: 0.85",
  }),
  semantic_rate_limit: unset(z.boolean()).meta({
    description: "false disables `semantic_token_limit_per_min`; true requires it",
  }),
  semantic_token_limit_per_min: unset(wholeNumber(1, TOKENS_MAX)).meta({
    description:
      "tokens of each tenant, or of each address without one, in any 60 s on this route; reserved before a request goes up (429 `rate_limit_exceeded`), settled by the usage",
  }),
};

/** Validated {@link routeAiFields}. */
export interface RouteAiFields {
  readonly ai?: boolean;
  readonly ai_unknown?: "pass";
  readonly prompt_guard?: boolean;
  /** Read as `prompt_guard`; validated routes do not have it. */
  readonly enable_prompt_guard?: boolean;
  readonly prompt_guard_threshold?: number;
  readonly prompt_guard_action?: "block" | "report";
  readonly prompt_guard_roles?: readonly TextRole[];
  readonly prompt_guard_allow?: readonly string[];
  readonly prompt_guard_url?: string;
  readonly prompt_guard_on_error?: "block" | "open";
  readonly pii_redact?: boolean;
  readonly pii_mode?: "mask" | "reversible";
  readonly pii_entities?: readonly PiiKind[];
  readonly pii_patterns?: Readonly<Record<string, string>>;
  readonly semantic_cache?: boolean;
  /** Read as `semantic_cache`; validated routes do not have it. */
  readonly enable_semantic_cache?: boolean;
  readonly semantic_cache_ttl_s?: number;
  readonly semantic_cache_threshold?: number;
  readonly semantic_rate_limit?: boolean;
  readonly semantic_token_limit_per_min?: number;
}

/** The field that makes a route an AI route; undefined for other routes. */
export function findAiField(
  route: RouteAiFields & LlmRoutingFields,
): keyof RouteAiFields | keyof LlmRoutingFields | undefined {
  if (route.ai === true) return "ai";
  if (route.llm_routing !== undefined) return "llm_routing";
  if (isGuarded(route)) return "prompt_guard";
  if (route.pii_redact === true) return "pii_redact";
  if (hasCache(route)) return "semantic_cache";
  return route.semantic_token_limit_per_min === undefined
    ? undefined
    : "semantic_token_limit_per_min";
}

function isGuarded(route: RouteAiFields): boolean {
  return route.prompt_guard === true || route.enable_prompt_guard === true;
}

function hasCache(route: RouteAiFields): boolean {
  return route.semantic_cache === true || route.enable_semantic_cache === true;
}

/** Refuses AI fields of routes without an upstream. */
export function checkAiFields(
  route: RouteAiFields & LlmRoutingFields,
  origin: string | undefined,
  context: z.core.$RefinementCtx,
): void {
  const refuse = (path: string, message: string): void =>
    context.addIssue({ code: "custom", path: [path], message });
  const field = findAiField(route);
  if (field !== undefined && origin !== undefined && !origin.startsWith("target"))
    refuse(field, `is not allowed with ${origin}, which is no upstream`);
  for (const name of GUARD_SETTINGS)
    if (route[name] !== undefined && !isGuarded(route))
      refuse(name, "is allowed only with prompt_guard");
  for (const name of ["pii_mode", "pii_entities", "pii_patterns"] as const)
    if (route[name] !== undefined && route.pii_redact !== true)
      refuse(name, "is allowed only with pii_redact");
  for (const name of ["semantic_cache_ttl_s", "semantic_cache_threshold"] as const)
    if (route[name] !== undefined && !hasCache(route))
      refuse(name, "is allowed only with semantic_cache");
  if (route.semantic_rate_limit === true && route.semantic_token_limit_per_min === undefined)
    refuse("semantic_rate_limit", "requires semantic_token_limit_per_min");
}
