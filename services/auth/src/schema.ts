// All tables of the service, and their migrations, one history per room.
import type { Database, Migration } from "@platform/kernel/db";
import type { AuditTables } from "./audit/schema.ts";
import { auditMigrations } from "./audit/schema.ts";
import { keyMigrations } from "./key/schema.ts";
import type { KeyTables } from "./key/schema.ts";
import { oauthMigrations } from "./oauth/schema.ts";
import type { OAuthTables } from "./oauth/schema.ts";
import type { MfaTables } from "./mfa/schema.ts";
import { mfaMigrations } from "./mfa/schema.ts";
import type { PasskeyTables } from "./passkey/schema.ts";
import { passkeyMigrations } from "./passkey/schema.ts";
import type { RbacTables } from "./rbac/schema.ts";
import { rbacMigrations } from "./rbac/schema.ts";
import type { SessionTables } from "./session/schema.ts";
import { sessionMigrations } from "./session/schema.ts";
import type { ThrottleTables } from "./throttle/schema.ts";
import { throttleMigrations } from "./throttle/schema.ts";
import type { TicketTables } from "./ticket/schema.ts";
import { ticketMigrations } from "./ticket/schema.ts";
import type { UserTables } from "./user/schema.ts";
import { userMigrations } from "./user/schema.ts";

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
