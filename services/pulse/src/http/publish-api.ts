// Publishing over HTTP: one message, or several atomically.
import { z } from "zod";
import { PlatformError } from "@platform/kernel/errors";
import {
  defineDirectRoute,
  defineRoute,
  type ApiRoute,
  type HeaderReader,
} from "@platform/kernel/http";
import type { RecordHeader } from "@platform/log/batch";
import { DELAY_MS_MAX } from "../dispatch/delays.ts";
import { OWN_HEADER_PREFIX, readText } from "../message/message.ts";
import type { PublishInput, PublishOutcome } from "../publish/publish-input.ts";
import { within } from "../publish/message-index.ts";
import type { Publisher } from "../publish/publisher.ts";
import { type Admission, tenantOf } from "./admission.ts";

const MESSAGES_MAX = 10_000;
const BATCH_BODY_BYTES_MAX = 10 * 1024 * 1024;
const HEADERS_MAX = 100;
const TTL_MS_MAX = 365 * 24 * 60 * 60 * 1000;

const idText = z.string().min(1).max(255);
const messageSchema = z.strictObject({
  topic: z.string().describe("Levels separated by dots."),
  payload: z.string().describe("The content; text, or base64 with `encoding`."),
  encoding: z.literal("base64").optional().describe("Set if the payload is base64."),
  key: z
    .string()
    .max(10_000)
    .optional()
    .describe("Messages with the same key go to the same partition."),
  priority: z.int().min(-1_000_000).max(1_000_000).optional().describe("Higher first; default 0."),
  delay_ms: z.int().min(0).max(DELAY_MS_MAX).optional().describe("Delay before delivery."),
  message_id: idText.optional().describe("A second one within five minutes is dropped."),
  ttl_ms: z
    .int()
    .min(1)
    .max(TTL_MS_MAX)
    .optional()
    .describe("A dead letter if not consumed by then."),
  producer_id: idText.optional().describe("With `sequence_number`: drops what was sent before."),
  sequence_number: z.int().min(0).optional(),
  headers: z.record(z.string().min(1).max(255), z.string()).optional(),
});

type MessageBody = z.output<typeof messageSchema>;

/** The outcome of a publication. */
export const publishedAnswer = z
  .object({
    status: z.literal("success"),
    topic: z.string(),
    processed_payload: z.string().describe("The payload after the topic's transform."),
    message_id: z.string(),
    partition: z.int().optional().describe("If it was stored, also before."),
    offset: z.int().optional(),
    scheduled_for: z.number().optional().describe("Time of a delayed message, epoch ms."),
    duplicate: z.literal(true).optional(),
    routed_to: z.string().optional().describe("The dead letter topic."),
    failure_reason: z.string().optional(),
  })
  .meta({ id: "Published" });

export function createPublishRoutes(publisher: Publisher, admission: Admission): ApiRoute[] {
  return [
    defineDirectRoute({
      method: "POST",
      path: "/api/v1/publish",
      summary: "Publish a message; answered when it is stored",
      tag: "Publish",
      access: admission.publishers,
      body: messageSchema,
      bodyBytesMax: BATCH_BODY_BYTES_MAX,
      problems: {
        413: "The message is too large",
        422: "The payload violates the schema of the topic; `fields` lists the violations",
        429: "The rate limit is exceeded",
        503: "`ERR_BACKPRESSURE`: too many messages wait in the topic",
      },
      answer: publishedAnswer,
      handle: async ({ body, caller, span, headers }) => {
        span.setAttribute("messaging.system", "platform-pulse");
        span.setAttribute("messaging.destination", body.topic);
        span.setAttribute("messaging.payload_len", Buffer.byteLength(body.payload));
        admission.allow(caller, "publish", body.topic);
        const input = toInput(body, headers);
        const [outcome] = await publisher.publish(tenantOf(caller), [input], { isRated: true });
        return formatOutcome(outcome!);
      },
    }),
    defineRoute({
      method: "POST",
      path: "/api/v1/publish/batch",
      summary: "Publish messages atomically, also to several topics",
      tag: "Publish",
      access: admission.publishers,
      body: z.strictObject({ messages: z.array(z.unknown()).min(1).max(MESSAGES_MAX) }),
      bodyBytesMax: BATCH_BODY_BYTES_MAX,
      problems: { 400: "`index` is the invalid message", 503: "As for one message" },
      answer: z.object({
        status: z.literal("success"),
        count: z.int(),
        results: z.array(publishedAnswer.omit({ status: true, processed_payload: true })),
      }),
      handle: async ({ body, caller, span, headers }) => {
        const inputs = body.messages.map((message, index) => parseMessage(message, index, headers));
        for (const [index, { topic }] of inputs.entries()) {
          within(inputs, index, () => admission.allow(caller, "publish", topic));
        }
        span.setAttribute("messaging.system", "platform-pulse");
        span.setAttribute("messaging.batch.message_count", inputs.length);
        const outcomes = await publisher.publish(tenantOf(caller), inputs, { isRated: true });
        const results = outcomes.map((outcome) => {
          const { status: _status, processed_payload: _payload, ...rest } = formatOutcome(outcome);
          return rest;
        });
        return { status: "success" as const, count: results.length, results };
      },
    }),
  ];
}

