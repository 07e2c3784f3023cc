// Restores an administrator from the command line, with access to the database and its secrets.
import { existsSync } from "node:fs";
import { join } from "node:path";
import { openDatabase } from "@platform/kernel/db";
import { createIdSource } from "@platform/kernel/ids";
import type { Clock } from "@platform/kernel/time";
import { AuditLog } from "../audit/audit-log.ts";
import type { AuthConfig } from "../config.ts";
import { migrateAll, type AuthTables } from "../database/schema.ts";
import { OneTimeTokens } from "../guard/one-time-tokens.ts";
import { Throttle } from "../guard/throttle.ts";
import { loadSecrets } from "../key/secrets.ts";
import { ADMIN_ROLE } from "../rbac/grant.ts";
import { PolicyStore } from "../rbac/policy-store.ts";
import { Users } from "../user/users.ts";
import { RECOVERY_MS } from "./credentials.ts";
import { clearGuesses } from "./guessing.ts";

/**
 * Makes the user an enabled administrator without second factors or throttling, and returns a link for setting a
 * password within an hour, which ends all earlier sessions. Throws if the user or the database does not exist. The
 * service may be running.
 */
export async function resetAdministrator(
  config: AuthConfig,
  username: string,
  clock: Clock,
): Promise<string> {
  const file = join(config.data_dir, "auth.db");
  if (config.database_url === undefined && !existsSync(file)) {
    throw new Error(`there is no database in ${config.data_dir}`);
  }
  const url = config.database_url ?? `sqlite:${file}`;
  const database = openDatabase<AuthTables>({ url, service: "auth" });
  try {
    await migrateAll(database, clock.now());
    const secrets = await loadSecrets(config, database);
    const policy = new PolicyStore(database, clock);
    const users = new Users({ database, clock, ids: createIdSource({ clock }), policy });
    const user = await users.findRowByUsername(username);
    if (user === undefined) throw new Error(`there is no user ${username}`);

    await users.change(user.id, { disabled: false });
    await policy.changeBindings({ kind: "user", id: user.id }, "add", [ADMIN_ROLE], undefined);
    await database.db.deleteFrom("auth_factors").where("user_id", "=", user.id).execute();
    await database.db.deleteFrom("auth_backup_codes").where("user_id", "=", user.id).execute();
    await new Throttle(database, clock).clear(`mfa:code:${user.id}`);
    await clearGuesses(database, user.username_key);
    const token = await new OneTimeTokens(database, clock, secrets.session).issue("recovery", {
      userId: user.id,
      ttlMs: RECOVERY_MS,
    });
    await new AuditLog(database, clock, secrets.session).record({
      action: "admin.reset",
      actor: "machine",
      target: `user:${user.id}`,
      ip: "",
    });
    const base = config.public_url ?? `http://localhost:${config.addr.port}`;
    return `${base}/recover?token=${token}`;
  } finally {
    await database.close();
  }
}
