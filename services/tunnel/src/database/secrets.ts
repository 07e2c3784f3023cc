// Keys of the relay that must survive restarts; generated at the first start.
import { randomBytes } from "node:crypto";
import type { TunnelDatabase } from "./schema.ts";

/** Returns a key of 32 bytes by name, generating it if there is none. */
export async function loadSecret(database: TunnelDatabase, name: string): Promise<Buffer> {
  const value = randomBytes(32).toString("base64url");
  await database.db
    .insertInto("tunnel_secrets")
    .values({ name, value })
    .onConflict((conflict) => conflict.column("name").doNothing())
    .execute();
  const row = await database.db
    .selectFrom("tunnel_secrets")
    .select("value")
    .where("name", "=", name)
    .executeTakeFirstOrThrow();
  return Buffer.from(row.value, "base64url");
}
