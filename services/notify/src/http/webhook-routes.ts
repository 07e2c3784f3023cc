// Webhooks: create, list, delete, rotate the secret, list and replay calls.
import { z } from "zod";
import type { EgressFetch } from "@platform/kernel/egress";
import {
  defineRoute,
  nextCursor,
  pageQuery,
  readPage,
  type ApiRoute,
  NO_BODY,
} from "@platform/kernel/http";
import type { WebhookRow } from "../database/webhook.ts";
import { WEBHOOK_EVENTS } from "../webhook/event.ts";
import type { Webhooks } from "../webhook/webhooks.ts";
import { requireManager } from "./access.ts";
import { requireAllowedTarget } from "./target.ts";

const webhookBody = z.strictObject({
  url: z.url({ protocol: /^https?$/ }).max(2_048),
  events: z
    .array(z.enum(WEBHOOK_EVENTS))
    .max(WEBHOOK_EVENTS.length)
    .default([])
    .describe("Empty: all."),
});

const webhookAnswer = z.object({
  id: z.string(),
  url: z.string(),
  events: z.array(z.string()).describe("Empty: all"),
  created_at: z.string(),
});

const callAnswer = z.object({
  id: z.string(),
  type: z.string(),
  status: z.enum(["pending", "delivered", "failed"]),
  attempts: z.int(),
  detail: z.string().nullable(),
  created_at: z.string(),
  payload: z.unknown().describe("The JSON body of the call"),
});

/** Creates the routes. `probe` sends a HEAD request to find out whether the address of a target is allowed. */
export function createWebhookRoutes(webhooks: Webhooks, probe: EgressFetch): ApiRoute[] {
  const operation = { tag: "Webhooks", access: requireManager } as const;
  return [
    defineRoute({
      ...operation,
      method: "POST",
      path: "/api/v1/webhooks",
      summary: "Create a webhook",
      description:
        "Calls are signed by the Standard Webhooks specification. The secret is shown only in this response.",
      body: webhookBody,
      status: 201,
      problems: { 422: "The URL is, or resolves to, a private address" },
      answer: webhookAnswer.extend({ secret: z.string() }),
      handle: async ({ body }) => {
        await requireAllowedTarget(probe, body.url, "url");
        const { row, secret } = await webhooks.create(body.url, body.events);
        return { ...toSummary(row), secret };
      },
    }),
    defineRoute({
      ...operation,
      method: "GET",
      path: "/api/v1/webhooks",
      summary: "List webhooks",
      answer: z.object({ webhooks: z.array(webhookAnswer) }),
      handle: async () => ({ webhooks: (await webhooks.list()).map(toSummary) }),
    }),
    defineRoute({
      ...operation,
      method: "DELETE",
      path: "/api/v1/webhooks/{id}",
      summary: "Delete a webhook and its pending calls",
      answer: NO_BODY,
      handle: async ({ params }) => webhooks.remove(params["id"]!),
    }),
    defineRoute({
      ...operation,
      method: "POST",
      path: "/api/v1/webhooks/{id}/secret",
      summary: "Replace the secret; for 24 hours calls are signed with both",
      status: 201,
      answer: webhookAnswer.extend({ secret: z.string() }),
      handle: async ({ params }) => {
        const { row, secret } = await webhooks.rotate(params["id"]!);
        return { ...toSummary(row), secret };
      },
    }),
    defineRoute({
      ...operation,
      method: "GET",
      path: "/api/v1/webhooks/{id}/calls",
      summary: "List the calls of the last week, newest first",
      query: pageQuery,
      answer: z.object({ calls: z.array(callAnswer), next_cursor: nextCursor }),
      handle: async ({ params, query }) => {
        const page = await readPage(query, {
          key: z.string().max(64),
          read: (limit, before) => webhooks.listCalls(params["id"]!, limit, before),
          keyOf: ({ id }) => id,
        });
        const calls = page.items.map((call) => ({
          id: call.id,
          type: call.type,
          status: call.status,
          attempts: call.attempts,
          detail: call.detail,
          created_at: new Date(call.created_at).toISOString(),
          payload: JSON.parse(call.payload) as unknown,
        }));
        return { calls, next_cursor: page.next_cursor };
      },
    }),
    defineRoute({
      ...operation,
      method: "POST",
      path: "/api/v1/webhooks/{id}/calls/{call}/replay",
      summary: "Repeat a call, with the same id",
      status: 202,
      answer: z.object({ status: z.literal("pending") }),
      handle: async ({ params }) => {
        await webhooks.replay(params["id"]!, params["call"]!);
        return { status: "pending" as const };
      },
    }),
  ];
}

function toSummary({ id, url, events, created_at }: WebhookRow) {
  return {
    id,
    url,
    events: JSON.parse(events) as string[],
    created_at: new Date(created_at).toISOString(),
  };
}
