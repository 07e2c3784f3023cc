// Dead letters of one topic over HTTP.
import { z } from "zod";
import { PlatformError } from "@platform/kernel/errors";
import { defineRoute, requirePreconditions, type ApiRoute } from "@platform/kernel/http";
import { changePayload, conversionsSchema } from "../deadletter/convert.ts";
import { type DeadLetterQueue, deadLetterCause } from "../deadletter/dead-letter-queue.ts";
import { deadLetter, type DeadLetterWriter } from "../deadletter/dead-letter-writer.ts";
import { jsonPatchSchema } from "../deadletter/json-patch.ts";
import type { PublishOutcome } from "../publish/publish-input.ts";
import { checkTopicName } from "../topic/name.ts";
import type { Topics } from "../topic/topics.ts";
import { type Admission, tenantOf } from "./admission.ts";
import { answerWithClaim } from "./claimed-answer.ts";
import { formatOutcome, publishedAnswer } from "./publish-api.ts";
import { tagConfig } from "./topic-config.ts";

/** Dead letters of one response. */
const LIST_BYTES_MAX = 16 * 1024 * 1024;

export interface TopicDeadLetterOptions {
  admission: Admission;
  topics: Topics;
  deadLetters: DeadLetterWriter;
  deadLetterQueue: DeadLetterQueue<PublishOutcome>;
}

const limitQuery = z.object({
  limit: z
    .string()
    .regex(/^\d{1,4}$/)
    .transform(Number)
    .refine((limit) => limit >= 1 && limit <= 1_000, "a whole number from 1 to 1000")
    .default(100),
});

const requeueBody = z
  .strictObject({
    message_id: z.string().min(1),
    payload: z.string().optional(),
    convert: conversionsSchema.optional(),
    patch: jsonPatchSchema.optional().describe("JSON Patch (RFC 6902), after `convert`."),
  })
  .refine(
    ({ payload, convert, patch }) =>
      payload === undefined || (convert === undefined && patch === undefined),
    "expected either payload, or convert and patch",
  );

/** Routes for dead letters of one topic. */
export function createTopicDeadLetterRoutes({
  topics,
  deadLetters,
  deadLetterQueue,
  admission,
}: TopicDeadLetterOptions): ApiRoute[] {
  const tag = "Dead letters";
  return [
    defineRoute({
      method: "POST",
      path: "/api/v1/topics/{topic}/dlq",
      summary: "Set the dead letter topic of a topic",
      tag,
      access: admission.managers,
      body: z.strictObject({ dlq_topic: z.string() }),
      problems: { 412: "The settings have changed" },
      answer: z.object({
        status: z.literal("success"),
        topic: z.string(),
        dlq_topic: z.string(),
      }),
      handle: async ({ params, body, headers, caller }) => {
        checkTopicName(admission.allow(caller, "manage", body.dlq_topic));
        const topic = await topics.ensure(
          tenantOf(caller),
          admission.allow(caller, "manage", params["topic"]!),
        );
        requirePreconditions(headers, tagConfig({ deadLetters }, topic));
        if (topic.name === body.dlq_topic) {
          throw new PlatformError(
            "validation_failed",
            "A topic cannot be its own dead letter topic.",
          );
        }
        await deadLetters.register(topic, body.dlq_topic);
        return { status: "success" as const, topic: topic.name, dlq_topic: body.dlq_topic };
      },
    }),
    defineRoute({
      method: "GET",
      path: "/api/v1/topics/{topic}/dlq",
      summary: "Dead letters of a topic, oldest first, 16 MiB at most",
      tag,
      access: admission.subscribers,
      query: limitQuery,
      answer: z.object({
        messages: z.array(deadLetter),
        total: z.int(),
        dlq_topic: z.string(),
      }),
      handle: ({ params, query, caller, rawResponse }) => {
        const topic = topics.get(
          tenantOf(caller),
          admission.allow(caller, "subscribe", params["topic"]!),
        );
        const bytesMax = Math.min(LIST_BYTES_MAX, deadLetterQueue.countBytes(topic));
        return answerWithClaim(rawResponse, bytesMax, async (claimedBytes) => ({
          body: JSON.stringify(await deadLetterQueue.list(topic, query.limit, claimedBytes)),
        }));
      },
    }),
    defineRoute({
      method: "GET",
      path: "/api/v1/topics/{topic}/dlq/summary",
      summary: "Count dead letters by reason",
      tag,
      access: admission.anyRight,
      answer: z.object({
        dlq_topic: z.string(),
        total: z.int(),
        counted: z.int(),
        is_complete: z.boolean(),
        clusters: z.array(deadLetterCause),
      }),
      handle: ({ params, caller, rawResponse }) => {
        const topic = topics.get(
          tenantOf(caller),
          admission.allow(caller, "any", params["topic"]!),
        );
        const bytesMax = Math.min(LIST_BYTES_MAX, deadLetterQueue.countBytes(topic));
        return answerWithClaim(rawResponse, bytesMax, async () => ({
          body: JSON.stringify(await deadLetterQueue.summarize(topic)),
        }));
      },
    }),
    defineRoute({
      method: "POST",
      path: "/api/v1/topics/{topic}/dlq/requeue",
      summary: "Requeue a dead letter, with a new payload, or with a change of its own",
      tag,
      access: admission.managers,
      body: requeueBody,
      bodyBytesMax: 10 * 1024 * 1024,
      answer: publishedAnswer,
      handle: async ({ params, body, caller }) => {
        const topic = topics.get(
          tenantOf(caller),
          admission.allow(caller, "manage", params["topic"]!),
        );
        const { message_id: id, payload, ...change } = body;
        const replace = (original: Buffer) =>
          payload === undefined ? changePayload(original, change) : Buffer.from(payload);
        return formatOutcome(await deadLetterQueue.requeue(topic, id, replace));
      },
    }),
  ];
}
