// The table of passkeys.
import type { Migration } from "@platform/kernel/db";

/** A passkey. Times are in ms. */
export interface PasskeyRow {
  /** The credential's id, base64url. */
  id: string;
  user_id: string;
  /** COSE. */
  public_key: Uint8Array;
  counter: number;
  /** JSON list. */
  transports: string;
  /** `singleDevice` or `multiDevice`. */
  device_type: string;
  backed_up: number;
  name: string;
  created_at: number;
  last_used_at: number | null;
}

/** Table of passkeys. */
export interface PasskeyTables {
  auth_passkeys: PasskeyRow;
}

/** Migrations of this table. */
export const PASSKEY_MIGRATIONS: readonly Migration[] = [
  {
    id: "0001-passkeys",
    statements: (t) => [
      `create table auth_passkeys (id ${t.text} primary key,
        user_id ${t.text} not null references auth_users (id) on delete cascade,
        public_key ${t.bytes} not null, counter ${t.integer} not null, transports ${t.text} not null,
        device_type ${t.text} not null, backed_up ${t.integer} not null, name ${t.text} not null,
        created_at ${t.integer} not null, last_used_at ${t.integer})`,
      "create index auth_passkeys_by_user on auth_passkeys (user_id)",
    ],
  },
];
