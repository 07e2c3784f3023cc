// One vault in a process of its own, which all cases share; each has buckets of its own.
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { awaitPort, findFreePort } from "../../stage/process.ts";
import { Stage } from "../../stage/stage.ts";
import { Client } from "./client.ts";
import type { Credentials } from "./signature.ts";

/** Buckets are names below it. */
export const DOMAIN = "store.test";
/** Sites are names below it. */
export const WEBSITE_DOMAIN = "site.test";

const PROGRAM = fileURLToPath(new URL("../../../bin/platform-vaultd.js", import.meta.url));
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
  const stage = new Stage();
  const [port, adminPort] = [await findFreePort(), await findFreePort()];
  const path = join(stage.folder, "vault.json");
  const settings = {
    addr: `127.0.0.1:${port}`,
    admin_addr: `127.0.0.1:${adminPort}`,
    data_dir: join(stage.folder, "data"),
    domain: DOMAIN,
    website_domain: WEBSITE_DOMAIN,
    tenant_rate: 0,
    event_networks: ["127.0.0.0/8"],
  };
  writeFileSync(path, JSON.stringify(settings));
  const staged = stage.start({
    name: "vault",
    command: process.execPath,
    args: [PROGRAM, "--config", path],
    cwd: stage.folder,
    env: { STORE_ACCESS_KEY_ID: ROOT.accessKey, STORE_SECRET_ACCESS_KEY: ROOT.secretKey },
  });
  await awaitPort(staged, adminPort);
  const client = new Client(port, ROOT);
  const admin = new Client(adminPort, ROOT);
  return {
    client,
    admin,
    async [Symbol.asyncDispose]() {
      client.close();
      admin.close();
      await stage[Symbol.asyncDispose]();
    },
  };
}
