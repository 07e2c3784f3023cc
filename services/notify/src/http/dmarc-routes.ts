// DMARC: figures by month, and the aggregate reports about our domains.
import { isIP } from "node:net";
import { z } from "zod";
import { defineRoute, nextCursor, pageQuery, readPage, type ApiRoute } from "@platform/kernel/http";
import type { Clock } from "@platform/kernel/time";
import type { DmarcReportRow, DmarcSentRow } from "../database/dmarc.ts";
import type { ReportSender } from "../dmarc/report-sender.ts";
import { dmarcFigures, type DmarcReports } from "../dmarc/reports.ts";
import {
  compareSources,
  dmarcSource,
  storedRecord,
  type DmarcSource,
  type StoredRecord,
} from "../dmarc/sources.ts";
import { requireManager } from "./access.ts";

const REPORTS_MAX = 200;

const periodQuery = z.object({
  period: z
    .string()
    .regex(/^\d{4}-(?:0[1-9]|1[0-2])$/, "a month such as 2026-11")
    .optional()
    .describe("Month in UTC, `YYYY-MM`; default: the current one."),
});

const sourceAddress = z
  .string()
  .max(45)
  .refine((text) => isIP(text) !== 0, "an IPv4 or IPv6 address");

const sourcesQuery = pageQuery.extend(periodQuery.shape).extend({
  source: sourceAddress.optional().describe("Only this address."),
  domain: z.string().max(253).toLowerCase().optional().describe("Only reports about this domain."),
});

const reportAnswer = dmarcFigures
  .extend({ period: z.string(), inbound: dmarcFigures })
  .describe("Without `source`");

const sourceAnswer = dmarcFigures
  .extend({
    period: z.string(),
    source: z.string(),
    ...dmarcSource.pick({ dispositions: true, domains: true, reporters: true }).shape,
  })
  .describe("With `source`");

const receivedReport = z.object({
  org_name: z.string(),
  report_id: z.string(),
  domain: z.string(),
  begins_at: z.string(),
  ends_at: z.string(),
  ...dmarcFigures.shape,
  sources: z.array(storedRecord),
});

const sentReport = z.object({
  domain: z.string(),
  day: z.string(),
  status: z.enum(["pending", "sent", "skipped", "failed"]),
  messages: z.int(),
  recipients: z.array(z.string()),
  detail: z.string(),
});

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
        "The totals are those of aggregate reports that others sent about the sending domains. `inbound` is about mail that this service received. With `source`, they are about one host that sends in the name of the domains.",
      query: periodQuery.extend({ source: sourceAddress.optional() }),
      answer: z.union([reportAnswer, sourceAnswer]),
      handle: async ({ query }) => {
        const { period, fromMs, toMs } = readPeriod(query.period, clock.now());
        if (query.source !== undefined) {
          const range = { fromMs, toMs, source: query.source };
          const { sources } = await reports.sumSources(range);
          return { period, source: query.source, ...toFigures(sources[0]) };
        }
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
      path: "/api/v1/dmarc/sources",
      summary: "Figures of a month by source, those with most messages first",
      description:
        "Sums the latest 10 000 reports and at most 10 000 sources; `is_cut` is true if there are more.",
      query: sourcesQuery,
      answer: z.object({
        period: z.string(),
        sources: z.array(dmarcSource),
        next_cursor: nextCursor,
        is_cut: z.boolean(),
      }),
      handle: async ({ query }) => {
        const { period, fromMs, toMs } = readPeriod(query.period, clock.now());
        const { source, domain } = query;
        const { sources, isCut } = await reports.sumSources({ fromMs, toMs, source, domain });
        const page = await readPage(query, {
          key: z.string().regex(/^\d{1,15} [0-9a-fA-F.:]{0,255}$/),
          read: async (limit, after) => sources.filter(isAfter(after)).slice(0, limit),
          keyOf: (one) => `${one.total_messages} ${one.source_ip}`,
        });
        return { period, sources: page.items, next_cursor: page.next_cursor, is_cut: isCut };
      },
    }),
    defineRoute({
      ...operation,
      method: "GET",
      path: "/api/v1/dmarc/reports",
      summary: "Aggregate reports of a month, newest first",
      description: `At most ${REPORTS_MAX}.`,
      answer: z.object({ period: z.string(), reports: z.array(receivedReport) }),
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
      answer: z.object({ period: z.string(), reports: z.array(sentReport) }),
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

function isAfter(key: string | undefined): (source: DmarcSource) => boolean {
  if (key === undefined) return () => true;
  const [count = "", address = ""] = key.split(" ");
  const last = { total_messages: Number(count), source_ip: address };
  return (source) => compareSources(source, last) > 0;
}

function toFigures(source: DmarcSource | undefined) {
  return {
    total_messages: source?.total_messages ?? 0,
    aligned: source?.aligned ?? 0,
    failed_spf: source?.spf.fail ?? 0,
    failed_dkim: source?.dkim.fail ?? 0,
    dispositions: source?.dispositions ?? { none: 0, quarantine: 0, reject: 0 },
    domains: source?.domains ?? [],
    reporters: source?.reporters ?? [],
  };
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
    sources: JSON.parse(row.records) as StoredRecord[],
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
