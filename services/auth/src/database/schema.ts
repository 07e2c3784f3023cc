// All tables of the service and their migrations, one history per module.
import type { Database, Migration } from "@platform/kernel/db";
import { AUDIT_MIGRATIONS, type AuditTables } from "./audit.ts";
import { FACTOR_MIGRATIONS, type FactorTables } from "./factor.ts";
import { KEY_MIGRATIONS, type KeyTables } from "./key.ts";
import { OAUTH_MIGRATIONS, type OAuthTables } from "./oauth.ts";
import { ONE_TIME_TOKEN_MIGRATIONS, type OneTimeTokenTables } from "./one-time-token.ts";
import { PASSKEY_MIGRATIONS, type PasskeyTables } from "./passkey.ts";
import { RBAC_MIGRATIONS, type RbacTables } from "./rbac.ts";
import { SESSION_MIGRATIONS, type SessionTables } from "./session.ts";
import { THROTTLE_MIGRATIONS, type ThrottleTables } from "./throttle.ts";
import { USER_MIGRATIONS, type UserTables } from "./user.ts";

export type AuthTables = UserTables &
  SessionTables &
  RbacTables &
  OneTimeTokenTables &
  ThrottleTables &
  AuditTables &
  FactorTables &
  PasskeyTables &
  KeyTables &
  OAuthTables;

/** The service's database. */
export type AuthDatabase = Database<AuthTables>;

/** Histories in the order in which their tables are created: tables may refer to those of earlier histories. */
const HISTORIES: readonly { name: string; migrations: readonly Migration[] }[] = [
  { name: "user", migrations: USER_MIGRATIONS },
  { name: "session", migrations: SESSION_MIGRATIONS },
  { name: "rbac", migrations: RBAC_MIGRATIONS },
  { name: "ticket", migrations: ONE_TIME_TOKEN_MIGRATIONS },
  { name: "throttle", migrations: THROTTLE_MIGRATIONS },
  { name: "mfa", migrations: FACTOR_MIGRATIONS },
  { name: "passkey", migrations: PASSKEY_MIGRATIONS },
  { name: "audit", migrations: AUDIT_MIGRATIONS },
  { name: "key", migrations: KEY_MIGRATIONS },
  { name: "oauth", migrations: OAUTH_MIGRATIONS },
];

/** Version of the tables as a whole, recorded in backups: the number of migrations. */
export const DATA_FORMAT = HISTORIES.reduce((sum, { migrations }) => sum + migrations.length, 0);

/** Migrates all tables; several nodes may do so concurrently. */
export async function migrateAll(database: AuthDatabase, nowMs: number): Promise<void> {
  for (const { name, migrations } of HISTORIES) await database.migrate(migrations, nowMs, name);
}
