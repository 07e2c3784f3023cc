// Backups of identity: a copy of the database in use, and the secrets that it depends on.
import type { Snapshot } from "@platform/kernel/backup";
import { takeDatabaseSnapshot, type DatabaseState } from "@platform/kernel/database-backup";
import type { AuthConfig } from "../config.ts";
import { DATA_FORMAT, type AuthDatabase } from "../database/schema.ts";

/** Returns the place of the data, for its backups. */
export function describeState(
  config: Pick<AuthConfig, "data_dir" | "database_url">,
): DatabaseState {
  return {
    service: "auth",
    dataFormat: DATA_FORMAT,
    dataDir: config.data_dir,
    databaseUrl: config.database_url,
    files: ["secrets.json"],
  };
}

/** Takes a snapshot of a running service. */
export async function takeAuthSnapshot(
  state: DatabaseState,
  database: AuthDatabase,
): Promise<Snapshot> {
  // Read before the copy, which therefore contains at least these events.
  const { seq } = (await database.db
    .selectFrom("auth_audit_head")
    .select("seq")
    .executeTakeFirst()) ?? { seq: 0 };
  return takeDatabaseSnapshot(state, database, { audit_events: seq });
}
