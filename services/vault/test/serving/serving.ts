// A running service for one test file, with clients of both APIs.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { StagedVault, vaultRoot, type VaultLaunch } from "@platform/testing/staged-vault";
import { S3TestClient } from "./s3-client.ts";

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