function parseMessage(message: unknown, index: number, headers: HeaderReader): PublishInput {
  const result = messageSchema.safeParse(message);
  try {
    if (result.success) return toInput(result.data, headers);
  } catch (error) {
    if (!(error instanceof PlatformError)) throw error;
    throw new PlatformError(error.code, error.detail, { fields: { ...error.fields, index } });
  }
  const [issue] = result.error.issues;
  const place = ["messages", index, ...(issue?.path ?? [])].map(String).join(".");
  throw new PlatformError("validation_failed", `${place}: ${issue?.message ?? "is invalid"}`, {
    fields: { index, errors: [{ in: "body", path: place, message: issue?.message }] },
  });
}

function toInput(body: MessageBody, requestHeaders: HeaderReader): PublishInput {
  const { producer_id, sequence_number } = body;
  if ((producer_id === undefined) !== (sequence_number === undefined)) {
    throw new PlatformError(
      "validation_failed",
      "producer_id and sequence_number must be set together.",
    );
  }
  return {
    topic: body.topic,
    payload: readPayload(body),
    key: body.key === undefined ? undefined : Buffer.from(body.key),
    headers: toHeaders(body.headers ?? {}, requestHeaders.get("traceparent")),
    priority: body.priority,
    delayMs: body.delay_ms,
    ttlMs: body.ttl_ms,
    messageId: body.message_id,
    producer:
      producer_id === undefined ? undefined : { id: producer_id, sequence: sequence_number! },
  };
}

function readPayload({ payload, encoding }: MessageBody): Buffer {
  if (encoding === undefined) return Buffer.from(payload);
  const bytes = Buffer.from(payload, "base64");
  // Buffer ignores characters that are not base64; a garbled payload must not pass.
  if (bytes.toString("base64").replace(/=+$/, "") === payload.replace(/=+$/, "")) return bytes;
  throw new PlatformError("validation_failed", "The payload is not valid base64.");
}

function toHeaders(given: Record<string, string>, traceparent: string | null): RecordHeader[] {
  const headers: RecordHeader[] = [];
  for (const [key, value] of Object.entries(given)) {
    if (key.toLowerCase().startsWith(OWN_HEADER_PREFIX)) {
      throw new PlatformError(
        "validation_failed",
        `Headers may not begin with ${OWN_HEADER_PREFIX}.`,
      );
    }
    headers.push({ key, value: Buffer.from(value) });
  }
  if (headers.length > HEADERS_MAX) {
    throw new PlatformError(
      "validation_failed",
      `A message may have at most ${HEADERS_MAX} headers.`,
    );
  }
  if (traceparent !== null && given["traceparent"] === undefined) {
    headers.push({ key: "traceparent", value: Buffer.from(traceparent) });
  }
  return headers;
}

/** Formats the outcome of a publication. */
export function formatOutcome(outcome: PublishOutcome): z.infer<typeof publishedAnswer> {
  const { topic, messageId, payload } = outcome;
  const common = {
    status: "success" as const,
    topic,
    processed_payload: readText(payload) ?? payload.toString("base64"),
    message_id: messageId,
  };
  switch (outcome.kind) {
    case "stored":
      return { ...common, partition: outcome.partition, offset: outcome.offset };
    case "scheduled":
      return { ...common, scheduled_for: outcome.dueMs };
    case "duplicate":
      return { ...common, duplicate: true, ...outcome.first };
    case "dead-lettered":
      return { ...common, routed_to: outcome.deadLetterTopic, failure_reason: outcome.reason };
    default:
      return outcome satisfies never;
  }
}
