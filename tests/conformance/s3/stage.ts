// One vault in a process of its own, which all cases share; each has buckets of its own.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { StagedVault } from "../../../services/vault/test/serving/staged-vault.ts";
import { Client } from "./client.ts";
import type { Credentials } from "./signature.ts";

/** Buckets are names below it. */
export const DOMAIN = "store.test";
/** Sites are names below it. */
export const WEBSITE_DOMAIN = "site.test";

const ROOT: Credentials = {
  accessKey: "conformance-root",
  secretKey: "conformance/secret+with=signs",
};

/** A running vault. */
export interface VaultStage extends AsyncDisposable {
  client: Client;
  /** A client of the admin API: the same signatures. */
  admin: Client;
}

/** Starts the vault; resolves when it answers. */
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
