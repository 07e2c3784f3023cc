// Stored messages: list, status with events, cancel.
import { z } from "zod";
import { defineRoute, pageQuery, readPage, type ApiRoute } from "@platform/kernel/http";
import {
  DELIVERY_STATUSES,
  STREAMS,
  type DeliveryRow,
  type MessageRow,
} from "../database/message.ts";
import { summarizeStatus, type Messages } from "../send/messages.ts";
import { requireSender, visibleClient } from "./access.ts";

const listQuery = pageQuery.extend({
  status: z.enum(DELIVERY_STATUSES).optional(),
  to: z.string().max(320).optional(),
  template: z.string().max(128).optional(),
  stream: z.enum(STREAMS).optional(),
  tag: z.string().max(64).optional(),
});

/** Creates the routes. */
export function createMessageRoutes(messages: Messages): ApiRoute[] {
  const operation = { tag: "Messages", access: requireSender } as const;
  return [
    defineRoute({
      ...operation,
      method: "GET",
      path: "/api/v1/messages",
      summary: "List messages, newest first",
      query: listQuery,
      handle: async ({ query, caller }) => {
        const { limit, cursor, ...filter } = query;
        const page = await readPage(
          { limit, cursor },
          {
            key: z.string().max(64),
            read: (max, before) =>
              messages.list({ ...filter, client: visibleClient(caller), limit: max, before }),
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
      handle: async ({ params, caller }) => {
        const canceled = await messages.cancel(params["id"]!, visibleClient(caller));
        return { status: "canceled", message_id: params["id"], canceled };
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
    tags: message.tags === null ? [] : (JSON.parse(message.tags) as unknown),
    metadata: message.metadata === null ? {} : (JSON.parse(message.metadata) as unknown),
    size_bytes: message.size_bytes,
    created_at: new Date(message.created_at).toISOString(),
    send_at: message.send_at === null ? null : new Date(message.send_at).toISOString(),
    expires_at: message.expires_at === null ? null : new Date(message.expires_at).toISOString(),
    recipients: deliveries.map((one) => ({
      address: one.address,
      kind: one.kind,
      status: one.status,
      attempts: one.attempts,
      code: one.code,
      enhanced: one.enhanced,
      detail: one.detail,
      next_attempt_at:
        one.due_at === null || one.leased === 1 ? null : new Date(one.due_at).toISOString(),
    })),
  };
}
