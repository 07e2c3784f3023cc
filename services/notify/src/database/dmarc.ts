// Tables of aggregate DMARC reports: those about our domains, and those that we send to others.
import type { Migration } from "@platform/kernel/db";

/** An aggregate report that another receiver sent about one of our domains. */
export interface DmarcReportRow {
  org_name: string;
  report_id: string;
  domain: string;
  /** Period that the report covers. */
  begins_at: number;
  ends_at: number;
  total: number;
  aligned: number;
  failed_spf: number;
  failed_dkim: number;
  /** JSON array of the sources: `{source_ip, count, disposition, spf, dkim}`. */
  records: string;
  received_at: number;
}

/** The report of a day to a policy domain. `due_at` is the next attempt or the end of the lease; null when it has ended. */
export interface DmarcSentRow {
  domain: string;
  begins_at: number;
  status: "pending" | "sent" | "skipped" | "failed";
  attempts: number;
  due_at: number | null;
  /** Number of received messages in the report. */
  messages: number;
  /** JSON array of the addresses that it was sent to. */
  recipients: string;
  /** Reason why it was not sent, or not to all addresses. */
  detail: string;
  updated_at: number;
}

/** Tables of DMARC. */
export interface DmarcTables {
  notify_dmarc_reports: DmarcReportRow;
  notify_dmarc_sent: DmarcSentRow;
}

/** Migrations of these tables. */
export const DMARC_MIGRATIONS: readonly Migration[] = [
  {
    id: "0001-dmarc",
    statements: (t) => [
      `create table notify_dmarc_reports (
        org_name ${t.text} not null, report_id ${t.text} not null, domain ${t.text} not null,
        begins_at ${t.integer} not null, ends_at ${t.integer} not null, total ${t.integer} not null,
        aligned ${t.integer} not null, failed_spf ${t.integer} not null, failed_dkim ${t.integer} not null,
        records ${t.text} not null, received_at ${t.integer} not null,
        primary key (domain, org_name, report_id))`,
      "create index notify_dmarc_reports_by_time on notify_dmarc_reports (begins_at)",
    ],
  },
  {
    id: "0002-sent",
    statements: (t) => [
      `create table notify_dmarc_sent (
        domain ${t.text} not null, begins_at ${t.integer} not null, status ${t.text} not null,
        attempts ${t.integer} not null, due_at ${t.integer}, messages ${t.integer} not null,
        recipients ${t.text} not null, detail ${t.text} not null, updated_at ${t.integer} not null,
        primary key (begins_at, domain))`,
    ],
  },
  {
    // Reporters use one id again for other periods (RFC 7489 section 7.2.1.1 makes the range a part of the file's name).
    id: "0003-report-period",
    statements: (t) => [
      "alter table notify_dmarc_reports rename to notify_dmarc_reports_by_id",
      "drop index notify_dmarc_reports_by_time",
      `create table notify_dmarc_reports (
        org_name ${t.text} not null, report_id ${t.text} not null, domain ${t.text} not null,
        begins_at ${t.integer} not null, ends_at ${t.integer} not null, total ${t.integer} not null,
        aligned ${t.integer} not null, failed_spf ${t.integer} not null, failed_dkim ${t.integer} not null,
        records ${t.text} not null, received_at ${t.integer} not null,
        primary key (domain, org_name, report_id, begins_at, ends_at))`,
      "insert into notify_dmarc_reports select * from notify_dmarc_reports_by_id",
      "drop table notify_dmarc_reports_by_id",
      "create index notify_dmarc_reports_by_time on notify_dmarc_reports (begins_at)",
    ],
  },
];
