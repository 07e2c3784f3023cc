// The order of steps. A route gets a step only if its settings use it.
import { RouteSteps, type Step } from "../exchange/exchange.ts";
import type { RouteSpec } from "../shared-state/index.ts";
import { createAiAnswerStep } from "./ai/ai-answer-step.ts";
import { createAiCacheStep } from "./ai/ai-cache-step.ts";
import { createAiLimitStep } from "./ai/ai-limit-step.ts";
import { createAiRequestStep } from "./ai/ai-request-step.ts";
import { createApiKeyStep, createTenantStep } from "./identity/api-key-step.ts";
import { createAddressStep } from "./limit/address-step.ts";
import { createCacheStep } from "./content/cache-step.ts";
import { createConcurrencyStep } from "./limit/concurrency-step.ts";
import { createAddressRateStep, createCallerRateStep } from "./limit/rate-limit-step.ts";
import {
  createRedirectStep,
  createRespondStep,
  createRewriteStep,
} from "./content/answer-steps.ts";
import { createCompressionStep } from "./content/compression-step.ts";
import { createCorsStep } from "./content/cors-step.ts";
import { createFilesStep } from "./content/files-step.ts";
import { createGuestRequestStep } from "./middleware/guest-request-step.ts";
import { createGuestResponseStep } from "./middleware/guest-response-step.ts";
import { createClientCertificateStep } from "./identity/client-certificate-step.ts";
import { createIdentityStep } from "./identity/identity-step.ts";
import { createMirrorStep } from "./copy/mirror-step.ts";
import { createOpenApiStep, createResponseReportStep } from "./openapi/openapi-step.ts";
import { createRecordStep } from "./copy/record-step.ts";
import { createPolicyStep } from "./identity/policy-step.ts";
import { createStickyStep } from "./sticky-step.ts";
import type { StepParts } from "./step-parts.ts";

/** Creates the step of a route; undefined if the route does not use it. Throws if its settings are not usable. */
type CreateStep = (spec: RouteSpec, parts: StepParts) => Step | undefined;

/**
 * Every step, in the order in which a request passes them; the body limit and the upstream follow. Responses pass the
 * filters of the steps in the reverse order.
 */
const CREATE_STEPS: readonly CreateStep[] = [
  createAddressStep,
  createAddressRateStep,
  createCorsStep,
  createClientCertificateStep,
  createIdentityStep,
  createApiKeyStep,
  createTenantStep,
  createPolicyStep,
  createCallerRateStep,
  createStickyStep,
  createConcurrencyStep,
  createOpenApiStep,
  createGuestRequestStep,
  createAiRequestStep,
  createAiCacheStep,
  createAiLimitStep,
  // The cache stores what the steps below make of a response, one variant for each coding.
  createCacheStep,
  createCompressionStep,
  createGuestResponseStep,
  // Nearer to the upstream than the guests, which see what clients get.
  createAiAnswerStep,
  createResponseReportStep,
  createRewriteStep,
  createRedirectStep,
  createRespondStep,
  createFilesStep,
  // These two copy the head that the others have made.
  createMirrorStep,
  createRecordStep,
];

/** Compiles the steps of a route. Throws, without retaining anything, if one of them is not usable. */
export function compileSteps(spec: RouteSpec, parts: StepParts): RouteSteps {
  const steps: Step[] = [];
  try {
    for (const create of CREATE_STEPS) {
      const step = create(spec, parts);
      if (step !== undefined) steps.push(step);
    }
  } catch (error) {
    for (const step of steps) step.close?.();
    throw error;
  }
  return new RouteSteps(steps);
}
