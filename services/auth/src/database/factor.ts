// Tables of second factors, backup codes and policies.
import type { Migration } from "@platform/kernel/db";

/** Types of second factors. */
export type FactorKind = "totp" | "email" | "sms";

/** Subjects of a policy. */
export type PolicyScope = "group" | "role" | "client";

/** A factor. Times are in ms. */
export interface FactorRow {
  id: string;
  user_id: string;
  kind: FactorKind;
  name: string;
  /** Sealed: the TOTP secret, or the address that codes are sent to. */
  secret: string;
  /** 0 until the first code was verified. */
  confirmed: number;
  /** TOTP: the last accepted time step. */
  last_step: number;
  /** Keyed hash of a code that was sent; single use, valid until `code_expires_at`. */
  code_hash: string | null;
  code_expires_at: number;
  created_at: number;
  last_used_at: number | null;
}

/** Tables of factors and policies. */
export interface FactorTables {
  auth_factors: FactorRow;
  /** Keyed hashes; a code is deleted when it is used. `active` is 1 once the factor it was issued with is confirmed. */
  auth_backup_codes: { hash: string; user_id: string; factor_id: string; active: number };
  auth_mfa_policies: {
    scope: PolicyScope;
    subject: string;
    required: number;
    created_at: number;
  };
}

/** Migrations of these tables. */
export const FACTOR_MIGRATIONS: readonly Migration[] = [
  {
    id: "0001-factors",
    statements: (t) => [
      `create table auth_factors (id ${t.text} primary key,
        user_id ${t.text} not null references auth_users (id) on delete cascade,
        kind ${t.text} not null, name ${t.text} not null, secret ${t.text} not null, confirmed ${t.integer} not null,
        last_step ${t.integer} not null, code_hash ${t.text}, code_expires_at ${t.integer} not null,
        created_at ${t.integer} not null, last_used_at ${t.integer})`,
      "create index auth_factors_by_user on auth_factors (user_id)",
      `create table auth_backup_codes (hash ${t.text} primary key,
        user_id ${t.text} not null references auth_users (id) on delete cascade,
        factor_id ${t.text} not null, active ${t.integer} not null)`,
      "create index auth_backup_codes_by_user on auth_backup_codes (user_id)",
      `create table auth_mfa_policies (scope ${t.text} not null, subject ${t.text} not null,
        required ${t.integer} not null, created_at ${t.integer} not null, primary key (scope, subject))`,
    ],
  },
];
