// Table of suppressed addresses.
import type { Migration } from "@platform/kernel/db";

/** Reasons for a suppression; `unsubscribe` concerns bulk messages only. */
export const SUPPRESSION_REASONS = ["hard_bounce", "complaint", "unsubscribe", "manual"] as const;

/** A reason for a suppression. */
export type SuppressionReason = (typeof SUPPRESSION_REASONS)[number];

/** A suppressed address in canonical form. */
export interface SuppressionRow {
  address: string;
  reason: SuppressionReason;
  /** The reply or report that caused it. */
  detail: string | null;
  message_id: string | null;
  suppressed_at: number;
  /** Time at which the address unsubscribed from bulk mail; kept under stronger reasons and after their removal. */
  unsubscribed_at: number | null;
}

/** Tables of suppression. */
export interface SuppressionTables {
  notify_suppressions: SuppressionRow;
}

/** Migrations of this table. */
export const SUPPRESSION_MIGRATIONS: readonly Migration[] = [
  {
    id: "0001-suppressions",
    statements: (t) => [
      `create table notify_suppressions (
        address ${t.text} primary key, reason ${t.text} not null, detail ${t.text}, message_id ${t.text},
        suppressed_at ${t.integer} not null)`,
    ],
  },
  {
    id: "0002-unsubscribed",
    statements: (t) => [
      `alter table notify_suppressions add column unsubscribed_at ${t.integer}`,
      "update notify_suppressions set unsubscribed_at = suppressed_at where reason = 'unsubscribe'",
    ],
  },
];
