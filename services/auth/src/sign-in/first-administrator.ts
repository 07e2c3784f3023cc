// The first administrator: from the configuration, or through a link that is logged at the first start.
import { PlatformError } from "@platform/kernel/errors";
import type { Logger } from "@platform/kernel/log";
import type { AuthDatabase } from "../database/schema.ts";
import type { OneTimeTokens } from "../guard/one-time-tokens.ts";
import { countAdministrators } from "../rbac/grant.ts";
import type { Registrations } from "./registrations.ts";

const LINK_MS = 86_400_000;

export interface FirstAdministratorOptions {
  /** The configured first administrator. */
  administrator: { username: string; password: string } | undefined;
  database: AuthDatabase;
  registrations: Registrations;
  oneTimeTokens: OneTimeTokens;
  publicUrl: string;
  log: Logger;
}

/**
 * Does nothing if there is an administrator. Throws if the configured name belongs to a registered user: registering
 * a name first must not make anyone an administrator.
 */
export async function ensureAdministrator(options: FirstAdministratorOptions): Promise<void> {
  const { administrator, database, registrations, oneTimeTokens, publicUrl, log } = options;
  if ((await countAdministrators(database.db)) > 0) return;
  const token = await oneTimeTokens.issue("setup", { ttlMs: LINK_MS });
  if (administrator === undefined) {
    log.warn("no administrator yet: open this link within a day to create one", {
      link: `${publicUrl}/setup?token=${token}`,
    });
    return;
  }
  try {
    await registrations.setUp(token, administrator, { ip: "", userAgent: "" });
    log.info("first administrator created", { username: administrator.username });
  } catch (error) {
    if (!(error instanceof PlatformError)) throw error;
    // Another node that starts concurrently may have been first.
    if ((await countAdministrators(database.db)) > 0) return;
    throw new Error(`PLATFORM_AUTH_ADMIN_USER: ${error.detail}`, { cause: error });
  }
}
