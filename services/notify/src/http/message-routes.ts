// Stored messages: list, status with events, cancel, send again; content and checks.
import { z } from "zod";
import {
  bytes,
  defineRoute,
  nextCursor,
  pageQuery,
  readPage,
  StatusAnswer,
  type ApiRoute,
  type RateLimit,
} from "@platform/kernel/http";
import type { CheckMail } from "../check/mail-check.ts";
import {
  CHANNELS,
  DELIVERY_STATUSES,
  STREAMS,
  type DeliveryRow,
  type MessageRow,
} from "../database/message.ts";
import { parsedMail, parseMail, renderView } from "../inbox/view.ts";
import { sendAnswer } from "../send/answer.ts";
import { messageEvent, summarizeStatus, type Messages } from "../send/messages.ts";
import { resendRequest } from "../send/request.ts";
import type { Resender } from "../send/resender.ts";
import type { StoredContents } from "../send/stored-content.ts";
import { clientOf, requireSender, visibleClient } from "./access.ts";
import { readIdempotencyKey, SEND_PROBLEMS } from "./send-routes.ts";
import { respondRaw, respondView, viewQuery } from "./stored-mail.ts";

const checkResult = z.object({
  id: z.string(),
  status: z.enum(["ok", "warning", "problem", "unknown"]),
  title: z.string(),
  code: z.string(),
  params: z.record(z.string(), z.union([z.string(), z.number()])),
  detail: z.string(),
});

const messageAnswer = z.object({
  message_id: z.string(),
  status: z.enum(DELIVERY_STATUSES),
  channel: z.enum(CHANNELS),
  stream: z.enum(STREAMS),
  from: z.string(),
  subject: z.string(),
  template: z.string().nullable(),
  tags: z.array(z.string()),
  metadata: z.record(z.string(), z.unknown()),
  size_bytes: z.int(),
  created_at: z.string(),
  send_at: z.string().nullable(),
  expires_at: z.string().nullable(),
  resent_from: z.string().nullable(),
  sensitive: z.boolean(),
  trace_id: z.string(),
  recipients: z.array(
    z.object({
      address: z.string(),
      kind: z.enum(["to", "cc", "bcc"]),
      status: z.enum(DELIVERY_STATUSES),
      attempts: z.int(),
      code: z.int().nullable().describe("SMTP reply code of the last attempt"),
      enhanced: z.string().nullable(),
      detail: z.string().nullable(),
      bounce_type: z.enum(["hard", "soft"]).nullable(),
      next_attempt_at: z.string().nullable(),
    }),
  ),
});

const listQuery = pageQuery.extend({
  status: z.enum(DELIVERY_STATUSES).optional(),
  to: z.string().max(320).optional(),
  template: z.string().max(128).optional(),
  stream: z.enum(STREAMS).optional(),
  tag: z.string().max(64).optional(),
  client: z
    .string()
    .max(255)
    .optional()
    .describe("Messages of this client, by its id; for those who may see all."),
});

/** Parts that the routes use. */
export interface MessageRoutesOptions {
  messages: Messages;
  contents: StoredContents;
  resender: Resender;
  checkMail: CheckMail;
  /** Limit per client; undefined without token verification. */
  rate: RateLimit | undefined;
}

const CONTENT_PROBLEMS = {
  409: "The message is sensitive, its content was erased, or it is no mail",
};

export function createMessageRoutes(options: MessageRoutesOptions): ApiRoute[] {
  return [...createStatusRoutes(options), ...createContentRoutes(options)];
}

function createStatusRoutes({ messages, resender, rate }: MessageRoutesOptions): ApiRoute[] {
  const operation = { tag: "Messages", access: requireSender } as const;
  return [
    defineRoute({
      ...operation,
      method: "GET",
      path: "/api/v1/messages",
      summary: "List messages, newest first",
      query: listQuery,
      answer: z.object({ messages: z.array(messageAnswer), next_cursor: nextCursor }),
      handle: async ({ query, caller }) => {
        const { limit, cursor, client, ...filter } = query;
        const page = await readPage(
          { limit, cursor },
          {
            key: z.string().max(64),
            read: (max, before) =>
              messages.list({
                ...filter,
                client: visibleClient(caller) ?? client,
                limit: max,
                before,
              }),
            keyOf: ({ message }) => message.id,
          },
        );
        return {
          messages: page.items.map(({ message, deliveries }) => toSummary(message, deliveries)),
          next_cursor: page.next_cursor,
        };
      },
    }),
    defineRoute({
      ...operation,
      method: "GET",
      path: "/api/v1/messages/{id}",
      summary: "Status and events of a message",
      answer: messageAnswer.extend({ events: z.array(messageEvent) }),
      handle: async ({ params, caller }) => {
        const found = await messages.get(params["id"]!, visibleClient(caller));
        return { ...toSummary(found.message, found.deliveries), events: found.events };
      },
    }),
    defineRoute({
      ...operation,
      method: "DELETE",
      path: "/api/v1/messages/{id}",
      summary: "Cancel the deliveries of a message that have not started",
      problems: { 409: "All deliveries have ended or started" },
      answer: z.object({
        status: z.literal("canceled"),
        message_id: z.string(),
        canceled: z.int().describe("Number of deliveries"),
      }),
      handle: async ({ params, caller }) => {
        const canceled = await messages.cancel(params["id"]!, visibleClient(caller));
        return { status: "canceled" as const, message_id: params["id"]!, canceled };
      },
    }),
    defineRoute({
      ...operation,
      method: "POST",
      path: "/api/v1/messages/{id}/resend",
      summary: "Send the content of a message again",
      description:
        "A new message with a Message-ID of its own, `resent_from` names the first one; suppression and limits apply as for `/send`. Opens and clicks of tracked links count for the first message.",
      problems: { ...CONTENT_PROBLEMS, ...SEND_PROBLEMS },
      body: resendRequest,
      status: [200, 202],
      answer: sendAnswer,
      handle: async ({ params, body, caller, headers, span }) => {
        const client = clientOf(caller);
        const isOperator = caller.kind === "operator";
        if (!isOperator) rate?.take(client, 1);
        const answer = await resender.resend(body, {
          messageId: params["id"]!,
          client,
          visibleClient: visibleClient(caller),
          isOperator,
          idempotencyKey: readIdempotencyKey(headers),
          actor: isOperator ? "the operator" : client,
          span,
        });
        return new StatusAnswer(answer.status, answer.body);
      },
    }),
  ];
}

