// Tables of the audit log.
import type { Migration } from "@platform/kernel/db";

/** One event. `at` is in ms; each row's `hash` covers the row and the hash before it. */
export interface AuditRow {
  seq: number;
  at: number;
  action: string;
  outcome: "success" | "failure";
  actor: string;
  target: string;
  ip: string;
  /** JSON. */
  detail: string;
  hash: string;
}

export interface AuditTables {
  auth_audit: AuditRow;
  /** One row: the last event, and the start of the chain after older events were deleted. */
  auth_audit_head: { id: number; seq: number; hash: string; first_seq: number; anchor: string };
}

/** Migrations of the audit tables. */
export const AUDIT_MIGRATIONS: readonly Migration[] = [
  {
    id: "0001-audit",
    statements: (t) => [
      `create table auth_audit (seq ${t.integer} primary key, at ${t.integer} not null, action ${t.text} not null,
        outcome ${t.text} not null, actor ${t.text} not null, target ${t.text} not null, ip ${t.text} not null,
        detail ${t.text} not null, hash ${t.text} not null)`,
      "create index auth_audit_by_time on auth_audit (at)",
      "create index auth_audit_by_target on auth_audit (target, seq)",
      `create table auth_audit_head (id ${t.integer} primary key check (id = 1), seq ${t.integer} not null,
        hash ${t.text} not null, first_seq ${t.integer} not null, anchor ${t.text} not null)`,
      "insert into auth_audit_head (id, seq, hash, first_seq, anchor) values (1, 0, '', 1, '')",
    ],
  },
  {
    id: "0002-audit-by-actor",
    statements: () => ["create index auth_audit_by_actor on auth_audit (actor, seq)"],
  },
];
