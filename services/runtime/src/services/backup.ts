// The token with which `platform backup` fetches the backups of running services.
import type { EntryContext } from "./entry.ts";

/** Environment variable of the token, which all services share. */
export const BACKUP_TOKEN = "PLATFORM_BACKUP_TOKEN";

/** Returns the environment of a service that sends its own backup. */
export function allowBackups({ credentials }: EntryContext): Record<string, string> {
  return { [BACKUP_TOKEN]: credentials[BACKUP_TOKEN] ?? "" };
}
