// Aggregate reports about our domains: read from received mail, stored once, summed by month.
import { z } from "zod";
import { sql } from "kysely";
import type { Clock } from "@platform/kernel/time";
import type { DmarcReportRow } from "../database/dmarc.ts";
import type { InboundRow } from "../database/inbound.ts";
import type { NotifyDatabase } from "../database/schema.ts";
import { parseExactMail } from "../message/exact-mail.ts";
import { InvalidReportError } from "../inbound/report-reader.ts";
import { parseAggregate, type AggregateReport } from "./aggregate.ts";
import { unpackReport } from "./archive.ts";
import { sumSources, type DmarcSources, type SourceQuery } from "./sources.ts";

/** Options of {@link DmarcReports}. */
export interface DmarcReportsOptions {
  database: NotifyDatabase;
  clock: Clock;
  isOwnDomain: (domain: string) => boolean;
}

/** Figures of a period, for the API. */
export const dmarcFigures = z.object({
  total_messages: z.int(),
  aligned: z.int(),
  failed_spf: z.int(),
  failed_dkim: z.int(),
});

/** Figures of a period. */
export type DmarcFigures = z.infer<typeof dmarcFigures>;

const NESTING_MAX = 10;
const SOURCES_MAX = 500;
const RETENTION_MS = 400 * 86_400_000;
const ARCHIVE = /^(?:application\/(?:gzip|x-gzip|zip|x-zip-compressed|xml)|text\/xml)$/i;

/** Aggregate reports. */
export class DmarcReports {
  readonly #options: DmarcReportsOptions;

  constructor(options: DmarcReportsOptions) {
    this.#options = options;
  }

  /**
   * Stores the report in a message; a repeated one changes nothing. Rejects with InvalidReportError if its sender is not
   * authenticated, it is about another domain, or it cannot be unpacked and parsed.
   */
  async read(
    { spf_aligned, dkim_aligned }: Pick<InboundRow, "spf_aligned" | "dkim_aligned">,
    content: Buffer,
  ): Promise<void> {
    // A pass for another domain than that of From says nothing about the sender (RFC 9990).
    if (spf_aligned === 0 && dkim_aligned === 0) {
      throw new InvalidReportError(
        "the sender of the report is not authenticated by SPF or DKIM for the domain of From",
      );
    }
    const report = await parseMessage(content);
    if (!this.#options.isOwnDomain(report.domain)) {
      throw new InvalidReportError(`the report is about another domain: ${report.domain}`);
    }
    await this.#options.database.db
      .insertInto("notify_dmarc_reports")
      .values(toRow(report, this.#options.clock.now()))
      .onConflict((conflict) =>
        conflict.columns(["domain", "org_name", "report_id", "begins_at", "ends_at"]).doNothing(),
      )
      .execute();
  }

  /** Returns the figures of reports about our domains whose period began in a time range. */
  async sumReports(fromMs: number, toMs: number): Promise<DmarcFigures> {
    return this.#options.database.db
      .selectFrom("notify_dmarc_reports")
      .select([
        sql<number>`coalesce(sum(total), 0)`.as("total_messages"),
        sql<number>`coalesce(sum(aligned), 0)`.as("aligned"),
        sql<number>`coalesce(sum(failed_spf), 0)`.as("failed_spf"),
        sql<number>`coalesce(sum(failed_dkim), 0)`.as("failed_dkim"),
      ])
      .where("begins_at", ">=", fromMs)
      .where("begins_at", "<", toMs)
      .executeTakeFirstOrThrow()
      .then(toNumbers);
  }

  /** Returns the figures of mail that this service received in a time range. */
  async sumInbound(fromMs: number, toMs: number): Promise<DmarcFigures> {
    return this.#options.database.db
      .selectFrom("notify_inbound")
      .select([
        sql<number>`count(*)`.as("total_messages"),
        sql<number>`coalesce(sum(case when spf_aligned + dkim_aligned > 0 then 1 else 0 end), 0)`.as(
          "aligned",
        ),
        sql<number>`coalesce(sum(1 - spf_aligned), 0)`.as("failed_spf"),
        sql<number>`coalesce(sum(1 - dkim_aligned), 0)`.as("failed_dkim"),
      ])
      .where("from_domain", "!=", "")
      .where("received_at", ">=", fromMs)
      .where("received_at", "<", toMs)
      .executeTakeFirstOrThrow()
      .then(toNumbers);
  }

  /** Sums the reports of a period by source. */
  sumSources(query: SourceQuery): Promise<DmarcSources> {
    return sumSources(this.#options.database, query);
  }

  /** Returns up to `max` reports of a time range, newest first. */
  async list(fromMs: number, toMs: number, max: number): Promise<DmarcReportRow[]> {
    return this.#options.database.db
      .selectFrom("notify_dmarc_reports")
      .selectAll()
      .where("begins_at", ">=", fromMs)
      .where("begins_at", "<", toMs)
      .orderBy("begins_at", "desc")
      .orderBy("report_id")
      .limit(max)
      .execute();
  }

  /** Deletes reports after 400 days. */
  async sweep(): Promise<void> {
    const { database, clock } = this.#options;
    await database.db
      .deleteFrom("notify_dmarc_reports")
      .where("received_at", "<=", clock.now() - RETENTION_MS)
      .execute();
  }
}

async function parseMessage(content: Buffer): Promise<AggregateReport> {
  try {
    const { attachments } = await parseExactMail(content, {
      maxNestingDepth: NESTING_MAX,
      attachmentEncoding: "arraybuffer",
    });
    const part = attachments.find(
      ({ mimeType, filename }) =>
        ARCHIVE.test(mimeType) || /\.(?:xml|zip|gz)$/i.test(filename ?? ""),
    );
    if (part === undefined) throw new Error("the message has no report attached");
    const xml = await unpackReport(Buffer.from(part.content as ArrayBuffer));
    return parseAggregate(xml.toString());
  } catch (error) {
    throw new InvalidReportError(error instanceof Error ? error.message : "invalid report", {
      cause: error,
    });
  }
}

function toRow(report: AggregateReport, nowMs: number): DmarcReportRow {
  const { records, orgName, reportId, domain, beginsAt, endsAt } = report;
  const sum = (filter: (record: (typeof records)[number]) => boolean): number =>
    records.filter(filter).reduce((total, { count }) => total + count, 0);
  const sources = records
    .toSorted((a, b) => b.count - a.count)
    .slice(0, SOURCES_MAX)
    .map(({ sourceIp, count, disposition, spf, dkim }) => ({
      source_ip: sourceIp,
      count,
      disposition,
      spf,
      dkim,
    }));
  return {
    org_name: orgName,
    report_id: reportId,
    domain,
    begins_at: beginsAt,
    ends_at: endsAt,
    total: sum(() => true),
    aligned: sum(({ spf, dkim }) => spf === "pass" || dkim === "pass"),
    failed_spf: sum(({ spf }) => spf === "fail"),
    failed_dkim: sum(({ dkim }) => dkim === "fail"),
    records: JSON.stringify(sources).replaceAll("\\u0000", ""),
    received_at: nowMs,
  };
}

// Sums of PostgreSQL are strings.
function toNumbers(row: Record<keyof DmarcFigures, unknown>): DmarcFigures {
  return {
    total_messages: Number(row.total_messages),
    aligned: Number(row.aligned),
    failed_spf: Number(row.failed_spf),
    failed_dkim: Number(row.failed_dkim),
  };
}
