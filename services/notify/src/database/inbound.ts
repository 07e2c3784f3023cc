// Tables of inbound mail: rules, received messages, their contents, and forwards to webhooks.
import type { Migration } from "@platform/kernel/db";
import type { TraceColumns } from "./trace.ts";

/** A rule: mail for matching addresses is forwarded to a URL. */
export interface InboundRuleRow {
  id: string;
  name: string;
  /** Glob with `*` for the recipient's address, in lower case. */
  pattern: string;
  forward_to: string;
  /** Rules with a higher priority match first; then older ones. */
  priority: number;
  /** Sealed. */
  secret: string;
  /** The secret before the last rotation; it also signs until `previous_until`. */
  previous_secret: string | null;
  previous_until: number | null;
  created_at: number;
}

/** States of a received message. Quarantined messages are kept, but forwarded only on request. */
export const INBOUND_STATUSES = ["accepted", "quarantined", "rejected"] as const;

/** State of a received message. */
export type InboundStatus = (typeof INBOUND_STATUSES)[number];

/** Purposes of messages by their recipient. */
export const INBOUND_KINDS = ["mail", "bounce", "complaint", "dmarc_report", "postmaster"] as const;

/** Purpose of a message by its recipient. */
export type InboundKind = (typeof INBOUND_KINDS)[number];

/** A received message. Rejected ones have no content; they count for DMARC reports only. */
export interface InboundRow {
  /** A UUID version 7: sorts by time. */
  id: string;
  kind: InboundKind;
  status: InboundStatus;
  /** Sender of the envelope; "" for bounces. */
  sender: string;
  /** JSON array of the recipients of the envelope. */
  recipients: string;
  client_address: string;
  helo: string;
  header_from: string;
  from_domain: string;
  subject: string;
  message_id: string;
  size_bytes: number;
  /** Results of the checks, as in Authentication-Results. */
  spf: string;
  spf_domain: string;
  dkim: string;
  /** JSON array of the signatures: `{domain, selector, result, aligned}`. */
  dkim_results: string;
  dmarc: string;
  /** Result of the ARC chain, and the domain of its last seal. */
  arc: string;
  arc_domain: string;
  spf_aligned: number;
  dkim_aligned: number;
  /** Domain and policy of the DMARC record; "" without one. */
  policy_domain: string;
  policy: string;
  received_at: number;
  /** 1 while the report in this message has not been read. */
  unread: number;
}

/** The content of a received message, with the trace fields that the service adds. */
interface InboundBodyRow {
  inbound_id: string;
  content: Uint8Array;
  expires_at: number;
  /** See `checksum.ts`; null in rows of earlier versions. */
  checksum: number | null;
}

/** The forward of a message by a rule. `due_at` is the next attempt or the end of the lease; null when it has ended. */
export interface InboundForwardRow extends TraceColumns {
  inbound_id: string;
  rule_id: string;
  /** JSON array of the recipients that the rule matched. */
  recipients: string;
  status: "pending" | "delivered" | "failed";
  attempts: number;
  /** Number of leases; a result is recorded only if no other lease followed. */
  fence: number;
  due_at: number | null;
  /** 1 during an attempt: `due_at` is the end of its lease. */
  leased: number;
  /** Response or error of the last attempt. */
  detail: string | null;
  updated_at: number;
}

/** Tables of inbound mail. */
export interface InboundTables {
  notify_inbound_rules: InboundRuleRow;
  notify_inbound: InboundRow;
  notify_inbound_bodies: InboundBodyRow;
  notify_inbound_forwards: InboundForwardRow;
}

/** Migrations of these tables. */
export const INBOUND_MIGRATIONS: readonly Migration[] = [
  {
    id: "0001-inbound",
    statements: (t) => [
      `create table notify_inbound_rules (
        id ${t.text} primary key, name ${t.text} not null, pattern ${t.text} not null, forward_to ${t.text} not null,
        priority ${t.integer} not null, secret ${t.text} not null, previous_secret ${t.text},
        previous_until ${t.integer}, created_at ${t.integer} not null)`,
      `create table notify_inbound (
        id ${t.text} primary key, kind ${t.text} not null, status ${t.text} not null, sender ${t.text} not null,
        recipients ${t.text} not null, client_address ${t.text} not null, helo ${t.text} not null,
        header_from ${t.text} not null, from_domain ${t.text} not null, subject ${t.text} not null,
        message_id ${t.text} not null, size_bytes ${t.integer} not null,
        spf ${t.text} not null, spf_domain ${t.text} not null, dkim ${t.text} not null, dkim_results ${t.text} not null,
        dmarc ${t.text} not null, spf_aligned ${t.integer} not null, dkim_aligned ${t.integer} not null,
        policy_domain ${t.text} not null, policy ${t.text} not null,
        received_at ${t.integer} not null, unread ${t.integer} not null)`,
      "create index notify_inbound_by_time on notify_inbound (received_at)",
      "create index notify_inbound_unread on notify_inbound (id) where unread = 1",
      `create table notify_inbound_bodies (
        inbound_id ${t.text} primary key, content ${t.bytes} not null, expires_at ${t.integer} not null)`,
      "create index notify_inbound_bodies_by_expiry on notify_inbound_bodies (expires_at)",
      `create table notify_inbound_forwards (
        inbound_id ${t.text} not null, rule_id ${t.text} not null, recipients ${t.text} not null,
        status ${t.text} not null, attempts ${t.integer} not null, fence ${t.integer} not null, due_at ${t.integer},
        detail ${t.text}, updated_at ${t.integer} not null,
        primary key (inbound_id, rule_id))`,
      "create index notify_inbound_forwards_due on notify_inbound_forwards (rule_id, due_at) where due_at is not null",
    ],
  },
  {
    id: "0002-arc",
    statements: (t) => [
      `alter table notify_inbound add column arc ${t.text} not null default 'none'`,
      `alter table notify_inbound add column arc_domain ${t.text} not null default ''`,
    ],
  },
  {
    id: "0003-by-policy",
    statements: () => [
      "create index notify_inbound_by_policy on notify_inbound (policy_domain, received_at)",
    ],
  },
  {
    id: "0004-trace",
    statements: (t) => [
      `alter table notify_inbound_forwards add column traceparent ${t.text}`,
      `alter table notify_inbound_forwards add column tracestate ${t.text}`,
    ],
  },
  {
    id: "0005-leases",
    statements: (t) => [
      `alter table notify_inbound_forwards add column leased ${t.integer} not null default 0`,
    ],
  },
  {
    id: "0006-checksums",
    statements: (t) => [`alter table notify_inbound_bodies add column checksum ${t.integer}`],
  },
];
