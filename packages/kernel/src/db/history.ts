// The migrations that were applied for one service, for copies of its tables into another database.
import { sql, type Kysely } from "kysely";
import type { Database } from "./database.ts";
import { createHistoryTable } from "./migration.ts";

/** An applied migration. */
export interface AppliedMigration {
  /** The service, or the service and one of its parts with `/`. */
  scope: string;
  id: string;
  checksum: string;
  applied_at: number;
}

/** Returns the applied migrations of a service and its parts. */
export async function readHistory<Tables>(
  db: Kysely<Tables>,
  service: string,
): Promise<AppliedMigration[]> {
  const { rows } = await sql<AppliedMigration>`
    select scope, id, checksum, applied_at from platform_migrations
    where scope = ${service} or scope like ${`${service}/%`} order by scope, id`.execute(db);
  return rows;
}

/** Records migrations whose tables were copied into this database; all of them or none. */
export async function writeHistory<Tables>(
  { kind, transaction }: Pick<Database<Tables>, "kind" | "transaction">,
  applied: readonly AppliedMigration[],
): Promise<void> {
  await transaction(async (trx) => {
    await sql.raw(createHistoryTable(kind)).execute(trx);
    for (const { scope, id, checksum, applied_at } of applied) {
      await sql`insert into platform_migrations (scope, id, checksum, applied_at)
        values (${scope}, ${id}, ${checksum}, ${applied_at})`.execute(trx);
    }
  });
}