function createContentRoutes({ contents, checkMail }: MessageRoutesOptions): ApiRoute[] {
  const operation = {
    method: "GET",
    tag: "Messages",
    access: requireSender,
    problems: CONTENT_PROBLEMS,
  } as const;
  return [
    defineRoute({
      ...operation,
      path: "/api/v1/messages/{id}/checks",
      summary: "Check a mail: authentication, form and content",
      description:
        "DNS is asked for at most 3 s; what it did not answer is `unknown`. No link or image is fetched.",
      answer: z.object({ checks: z.array(checkResult) }),
      handle: async ({ params, caller }) => ({
        checks: await checkMail(await contents.readMail(params["id"]!, visibleClient(caller))),
      }),
    }),
    defineRoute({
      ...operation,
      path: "/api/v1/messages/{id}/content",
      summary: "Content of a message, with the variables of its template",
      answer: parsedMail.extend({
        subject: z.string().optional().describe("Of mails"),
        variables: z.record(z.string(), z.unknown()).nullable(),
        warnings: z.array(z.string()),
      }),
      handle: async ({ params, caller }) => {
        const client = visibleClient(caller);
        const stored = await contents.read(params["id"]!, client);
        const facts = { variables: stored.variables ?? null, warnings: stored.warnings };
        if (stored.message.channel !== "email") {
          return { text: stored.content.toString(), headers: [], attachments: [], ...facts };
        }
        const { bytes } = await contents.readMail(params["id"]!, client);
        return { ...(await parseMail(bytes)), ...facts };
      },
    }),
    defineRoute({
      ...operation,
      path: "/api/v1/messages/{id}/raw",
      summary: "A mail as its first recipient gets it",
      answer: bytes("message/rfc822"),
      handle: async ({ params, caller }) =>
        respondRaw((await contents.readMail(params["id"]!, visibleClient(caller))).bytes),
    }),
    defineRoute({
      ...operation,
      path: "/api/v1/messages/{id}/html",
      summary: "HTML view of a mail, without scripts and remote content",
      answer: bytes("text/html"),
      query: viewQuery,
      handle: async ({ params, query, caller }) => {
        const { bytes } = await contents.readMail(params["id"]!, visibleClient(caller));
        return respondView(await renderView(bytes), query);
      },
    }),
  ];
}

function toSummary(message: MessageRow, deliveries: readonly DeliveryRow[]) {
  return {
    message_id: message.id,
    status: summarizeStatus(deliveries),
    channel: message.channel,
    stream: message.stream,
    from: message.sender,
    subject: message.subject,
    template: message.template,
    tags: message.tags === null ? [] : (JSON.parse(message.tags) as string[]),
    metadata:
      message.metadata === null ? {} : (JSON.parse(message.metadata) as Record<string, unknown>),
    size_bytes: message.size_bytes,
    created_at: new Date(message.created_at).toISOString(),
    send_at: message.send_at === null ? null : new Date(message.send_at).toISOString(),
    expires_at: message.expires_at === null ? null : new Date(message.expires_at).toISOString(),
    resent_from: message.resent_from,
    sensitive: message.sensitive === 1,
    trace_id: message.trace_id,
    recipients: deliveries.map((one) => ({
      address: one.address,
      kind: one.kind,
      status: one.status,
      attempts: one.attempts,
      code: one.code,
      enhanced: one.enhanced,
      detail: one.detail,
      bounce_type: one.bounce_type,
      next_attempt_at:
        one.due_at === null || one.leased !== 0 ? null : new Date(one.due_at).toISOString(),
    })),
  };
}
