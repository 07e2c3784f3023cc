// The platform that tests of the services' documents share: it takes seconds of processor time to start.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Platform } from "../identity/platform.ts";

/** The folder of storage's backups. */
export const backups = mkdtempSync(join(tmpdir(), "contract-backups-"));
let platform: Promise<Platform> | undefined;

/** Resolves with the platform of this file, which the first call starts. */
export function joinContract(): Promise<Platform> {
  platform ??= Platform.start({
    environment: {
      PLATFORM_NOTIFY_ALLOW_PRIVATE_TARGETS: "true",
      PLATFORM_VAULT_BACKUP_DIR: backups,
    },
  });
  return platform;
}

/** Stops it, in an `after` that follows those of all modules. */
export async function endContract(): Promise<void> {
  await (await platform)?.stop();
  rmSync(backups, { recursive: true, force: true });
}
