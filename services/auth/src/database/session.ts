// Tables of sessions.
import type { Migration } from "@platform/kernel/db";

/** One sign-in of one user on one device. Times are in ms. */
export interface SessionRow {
  /** The `sid` of tokens. */
  id: string;
  user_id: string;
  /** SHA-256 of the token's random id. The token itself is not stored. */
  token_hash: string;
  token_issued_at: number;
  /** The token before the last renewal, valid until `previous_until`. */
  previous_hash: string | null;
  previous_until: number | null;
  /** Time of the last authentication, and its methods as a JSON list of RFC 8176 values. */
  auth_time: number;
  amr: string;
  acr: string;
  device: string;
  user_agent: string;
  ip: string;
  created_at: number;
  last_seen_at: number;
  idle_expires_at: number;
  absolute_expires_at: number;
}

/** Table of sessions. */
export interface SessionTables {
  auth_sessions: SessionRow;
}

/** Migrations of this table. */
export const SESSION_MIGRATIONS: readonly Migration[] = [
  {
    id: "0001-sessions",
    statements: (t) => [
      `create table auth_sessions (
        id ${t.text} primary key, user_id ${t.text} not null references auth_users (id) on delete cascade,
        token_hash ${t.text} not null unique, token_issued_at ${t.integer} not null,
        previous_hash ${t.text} unique, previous_until ${t.integer},
        auth_time ${t.integer} not null, amr ${t.text} not null, acr ${t.text} not null,
        device ${t.text} not null, user_agent ${t.text} not null, ip ${t.text} not null,
        created_at ${t.integer} not null, last_seen_at ${t.integer} not null,
        idle_expires_at ${t.integer} not null, absolute_expires_at ${t.integer} not null)`,
      "create index auth_sessions_by_user on auth_sessions (user_id)",
      "create index auth_sessions_by_expiry on auth_sessions (absolute_expires_at)",
      "create index auth_sessions_by_idle on auth_sessions (idle_expires_at)",
    ],
  },
];
