// The table of failed attempts.
import type { Migration } from "@platform/kernel/db";

/** Failed attempts of one account, address or device. Times are in ms. */
interface ThrottleRow {
  key: string;
  failures: number;
  blocked_until: number;
  updated_at: number;
}

/** Table of failed attempts. */
export interface ThrottleTables {
  auth_throttles: ThrottleRow;
}

/** Migrations of this table. */
export const THROTTLE_MIGRATIONS: readonly Migration[] = [
  {
    id: "0001-throttles",
    statements: (t) => [
      `create table auth_throttles (key ${t.text} primary key, failures ${t.integer} not null,
        blocked_until ${t.integer} not null, updated_at ${t.integer} not null)`,
      "create index auth_throttles_by_time on auth_throttles (updated_at)",
    ],
  },
];
