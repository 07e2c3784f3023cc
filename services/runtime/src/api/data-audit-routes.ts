// The audit log of the data pages.
import { defineRoute, pageQuery, readPage, type ApiRoute } from "@platform/kernel/http";
import { z } from "zod";
import type { DataService } from "../data/data-service.ts";
import { requireRead } from "./access.ts";
import { DATA_TAG } from "./data-routes.ts";

const eventSchema = z.object({
  seq: z.int(),
  at: z.string().meta({ description: "RFC 3339" }),
  action: z.string(),
  outcome: z.enum(["success", "failure"]),
  actor: z.string().meta({ description: "`user:<id>`, `client:<id>` or `operator`" }),
  target: z.string().meta({ description: "project and database" }),
  detail: z.record(z.string(), z.unknown()),
});

export function createDataAuditRoutes(data: DataService): ApiRoute[] {
  const common = { tag: DATA_TAG, access: requireRead } as const;
  return [
    defineRoute({
      ...common,
      method: "GET",
      path: "/api/v1/data-audit",
      summary: "Queries and changes on the data pages, newest first",
      query: pageQuery.extend({
        target: z.string().max(512).optional().describe("Project and database, with `/`."),
        actor: z.string().max(512).optional().describe("As in events: `user:<id>`."),
      }),
      answer: z.object({ items: z.array(eventSchema), next_cursor: z.string().nullable() }),
      handle: async ({ query }) => {
        const { audit } = await data.openStore();
        const { target, actor } = query;
        const page = await readPage(query, {
          key: z.int(),
          read: (limit, before) => audit.list({ before, limit, target, actor }),
          keyOf: ({ seq }) => seq,
        });
        const items = page.items.map(({ at, detail, ip: _ip, hash: _hash, ...row }) => ({
          ...row,
          at: new Date(at).toISOString(),
          detail: JSON.parse(detail) as Record<string, unknown>,
        }));
        return { items, next_cursor: page.next_cursor };
      },
    }),
    defineRoute({
      ...common,
      method: "GET",
      path: "/api/v1/data-audit/verification",
      summary: "Verify the chain of this log",
      answer: z.object({ intact: z.boolean(), events: z.int(), broken_at: z.int().optional() }),
      handle: async () => {
        const { audit } = await data.openStore();
        const { events, ...verdict } = await audit.verify();
        return verdict.intact
          ? { intact: true, events }
          : { intact: false, events, broken_at: verdict.brokenAt };
      },
    }),
  ];
}
