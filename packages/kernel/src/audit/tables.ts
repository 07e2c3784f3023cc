// Tables of an audit log.
import type { Migration } from "../db/migration.ts";

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

/** One row: the last event, and the start of the chain after older events were deleted. */
export interface AuditHeadRow {
  id: number;
  seq: number;
  hash: string;
  first_seq: number;
  anchor: string;
}

/** The tables, under the names that the types of queries have. */
export interface AuditTables {
  audit: AuditRow;
  audit_head: AuditHeadRow;
}

/** Migrations of the tables of a log whose events are in `table`. */
export function createAuditMigrations(table: string): readonly Migration[] {
  return [
    {
      id: "0001-audit",
      statements: (t) => [
        `create table ${table} (seq ${t.integer} primary key, at ${t.integer} not null, action ${t.text} not null,
        outcome ${t.text} not null, actor ${t.text} not null, target ${t.text} not null, ip ${t.text} not null,
        detail ${t.text} not null, hash ${t.text} not null)`,
        `create index ${table}_by_time on ${table} (at)`,
        `create index ${table}_by_target on ${table} (target, seq)`,
        `create table ${table}_head (id ${t.integer} primary key check (id = 1), seq ${t.integer} not null,
        hash ${t.text} not null, first_seq ${t.integer} not null, anchor ${t.text} not null)`,
        `insert into ${table}_head (id, seq, hash, first_seq, anchor) values (1, 0, '', 1, '')`,
      ],
    },
    {
      id: "0002-audit-by-actor",
      statements: () => [`create index ${table}_by_actor on ${table} (actor, seq)`],
    },
  ];
}
