// Configuration keys of AI routes.
import { key } from "@platform/kernel/config";
import { z } from "zod";
import { AI_STREAM_SECONDS_DEFAULT } from "../shared-state/index.ts";
import { bound } from "./bound.ts";
import { filePath, serviceUrl, text, unset, wholeNumber } from "./value.ts";

const MODELS_MAX = 5_000;
const NAME_CHARACTERS_MAX = 256;
/** USD per million tokens, or per request. */
const USD_MAX = 100_000;
const OUTPUT_TOKENS_MAX = 10_000_000;

const usd = () => z.number().min(0).max(USD_MAX);

const modelPriceSchema = z.strictObject({
  input: usd().meta({ description: "USD per million tokens of input" }),
  output: usd().meta({ description: "USD per million tokens of output" }),
  cached_input: unset(usd()).meta({
    description: "USD per million tokens of input from the provider's cache; default: `input`",
  }),
  cache_write: unset(usd()).meta({
    description:
      "USD per million tokens of input that the provider writes to its cache; default: `input`",
  }),
  request: unset(usd()).meta({ description: "USD per request; default: 0" }),
  max_output: unset(wholeNumber(1, OUTPUT_TOKENS_MAX)).meta({
    description: "most tokens of an answer if the request sets no bound; default: 4096",
  }),
});

/** Prices of models by their names. */
export const modelPricesSchema = z
  .record(z.string().min(1).max(NAME_CHARACTERS_MAX), modelPriceSchema)
  .refine((prices) => Object.keys(prices).length <= MODELS_MAX, {
    error: `expected at most ${MODELS_MAX} models`,
  });

const embeddingSchema = z.strictObject({
  url: serviceUrl().meta({ description: "address of the API, such as http://…/v1/embeddings" }),
  model: text(256).meta({ description: "name of the model" }),
  key_env: unset(text(256)).meta({
    description: "environment variable with the key, which is sent as a bearer token",
  }),
});

/** Keys of the configuration. */
export const aiKeys = {
  ai_prices: key(unset(z.union([filePath(), modelPricesSchema])), {
    description:
      "Prices of models in USD, or the path of a JSON file with them: `{NAME: {input, output, cached_input, cache_write, request, max_output}}`. A name may end in `*`; the longest match counts.",
    env: ["PLATFORM_GATE_AI_PRICES"],
    flag: false,
  }),
  embedding: key(unset(embeddingSchema), {
    description:
      "Service with OpenAI's API of embeddings, `{url, model, key_env}`: `semantic_cache` then answers questions whose meaning is alike, too.",
    env: [],
    flag: false,
  }),
  ai_stream_max_s: bound("Longest duration of a streamed answer on AI routes.", {
    default: AI_STREAM_SECONDS_DEFAULT,
    max: 86_400,
    unit: "s",
  }),
};
