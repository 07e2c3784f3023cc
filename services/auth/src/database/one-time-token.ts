// The table of one-time tokens.
import type { Migration } from "@platform/kernel/db";

/** The purpose of a token, which is valid for no other purpose. */
export type OneTimeTokenPurpose =
  | "setup"
  | "invitation"
  | "email-verification"
  | "recovery"
  | "mfa"
  | "mfa-code"
  | "passkey-registration"
  | "passkey-login";

/** A one-time token. Times are in ms. */
export interface OneTimeTokenRow {
  /** SHA-256 of the token, which is not stored. */
  hash: string;
  purpose: OneTimeTokenPurpose;
  user_id: string | null;
  /** JSON. */
  payload: string;
  attempts_left: number;
  created_at: number;
  expires_at: number;
}

export interface OneTimeTokenTables {
  auth_tickets: OneTimeTokenRow;
}

/** Migrations of this table. */
export const ONE_TIME_TOKEN_MIGRATIONS: readonly Migration[] = [
  {
    id: "0001-tickets",
    statements: (t) => [
      `create table auth_tickets (hash ${t.text} primary key, purpose ${t.text} not null,
        user_id ${t.text} references auth_users (id) on delete cascade, payload ${t.text} not null,
        attempts_left ${t.integer} not null, created_at ${t.integer} not null, expires_at ${t.integer} not null)`,
      "create index auth_tickets_by_expiry on auth_tickets (expires_at)",
      "create index auth_tickets_by_user on auth_tickets (user_id, purpose)",
    ],
  },
];
