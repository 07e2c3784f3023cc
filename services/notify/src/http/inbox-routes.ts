// The development inbox: list, read, raw, HTML view, delete.
import { z } from "zod";
import { PlatformError } from "@platform/kernel/errors";
import {
  bytes,
  defineRoute,
  nextCursor,
  pageQuery,
  type ApiRoute,
  NO_BODY,
} from "@platform/kernel/http";
import { CHANNELS } from "../database/message.ts";
import type { InboxRow } from "../database/inbox.ts";
import type { Inbox, InboxItem } from "../inbox/inbox.ts";
import { parsedMail, parseMail, renderView } from "../inbox/view.ts";
import { requireManager } from "./access.ts";
import { listMessages, respondRaw, respondView, viewQuery } from "./stored-mail.ts";

const inboxItem = z.object({
  message_id: z.string(),
  channel: z.enum(CHANNELS),
  from: z.string(),
  to: z.array(z.string()),
  subject: z.string(),
  size_bytes: z.int(),
  received_at: z.string(),
  expires_at: z.string(),
});

/** Creates the routes. `inbox` is undefined if a relay is configured: the operations then answer 404. */
export function createInboxRoutes(inbox: Inbox | undefined): ApiRoute[] {
  const operation = { tag: "Development inbox", access: requireManager } as const;
  const requireInbox = (): Inbox => {
    if (inbox !== undefined) return inbox;
    throw new PlatformError(
      "not_found",
      "There is no inbox: mail is sent to the configured relay.",
    );
  };
  const read = async (id: string): Promise<InboxRow> => {
    const row = await requireInbox().read(id);
    if (row === undefined) throw new PlatformError("not_found", "There is no such message.");
    return row;
  };
  return [
    defineRoute({
      ...operation,
      method: "GET",
      path: "/api/v1/inbox",
      summary: "List messages, newest first",
      query: pageQuery.extend({
        q: z
          .string()
          .max(200)
          .regex(/^\P{Cc}*$/u, "no control characters")
          .optional()
          .describe("Text in the subject or an address."),
      }),
      answer: z.object({
        messages: z.array(inboxItem.extend({ template: z.string().nullable() })),
        next_cursor: nextCursor,
      }),
      handle: async ({ query }) => {
        const found = requireInbox();
        const list = {
          key: z.int(),
          read: (limit: number, before: number | undefined) => found.list(limit, before, query.q),
          keyOf: ({ id }: InboxItem) => id,
        };
        return listMessages(query, list, (row) => ({ ...toSummary(row), template: row.template }));
      },
    }),
    defineRoute({
      ...operation,
      method: "DELETE",
      path: "/api/v1/inbox",
      summary: "Delete all messages",
      answer: z.object({ deleted: z.int() }),
      handle: async () => ({ deleted: await requireInbox().remove() }),
    }),
    defineRoute({
      ...operation,
      method: "GET",
      path: "/api/v1/inbox/{id}",
      summary: "Read a message",
      answer: inboxItem.extend(parsedMail.shape),
      handle: async ({ params }) => {
        const row = await read(params["id"]!);
        if (row.channel === "sms")
          return { ...toSummary(row), headers: [], text: toText(row), attachments: [] };
        return { ...toSummary(row), ...(await parseMail(row.content)) };
      },
    }),
    defineRoute({
      ...operation,
      method: "DELETE",
      path: "/api/v1/inbox/{id}",
      summary: "Delete a message",
      answer: NO_BODY,
      handle: async ({ params }) => {
        if ((await requireInbox().remove(params["id"])) > 0) return undefined;
        throw new PlatformError("not_found", "There is no such message.");
      },
    }),
    defineRoute({
      ...operation,
      method: "GET",
      path: "/api/v1/inbox/{id}/raw",
      summary: "The message as it would be sent",
      answer: bytes("message/rfc822"),
      handle: async ({ params }) => {
        return respondRaw((await read(params["id"]!)).content);
      },
    }),
    defineRoute({
      ...operation,
      method: "GET",
      path: "/api/v1/inbox/{id}/html",
      summary: "HTML view of a message, without scripts and remote content",
      answer: bytes("text/html"),
      query: viewQuery,
      handle: async ({ params, query }) =>
        respondView(await renderView((await read(params["id"]!)).content), query),
    }),
  ];
}

function toSummary(row: InboxItem) {
  return {
    message_id: row.message_id,
    channel: row.channel,
    from: row.sender,
    to: JSON.parse(row.recipients) as string[],
    subject: row.subject,
    size_bytes: row.size_bytes,
    received_at: new Date(row.received_at).toISOString(),
    expires_at: new Date(row.expires_at).toISOString(),
  };
}

function toText({ content }: InboxRow): string {
  return Buffer.from(content.buffer, content.byteOffset, content.byteLength).toString();
}
