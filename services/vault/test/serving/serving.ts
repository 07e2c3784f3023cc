// A running service for one test file, with clients of both APIs.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { StagedVault, vaultRoot, type VaultLaunch } from "./staged-vault.ts";
import { S3TestClient } from "./s3-client.ts";

const WAIT_MS = 60_000;

/** A service and its clients. */
export interface Serving extends AsyncDisposable {
  vault: StagedVault;
  s3: S3TestClient;
  admin: S3TestClient;
}

/** Starts a service; disposing of the result stops it and removes its folder. */
export async function serve(launch: Partial<VaultLaunch> = {}): Promise<Serving> {
  const scratch = mkdtempSync(join(tmpdir(), "vault-serving-"));
  const vault = await StagedVault.start({ folder: scratch, ...launch });
  const s3 = new S3TestClient(vault.port, vaultRoot);
  const admin = new S3TestClient(vault.adminPort, vaultRoot);
  return {
    vault,
    s3,
    admin,
    async [Symbol.asyncDispose]() {
      s3.close();
      admin.close();
      await vault[Symbol.asyncDispose]();
      rmSync(scratch, { recursive: true, force: true });
    },
  };
}

/** Waits until `look` returns a value; fails after a minute. */
export async function waitFor<T>(
  what: string,
  look: () => T | Promise<T>,
): Promise<NonNullable<T>> {
  const end = performance.now() + WAIT_MS;
  for (;;) {
    const found = await look();
    if (found !== undefined && found !== null && found !== false) return found;
    if (performance.now() > end) throw new Error(`not seen within ${WAIT_MS} ms: ${what}`);
    await sleep(20);
  }
}
