// DMARC: figures by month, and the aggregate reports about our domains.
import { z } from "zod";
import { defineRoute, type ApiRoute } from "@platform/kernel/http";
import type { Clock } from "@platform/kernel/time";
import type { DmarcReportRow, DmarcSentRow } from "../database/dmarc.ts";
import type { ReportSender } from "../dmarc/report-sender.ts";
import type { DmarcReports } from "../dmarc/reports.ts";
import { requireManager } from "./access.ts";

const REPORTS_MAX = 200;

const periodQuery = z.object({
  period: z
    .string()
    .regex(/^\d{4}-(?:0[1-9]|1[0-2])$/, "a month such as 2026-11")
    .optional()
    .describe("Month in UTC, `YYYY-MM`; default: the current one."),
});

/** Creates the routes. */
export function createDmarcRoutes(
  reports: DmarcReports,
  sender: ReportSender,
  clock: Clock,
): ApiRoute[] {
  const operation = { tag: "DMARC", access: requireManager, query: periodQuery } as const;
  return [
    defineRoute({
      ...operation,
      method: "GET",
      path: "/api/v1/dmarc/report",
      summary: "Figures of a month",
      description:
        "The totals are those of aggregate reports that others sent about the sending domains. `inbound` is about mail that this service received.",
      handle: async ({ query }) => {
        const { period, fromMs, toMs } = readPeriod(query.period, clock.now());
        const [totals, inbound] = [
          await reports.sumReports(fromMs, toMs),
          await reports.sumInbound(fromMs, toMs),
        ];
        return { period, ...totals, inbound };
      },
    }),
    defineRoute({
      ...operation,
      method: "GET",
      path: "/api/v1/dmarc/reports",
      summary: "Aggregate reports of a month, newest first",
      description: `At most ${REPORTS_MAX}.`,
      handle: async ({ query }) => {
        const { period, fromMs, toMs } = readPeriod(query.period, clock.now());
        return { period, reports: (await reports.list(fromMs, toMs, REPORTS_MAX)).map(toReport) };
      },
    }),
    defineRoute({
      ...operation,
      method: "GET",
      path: "/api/v1/dmarc/sent-reports",
      summary: "Aggregate reports of a month about received mail, to the domains that ask for them",
      description: `Newest first, at most ${REPORTS_MAX}.`,
      handle: async ({ query }) => {
        const { period, fromMs, toMs } = readPeriod(query.period, clock.now());
        return { period, reports: (await sender.list(fromMs, toMs, REPORTS_MAX)).map(toSent) };
      },
    }),
  ];
}

function readPeriod(text: string | undefined, nowMs: number) {
  const period = text ?? new Date(nowMs).toISOString().slice(0, 7);
  const [year, month] = [Number(period.slice(0, 4)), Number(period.slice(5))];
  return { period, fromMs: Date.UTC(year, month - 1), toMs: Date.UTC(year, month) };
}

function toReport(row: DmarcReportRow) {
  return {
    org_name: row.org_name,
    report_id: row.report_id,
    domain: row.domain,
    begins_at: new Date(row.begins_at).toISOString(),
    ends_at: new Date(row.ends_at).toISOString(),
    total_messages: row.total,
    aligned: row.aligned,
    failed_spf: row.failed_spf,
    failed_dkim: row.failed_dkim,
    sources: JSON.parse(row.records) as unknown,
  };
}

function toSent(row: DmarcSentRow) {
  return {
    domain: row.domain,
    day: new Date(row.begins_at).toISOString().slice(0, 10),
    status: row.status,
    messages: row.messages,
    recipients: JSON.parse(row.recipients) as string[],
    detail: row.detail,
  };
}
