// The first administrator: from the configuration, or by a link that is printed once at the start.
import { PlatformError } from "@platform/kernel/errors";
import type { Logger } from "@platform/kernel/log";
import type { AuthConfig } from "../config.ts";
import type { Credentials } from "./credentials.ts";
import { countAdministrators } from "../rbac/grant.ts";
import type { AuthDatabase } from "../database/schema.ts";
import type { OneTimeTokens } from "../guard/one-time-tokens.ts";

const LINK_MS = 86_400_000;

/** What this works with. */
export interface FirstAdministratorOptions {
  config: Pick<AuthConfig, "admin_user" | "admin_password">;
  database: AuthDatabase;
  credentials: Credentials;
  oneTimeTokens: OneTimeTokens;
  publicUrl: string;
  log: Logger;
}

/**
 * Does nothing where there is an administrator. Throws where the configured name belongs to somebody who has registered:
 * nobody becomes administrator by having been there first.
 */
export async function ensureAdministrator(options: FirstAdministratorOptions): Promise<void> {
  const { config, database, credentials, oneTimeTokens, publicUrl, log } = options;
  if ((await countAdministrators(database.db)) > 0) return;
  const { admin_user: username, admin_password: password } = config;
  const token = await oneTimeTokens.issue("setup", { ttlMs: LINK_MS });
  if (username === undefined || password === undefined) {
    log.warn("there is no administrator yet: open this link to make one, within a day", {
      link: `${publicUrl}/setup?token=${token}`,
    });
    return;
  }
  try {
    await credentials.setUp(token, { username, password }, { ip: "", userAgent: "" });
    log.info("the first administrator was made", { username });
  } catch (error) {
    if (!(error instanceof PlatformError)) throw error;
    // Another node that starts at the same moment may have been first.
    if ((await countAdministrators(database.db)) > 0) return;
    throw new Error(`PLATFORM_AUTH_ADMIN_USER: ${error.detail}`, { cause: error });
  }
}
