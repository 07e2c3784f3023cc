// Fields of AI routes.
import type { z } from "zod";
import { yesNo } from "./value.ts";

/** Fields of {@link RouteAiFields} with their schemas. */
export const routeAiFields = {
  ai: yesNo().meta({
    description:
      "requests to models of OpenAI's and Anthropic's APIs: they are checked strictly, metered and priced (`X-Token-Cost`), and errors have the form of the API",
  }),
};

/** Validated {@link routeAiFields}. */
export interface RouteAiFields {
  readonly ai?: boolean;
}

/** True for an AI route. */
export function isAiRoute({ ai }: RouteAiFields): boolean {
  return ai === true;
}

/** Refuses AI fields of routes without an upstream. */
export function checkAiFields(
  route: RouteAiFields,
  origin: string | undefined,
  context: z.core.$RefinementCtx,
): void {
  if (!isAiRoute(route) || origin === undefined || origin.startsWith("target")) return;
  context.addIssue({
    code: "custom",
    path: ["ai"],
    message: `is not allowed with ${origin}, which is no upstream`,
  });
}
