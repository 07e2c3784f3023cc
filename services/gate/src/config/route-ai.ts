// Fields of AI routes.
import { z } from "zod";
import { unset, wholeNumber, yesNo } from "./value.ts";

const TOKENS_MAX = 1_000_000_000;

/** Fields of {@link RouteAiFields} with their schemas. */
export const routeAiFields = {
  ai: yesNo().meta({
    description:
      "requests to models of OpenAI's and Anthropic's APIs: they are checked strictly, metered and priced (`X-Token-Cost`), and errors have the form of the API",
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
  readonly semantic_rate_limit?: boolean;
  readonly semantic_token_limit_per_min?: number;
}

/** The field that makes a route an AI route; undefined for other routes. */
export function findAiField(route: RouteAiFields): keyof RouteAiFields | undefined {
  if (route.ai === true) return "ai";
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
  if (route.semantic_rate_limit === true && route.semantic_token_limit_per_min === undefined)
    refuse("semantic_rate_limit", "requires semantic_token_limit_per_min");
}
