// Routes of the audit log.
import { defineRoute, pageQuery, readPage, type ApiRoute } from "@platform/kernel/http";
import { z } from "zod";
import type { AuditLog } from "../audit/audit-log.ts";
import { formatTime } from "../session/sessions.ts";
import { needPermission, type Identification } from "./principal.ts";
import { eventsAnswer } from "./responses.ts";

const time = z.iso.datetime({ offset: true }).transform((text) => Date.parse(text));

/** Options of these routes. */
export interface AuditRouteOptions {
  identification: Identification;
  audit: AuditLog;
}

export function createAuditRoutes({ identification, audit }: AuditRouteOptions): ApiRoute[] {
  const tag = "Audit";
  return [
    defineRoute({
      tag,
      method: "GET",
      path: "/api/v1/audit",
      summary: "Audit events, newest first",
      query: pageQuery.extend({
        target: z.string().max(512).optional(),
        action: z.string().max(64).optional(),
        actor: z.string().max(512).optional().describe("As in events: `user:<id>`."),
        from: time.optional().describe("Time of the earliest event, RFC 3339."),
        to: time.optional().describe("The events before this time, RFC 3339."),
      }),
      answer: eventsAnswer,
      access: needPermission("audit:read"),
      handle: async (exchange) => {
        identification.require(exchange);
        const { target, action, actor, from: fromMs, to: untilMs } = exchange.query;
        const page = await readPage(exchange.query, {
          key: z.int(),
          read: (limit, before) =>
            audit.list({ before, limit, target, action, actor, fromMs, untilMs }),
          keyOf: ({ seq }) => seq,
        });
        const events = page.items.map(({ at, detail, ...row }) => ({
          ...row,
          at: formatTime(at),
          detail: JSON.parse(detail) as unknown,
        }));
        return { events, next_cursor: page.next_cursor };
      },
    }),
    defineRoute({
      tag,
      method: "GET",
      path: "/api/v1/audit/verification",
      summary: "Verify the chain of the audit log",
      answer: z.object({ intact: z.boolean(), events: z.int(), broken_at: z.int().optional() }),
      access: needPermission("audit:read"),
      handle: async (exchange) => {
        identification.require(exchange);
        const { events, ...verdict } = await audit.verify();
        return verdict.intact
          ? { intact: true, events }
          : { intact: false, events, broken_at: verdict.brokenAt };
      },
    }),
  ];
}
