// The audit log of the data pages.
import { defineRoute, pageQuery, readPage, type ApiRoute } from "@platform/kernel/http";
import { z } from "zod";
import type { AuditLog, AuditRow } from "@platform/kernel/audit";
import type { DataService } from "../data/data-service.ts";
import { requireRead } from "./access.ts";
import { DATA_TAG } from "./data-routes.ts";

/** A change ends within this time: its statement has a limit of some seconds. */
const END_MS = 60_000;
/** Entries that are searched for the end of a change. */
const END_MAX = 500;

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
      description:
        'A change is stored before it is made, and again when it has ended; only the latter is listed then. One with `state: "begun"` in its detail has no known end: the platform may have been killed meanwhile.',
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
        const items = page.items.map(toDocument);
        const ended = await listEnded(audit, items);
        const shown = items.filter(({ detail }) => !isBegun(detail) || !ended.has(detail.change));
        return { items: shown, next_cursor: page.next_cursor };
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

type EventDocument = z.input<typeof eventSchema>;

function toDocument({ at, detail, ip: _ip, hash: _hash, ...row }: AuditRow): EventDocument {
  const document = JSON.parse(detail) as Record<string, unknown>;
  return { ...row, at: new Date(at).toISOString(), detail: document };
}

function isBegun(detail: EventDocument["detail"]): detail is { change: string } {
  return detail["state"] === "begun" && typeof detail["change"] === "string";
}

/** Changes of a page that have ended: their second entries follow soon, perhaps on another page. */
async function listEnded(
  audit: Pick<AuditLog, "list">,
  items: readonly EventDocument[],
): Promise<Set<unknown>> {
  const ended = new Set<unknown>();
  const note = ({ detail }: EventDocument): void => {
    if (!isBegun(detail)) ended.add(detail["change"]);
  };
  for (const item of items) note(item);
  for (const { at, target, detail } of items) {
    if (!isBegun(detail) || ended.has(detail.change)) continue;
    const fromMs = Date.parse(at);
    const filter = { target, fromMs, untilMs: fromMs + END_MS, limit: END_MAX };
    for (const row of await audit.list(filter)) note(toDocument(row));
  }
  return ended;
}
