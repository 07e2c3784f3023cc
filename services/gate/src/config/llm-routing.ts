// Models of a route: one that answers, and one that answers in its place.
import { z } from "zod";
import { type UpstreamAuthConfig, upstreamAuthSchema } from "./upstream-auth.ts";
import { fieldName, text, unset, upstreamUrl, wholeNumber } from "./value.ts";

const STATUSES_MAX = 64;

// It is also the value of a response field.
const modelName = () =>
  text(256).regex(/^[\x21-\x7e]+$/, { error: "expected printable ASCII without spaces" });

const modelSchema = z.strictObject({
  url: upstreamUrl().meta({ description: "provider; its path is prepended to that of requests" }),
  model: modelName().meta({ description: "name of the model, in place of that of the request" }),
  auth: unset(upstreamAuthSchema).meta({
    description: "credential for the provider; default: `upstream_auth`",
  }),
});

const llmRoutingSchema = z
  .strictObject({
    primary: modelSchema.meta({ description: "model that gets the requests" }),
    fallback: modelSchema.meta({ description: "model that gets a request if the primary fails" }),
    confidence_header: unset(fieldName()).meta({
      description: "response field in which the primary reports a number",
    }),
    min_confidence: unset(z.number()).meta({
      description: "the fallback gets requests whose confidence is below this number",
    }),
    on_status: unset(z.array(wholeNumber(400, 599)).max(STATUSES_MAX)).meta({
      description:
        "statuses of the primary after which the fallback gets the request; default: 429, 500, 502, 503, 504, 529",
    }),
  })
  .refine(
    ({ confidence_header: field, min_confidence: min }) =>
      (field === undefined) === (min === undefined),
    { error: "confidence_header and min_confidence must be set together" },
  );

/** Fields of a route. */
export const llmRoutingFields = {
  llm_routing: unset(llmRoutingSchema).meta({
    description:
      "models for the requests to models, in place of `target`: the fallback gets a request if the primary cannot be reached, fails or reports a low confidence, before the client has got anything; both are billed",
  }),
};

/** A model with its provider. */
interface ModelConfig {
  readonly url: string;
  readonly model: string;
  readonly auth?: UpstreamAuthConfig;
}

/** Validated {@link llmRoutingFields}. */
export interface LlmRoutingFields {
  readonly llm_routing?: {
    readonly primary: ModelConfig;
    readonly fallback: ModelConfig;
    readonly confidence_header?: string;
    readonly min_confidence?: number;
    readonly on_status?: readonly number[];
  };
}
