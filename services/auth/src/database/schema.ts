// All tables of the service, and their migrations, one history per room.
import type { Database, Migration } from "@platform/kernel/db";
import { auditMigrations, type AuditTables } from "./audit.ts";
import { keyMigrations, type KeyTables } from "./key.ts";
import { oauthMigrations, type OAuthTables } from "./oauth.ts";
import { mfaMigrations, type MfaTables } from "./factor.ts";
import { passkeyMigrations, type PasskeyTables } from "./passkey.ts";
import { rbacMigrations, type RbacTables } from "./rbac.ts";
import { sessionMigrations, type SessionTables } from "./session.ts";
import { throttleMigrations, type ThrottleTables } from "./throttle.ts";
import { ticketMigrations, type TicketTables } from "./one-time-token.ts";
import { userMigrations, type UserTables } from "./user.ts";

/** The tables of every room. */
export type AuthTables = UserTables &
  SessionTables &
  RbacTables &
  TicketTables &
  ThrottleTables &
  AuditTables &
  MfaTables &
  PasskeyTables &
  KeyTables &
  OAuthTables;

/** The service's database. */
export type AuthDatabase = Database<AuthTables>;

/** Rooms in the order in which their tables are made: a room may refer to those before it. */
const rooms: readonly { name: string; migrations: readonly Migration[] }[] = [
  { name: "user", migrations: userMigrations },
  { name: "session", migrations: sessionMigrations },
  { name: "rbac", migrations: rbacMigrations },
  { name: "ticket", migrations: ticketMigrations },
  { name: "throttle", migrations: throttleMigrations },
  { name: "mfa", migrations: mfaMigrations },
  { name: "passkey", migrations: passkeyMigrations },
  { name: "audit", migrations: auditMigrations },
  { name: "key", migrations: keyMigrations },
  { name: "oauth", migrations: oauthMigrations },
];

/** Brings the tables of every room up to date; several nodes may do so at once. */
export async function migrateRooms(database: AuthDatabase, nowMs: number): Promise<void> {
  for (const { name, migrations } of rooms) await database.migrate(migrations, nowMs, name);
}
