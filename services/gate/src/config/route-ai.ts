// Fields of AI routes.
import { z } from "zod";
import { RE2JS } from "re2js";
import { PII_KINDS, type PiiKind } from "../shared-state/index.ts";
import { text, unset, wholeNumber, yesNo } from "./value.ts";

const TOKENS_MAX = 1_000_000_000;
const PATTERNS_MAX = 32;
const PATTERN_CHARACTERS_MAX = 1_024;
const PATTERN_NAME = /^[A-Z][A-Z0-9_]{0,30}$/;
const PATTERN_NAME_FAULT = "expected a name of capital letters, digits and _";

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
  readonly pii_redact?: boolean;
  readonly pii_mode?: "mask" | "reversible";
  readonly pii_entities?: readonly PiiKind[];
  readonly pii_patterns?: Readonly<Record<string, string>>;
  readonly semantic_rate_limit?: boolean;
  readonly semantic_token_limit_per_min?: number;
}

/** The field that makes a route an AI route; undefined for other routes. */
export function findAiField(route: RouteAiFields): keyof RouteAiFields | undefined {
  if (route.ai === true) return "ai";
  if (route.pii_redact === true) return "pii_redact";
  return route.semantic_token_limit_per_min === undefined
    ? undefined
    : "semantic_token_limit_per_min";
}

/** Refuses AI fields of routes without an upstream. */
export function checkAiFields(
  route: RouteAiFields,
  origin: string | undefined,
  context: z.core.$RefinementCtx,
): void {
  const refuse = (path: string, message: string): void =>
    context.addIssue({ code: "custom", path: [path], message });
  const field = findAiField(route);
  if (field !== undefined && origin !== undefined && !origin.startsWith("target"))
    refuse(field, `is not allowed with ${origin}, which is no upstream`);
  for (const name of ["pii_mode", "pii_entities", "pii_patterns"] as const)
    if (route[name] !== undefined && route.pii_redact !== true)
      refuse(name, "is allowed only with pii_redact");
  if (route.semantic_rate_limit === true && route.semantic_token_limit_per_min === undefined)
    refuse("semantic_rate_limit", "requires semantic_token_limit_per_min");
}
