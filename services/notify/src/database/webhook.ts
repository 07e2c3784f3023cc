// Tables of webhooks and of their pending calls.
import type { Migration } from "@platform/kernel/db";
import type { TraceColumns } from "./trace.ts";

export interface WebhookRow {
  id: string;
  url: string;
  /** JSON array of event types; empty means all. */
  events: string;
  /** Sealed. */
  secret: string;
  /** The secret before the last rotation; it also signs until `previous_until`. */
  previous_secret: string | null;
  previous_until: number | null;
  created_at: number;
}

/** A call of a webhook: pending while `due_at` is set, then kept for replay until it expires. */
export interface WebhookCallRow extends TraceColumns {
  id: string;
  webhook_id: string;
  type: string;
  payload: string;
  status: "pending" | "delivered" | "failed";
  attempts: number;
  due_at: number | null;
  /** 1 during an attempt: `due_at` is the end of its lease. */
  leased: number;
  detail: string | null;
  created_at: number;
  /** See `checksum.ts`; null in rows of earlier versions. */
  checksum: number | null;
}

/** Tables of webhooks. */
export interface WebhookTables {
  notify_webhooks: WebhookRow;
  notify_webhook_calls: WebhookCallRow;
}

/** Migrations of these tables. */
export const WEBHOOK_MIGRATIONS: readonly Migration[] = [
  {
    id: "0001-webhooks",
    statements: (t) => [
      `create table notify_webhooks (
        id ${t.text} primary key, url ${t.text} not null, events ${t.text} not null, secret ${t.text} not null,
        previous_secret ${t.text}, previous_until ${t.integer}, created_at ${t.integer} not null)`,
      `create table notify_webhook_calls (
        id ${t.text} primary key, webhook_id ${t.text} not null references notify_webhooks (id) on delete cascade,
        type ${t.text} not null, payload ${t.text} not null, status ${t.text} not null,
        attempts ${t.integer} not null, due_at ${t.integer}, detail ${t.text}, created_at ${t.integer} not null)`,
      "create index notify_webhook_calls_due on notify_webhook_calls (webhook_id, due_at) where due_at is not null",
      "create index notify_webhook_calls_by_webhook on notify_webhook_calls (webhook_id, id)",
      "create index notify_webhook_calls_by_time on notify_webhook_calls (created_at)",
    ],
  },
  {
    id: "0002-trace",
    statements: (t) => [
      `alter table notify_webhook_calls add column traceparent ${t.text}`,
      `alter table notify_webhook_calls add column tracestate ${t.text}`,
    ],
  },
  {
    id: "0003-leases",
    statements: (t) => [
      `alter table notify_webhook_calls add column leased ${t.integer} not null default 0`,
    ],
  },
  {
    id: "0004-checksums",
    statements: (t) => [`alter table notify_webhook_calls add column checksum ${t.integer}`],
  },
];
