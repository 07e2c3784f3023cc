// Sending: single messages, templates, batches.
import { z } from "zod";
import { toPlatformError, toProblem } from "@platform/kernel/errors";
import {
  createValidationError,
  defineDirectRoute,
  StatusAnswer,
  type ApiRoute,
  type HeaderReader,
  type RateLimit,
} from "@platform/kernel/http";
import type { Caller } from "@platform/kernel/identity";
import type { Span } from "@platform/kernel/trace";
import { sendAnswer } from "../send/answer.ts";
import { sendRequest, templateRequest } from "../send/request.ts";
import type { Sender, SendContext } from "../send/sender.ts";
import { clientOf, requireSender } from "./access.ts";

/** Options of the routes. */
export interface SendRoutesOptions {
  sender: Sender;
  /** Limit per client; undefined without token verification. */
  rate: RateLimit | undefined;
  /** Maximum size of a request body. */
  bodyBytesMax: number;
}

const BATCH_MAX = 500;
const KEY = /^[\x21-\x7e]{1,255}$/;

/** Problems of operations that send. */
export const SEND_PROBLEMS = {
  400: "Invalid request",
  409: "The Idempotency-Key was used with another request",
  413: "The message is too large",
  422: "The recipient is suppressed, or rejected the message, or the template failed, or the channel is not available",
  429: "The client sends faster than its limit",
  503: "The queue is full",
};

const batchRequest = z.strictObject({ messages: z.array(z.unknown()).min(1).max(BATCH_MAX) });

const code = z.int().describe("Status that the single operation would have");
const itemResult = z.union([
  sendAnswer.extend({ code }),
  z.object({ code, status: z.string(), problem: z.record(z.string(), z.unknown()) }),
]);

export function createSendRoutes(options: SendRoutesOptions): ApiRoute[] {
  const { sender, bodyBytesMax } = options;
  const operation = {
    method: "POST",
    tag: "Sending",
    access: requireSender,
    bodyBytesMax,
  } as const;
  const begin = (
    { caller, headers, span }: { caller: Caller; headers: HeaderReader; span: Span },
    count: number,
  ): SendContext => {
    const client = clientOf(caller);
    const isOperator = caller.kind === "operator";
    if (!isOperator) options.rate?.take(client, count);
    return { client, isOperator, idempotencyKey: readIdempotencyKey(headers), span, path: "" };
  };
  return [
    defineDirectRoute({
      ...operation,
      path: "/api/v1/send",
      summary: "Send a message",
      description:
        "200 `sent` if the relay accepted the message while the request waited, otherwise 202 `queued`.",
      problems: SEND_PROBLEMS,
      body: sendRequest,
      status: [200, 202],
      answer: sendAnswer,
      handle: async (exchange) => {
        const { status, body } = await sender.send(exchange.body, begin(exchange, 1));
        return new StatusAnswer(status, body);
      },
    }),
    defineDirectRoute({
      ...operation,
      path: "/api/v1/send/template",
      summary: "Send a template",
      problems: { ...SEND_PROBLEMS, 404: "There is no such template" },
      body: templateRequest,
      status: [200, 202],
      answer: sendAnswer,
      handle: async (exchange) => {
        const { status, body } = await sender.sendTemplate(exchange.body, begin(exchange, 1));
        return new StatusAnswer(status, body);
      },
    }),
    defineDirectRoute({
      ...operation,
      path: "/api/v1/send/batch",
      summary: "Send up to 500 messages",
      description:
        "Each item is the body of `/send` or `/send/template`, and has its own result with the status that the single operation would have.",
      problems: SEND_PROBLEMS,
      body: batchRequest,
      answer: z.object({ results: z.array(itemResult) }),
      handle: async (exchange) => {
        const { messages } = exchange.body;
        const context = begin(exchange, messages.length);
        const results = await Promise.all(
          messages.map((item, index) => sendItem(sender, item, index, context)),
        );
        return { results };
      },
    }),
  ];
}

async function sendItem(
  sender: Sender,
  item: unknown,
  index: number,
  context: SendContext,
): Promise<z.infer<typeof itemResult>> {
  const path = `messages.${index}.`;
  const key = context.idempotencyKey;
  const own = {
    ...context,
    path,
    idempotencyKey: key === undefined ? undefined : `${key}#${index}`,
  };
  try {
    const isTemplate = typeof item === "object" && item !== null && "template" in item;
    const answer = isTemplate
      ? await sender.sendTemplate(parseItem(templateRequest, item, path), own)
      : await sender.send(parseItem(sendRequest, item, path), own);
    return { code: answer.status, ...answer.body };
  } catch (error) {
    const { status, ...problem } = toProblem(toPlatformError(error), {
      traceId: context.span.context.traceId,
    });
    const delivery = problem["delivery_status"];
    return { code: status, status: typeof delivery === "string" ? delivery : "failed", problem };
  }
}

function parseItem<Schema extends z.ZodType>(
  schema: Schema,
  item: unknown,
  path: string,
): z.output<Schema> {
  const result = schema.safeParse(item);
  if (result.success) return result.data;
  throw createValidationError(
    result.error.issues.map((issue) => ({
      in: "body" as const,
      path: `${path}${issue.path.map(String).join(".")}`,
      message: issue.message,
    })),
  );
}

/** Returns the Idempotency-Key of a request; undefined without one. */
export function readIdempotencyKey(headers: HeaderReader): string | undefined {
  const key = headers.get("idempotency-key");
  if (key === null) return undefined;
  if (KEY.test(key)) return key;
  throw createValidationError([
    { in: "body", path: "Idempotency-Key", message: "1 to 255 visible ASCII characters" },
  ]);
}
