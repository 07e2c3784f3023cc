// One store in a separate process, shared by all cases; each case has its own buckets.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { StagedVault } from "@platform/testing/staged-vault";
import { Client } from "./client.ts";
import type { Credentials } from "./signature.ts";

/** Virtual-hosted buckets are subdomains of it. */
export const DOMAIN = "store.test";
/** Web sites are subdomains of it. */
export const WEBSITE_DOMAIN = "site.test";

const ROOT: Credentials = {
  accessKey: "conformance-root",
  secretKey: "conformance/secret+with=signs",
};

/** A running store. */
export interface VaultStage extends AsyncDisposable {
  client: Client;
  /** A client of the admin API, which uses the same signatures. */
  admin: Client;
}

/** Starts the store; resolves when it responds. */
export async function stageVault(): Promise<VaultStage> {
  const folder = mkdtempSync(join(tmpdir(), "platform-conformance-"));
  const vault = await StagedVault.start({
    folder,
    env: {
      STORE_ACCESS_KEY_ID: ROOT.accessKey,
      STORE_SECRET_ACCESS_KEY: ROOT.secretKey,
      PLATFORM_VAULT_DOMAIN: DOMAIN,
      PLATFORM_VAULT_WEBSITE_DOMAIN: WEBSITE_DOMAIN,
      PLATFORM_VAULT_EVENT_NETWORKS: "127.0.0.0/8",
    },
  });
  const client = new Client(vault.port, ROOT);
  const admin = new Client(vault.adminPort, ROOT);
  return {
    client,
    admin,
    async [Symbol.asyncDispose]() {
      client.close();
      admin.close();
      await vault[Symbol.asyncDispose]();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
