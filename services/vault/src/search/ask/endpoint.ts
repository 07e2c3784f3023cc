// Plain questions interpreted by a chat endpoint. It is sent the question and the fields that a bucket has, and answers with
// filters, which are checked like those of a client: never with a statement.
import type { Clock } from "@platform/kernel/time";
import { z } from "zod";
import { type ModelEndpoint, requestModel } from "../../embed/model-request.ts";
import { KINDS } from "../kinds.ts";
import { checkFilters } from "./answer.ts";
import type { Interpretation } from "./interpretation.ts";

const LIMITS = { timeoutMs: 5_000, answerBytesMax: 64 * 1024 };
/** Questions at the endpoint at the same time; the grammar answers more. */
const ASKED_MAX = 8;
/** The grammar answers for so long after a failure, so that a dead endpoint delays few questions. */
const REST_MS = 10_000;
const TOKENS_MAX = 1_000;
const LIMIT_MAX = 1_000;
const TEXT_CHARACTERS_MAX = 1_024;

// Models write null for what they leave out.
const MEANING = z.strictObject({
  filters: z.record(z.string(), z.unknown()).default({}),
  order: z
    .strictObject({ by: z.enum(["size", "last_modified"]), direction: z.enum(["asc", "desc"]) })
    .nullish(),
  limit: z.int().min(1).max(LIMIT_MAX).nullish(),
  aggregate: z.enum(["count", "size"]).nullish(),
  similar: z.string().min(1).max(TEXT_CHARACTERS_MAX).nullish(),
  text: z.string().min(1).max(TEXT_CHARACTERS_MAX).nullish(),
});

const ANSWER = z.object({
  choices: z.tuple([z.object({ message: z.object({ content: z.string() }) })], z.unknown()),
});

/** Options of {@link AskEndpoint}. */
export interface AskEndpointOptions {
  readonly endpoint: ModelEndpoint;
  readonly clock: Pick<Clock, "now">;
  /** A question that the grammar has to answer, with the reason. */
  readonly onFailed: (error: unknown) => void;
}

export class AskEndpoint {
  readonly #options: AskEndpointOptions;
  #asked = 0;
  #restsUntilMs = 0;

  constructor(options: AskEndpointOptions) {
    this.#options = options;
  }

  /** Resolves with the meaning of a question; with `undefined` if the endpoint fails, rests after a failure, or is busy. */
  async interpret(question: string): Promise<Interpretation | undefined> {
    const { endpoint, clock, onFailed } = this.#options;
    if (this.#asked >= ASKED_MAX || clock.now() < this.#restsUntilMs) return undefined;
    this.#asked += 1;
    try {
      const body = await requestModel(
        endpoint,
        "/chat/completions",
        composeRequest(question, clock.now()),
        LIMITS,
      ).then(readCompletion);
      return readMeaning(body);
    } catch (error) {
      // A meaning that is refused is the matter of its question.
      if (!(error instanceof RefusedMeaningError)) this.#restsUntilMs = clock.now() + REST_MS;
      onFailed(error);
      return undefined;
    } finally {
      this.#asked -= 1;
    }
  }
}

class RefusedMeaningError extends Error {}

function composeRequest(question: string, nowMs: number): object {
  return {
    temperature: 0,
    max_tokens: TOKENS_MAX,
    response_format: { type: "json_object" },
    messages: [
      { role: "system", content: describeFields(nowMs) },
      { role: "user", content: question },
    ],
  };
}

function describeFields(nowMs: number): string {
  return [
    "You turn a question about the objects of a storage bucket into one JSON object. You see no object and answer nothing else.",
    `Now: ${new Date(nowMs).toISOString()}.`,
    "Members, all optional:",
    "filters: conditions that all hold, as {field: value} or {field: {operator: value}};",
    "order: {by: size or last_modified, direction: asc or desc}; limit: a number;",
    "aggregate: count for how many, size for how many bytes; similar: a key, for objects like that one;",
    "text: words of the question that no filter expresses.",
    "Fields: key, size (bytes), content_type, last_modified (RFC 3339 in UTC), storage_class, extension (without the dot),",
    `kind (one of ${[...KINDS.keys()].join(", ")}), prefix (the key begins with it), tags.NAME, metadata.NAME.`,
    "Operators: $eq $ne $gt $gte $lt $lte $in $nin $exists $contains. $and and $or take lists of filters, $not takes one.",
  ].join("\n");
}

function readCompletion({ status, text }: { status: number; text: string }): string {
  if (status !== 200) throw new Error(`the endpoint answers ${status}`);
  const answer = ANSWER.safeParse(parse(text));
  if (!answer.success) throw new Error("the answer of the endpoint is no chat completion");
  return answer.data.choices[0].message.content;
}

function readMeaning(content: string): Interpretation {
  const meaning = MEANING.safeParse(parse(content));
  if (!meaning.success) {
    throw new RefusedMeaningError("the endpoint's meaning of a question has another form");
  }
  const { filters, order, limit, aggregate, similar, text } = meaning.data;
  const interpretation: Interpretation = {
    filters,
    ...(order ? { order } : {}),
    ...(limit ? { limit } : {}),
    ...(aggregate ? { aggregate } : {}),
    ...(similar ? { similar } : {}),
    ...(text ? { text } : {}),
  };
  try {
    checkFilters(interpretation);
  } catch (error) {
    throw new RefusedMeaningError("the endpoint's filters are refused", { cause: error });
  }
  return interpretation;
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
