// Figures of deliveries in a period.
import { z } from "zod";
import { createValidationError, defineRoute, type ApiRoute } from "@platform/kernel/http";
import type { Clock } from "@platform/kernel/time";
import { DIMENSIONS, figureAnswer, type Analytics } from "../analytics/analytics.ts";
import { STREAMS } from "../database/message.ts";
import { requireSender, visibleClient } from "./access.ts";

const DAY_MS = 86_400_000;
const DAYS_DEFAULT = 7;
const DAYS_MAX = 92;

const analyticsQuery = z.object({
  from: z.iso.date().optional().describe("First day in UTC; default: six days before `to`."),
  to: z.iso.date().optional().describe("Last day in UTC; default: today."),
  by: z.enum(DIMENSIONS).default("day"),
  stream: z.enum(STREAMS).optional(),
  template: z.string().max(128).optional(),
});

const label = z.string().nullable().optional();
const analyticsAnswer = z.object({
  from: z.string(),
  to: z.string(),
  by: z.enum(DIMENSIONS),
  totals: figureAnswer,
  groups: z
    .array(
      figureAnswer.extend({
        day: label,
        stream: label,
        tag: label,
        template: label,
        channel: label,
      }),
    )
    .describe("The value of the dimension under its name, and the figures"),
});

export function createAnalyticsRoutes(analytics: Analytics, clock: Clock): ApiRoute[] {
  return [
    defineRoute({
      method: "GET",
      path: "/api/v1/analytics",
      tag: "Analytics",
      access: requireSender,
      summary: "Figures of the messages accepted in a period",
      description: `Recipients by status, and recipients who opened, clicked, unsubscribed or complained; \`by\` day, stream, tag, template or channel. At most ${DAYS_MAX} days. Clients see the figures of their own messages.`,
      query: analyticsQuery,
      answer: analyticsAnswer,
      handle: async ({ query, caller }) => {
        const { from, to, fromMs, toMs } = readPeriod(query, clock.now());
        const { by, stream, template } = query;
        const client = visibleClient(caller);
        const found = await analytics.read({ fromMs, toMs, by, client, stream, template });
        const groups = found.groups.map(({ key, figures }) => ({ [by]: key, ...figures }));
        return { from, to, by, totals: found.totals, groups };
      },
    }),
  ];
}

function readPeriod(query: { from?: string | undefined; to?: string | undefined }, nowMs: number) {
  const format = (ms: number): string => new Date(ms).toISOString().slice(0, 10);
  const to = query.to ?? format(nowMs);
  const from = query.from ?? format(Date.parse(to) - (DAYS_DEFAULT - 1) * DAY_MS);
  const fromMs = Date.parse(from);
  const toMs = Date.parse(to) + DAY_MS;
  const fail = (message: string): never => {
    throw createValidationError([{ in: "query", path: "from", message }]);
  };
  if (fromMs < 0) fail("a day from 1970 on");
  if (fromMs >= toMs) fail("later than to");
  if (toMs - fromMs > DAYS_MAX * DAY_MS) fail(`at most ${DAYS_MAX} days before to`);
  return { from, to, fromMs, toMs };
}
