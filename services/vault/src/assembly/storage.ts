// The store, its keys, and the users and keys that may use it.
import { createHash } from "node:crypto";
import { existsSync } from "node:fs";
import { join } from "node:path";
import type { Service } from "@platform/chassis";
import type { Account } from "../access/authorizer.ts";
import { Directory } from "../access/directory.ts";
import { createKeyProvider } from "../access/key-provider.ts";
import { loadMasterKey, SecretBox } from "../access/secret-box.ts";
import { isDrive } from "../blob/drive/identity.ts";
import type { KeyProvider } from "../blob/encryption.ts";
import { toStoreOptions, type VaultConfig } from "../config.ts";
import { StoreFolders } from "../disk/files.ts";
import type { Owner } from "../model/bucket.ts";
import { StoreError } from "../model/store-error.ts";
import type { Store } from "../object-store.ts";
import { openStore } from "../open-store.ts";
import { collectRemotes } from "../remote/remote-metrics.ts";
import { collectTasks } from "../task/task-metrics.ts";

/** The parts. */
export interface Storage {
  readonly store: Store;
  readonly directory: Directory;
  readonly masterKey: Buffer;
  readonly keys: KeyProvider;
  readonly account: Account;
  /** Owner of all buckets. */
  readonly owner: Owner;
}

/** Opens the store, and creates the configured buckets. */
export async function openStorage(config: VaultConfig, service: Service): Promise<Storage> {
  const { log, clock, lifecycle, health, metrics } = service;
  const masterKey =
    config.master_key === undefined
      ? loadMasterKey(join(config.data_dir, "access", "master.key"), holdsStore(config))
      : Buffer.from(config.master_key, "base64");
  const keys = createKeyProvider(masterKey);
  const secrets = new SecretBox(masterKey);
  const store = await openStore({ ...toStoreOptions(config), log, keys, secrets });
  lifecycle.onDrain("store", () => store.close(), "database");
  collectRemotes(metrics, () => store.remotes.list());
  collectTasks(metrics, store.tasks, () => clock.now());
  health.addCheck("store", () => store.check());
  health.addWarning("drives", () => store.describeLostDrives());
  const directory = new Directory({
    path: join(config.data_dir, "access", "directory.json"),
    box: new SecretBox(masterKey),
    clock,
    rootKey: config.access_key_id,
    onDamage: ({ path, reason }) => {
      log.error("a copy of the users and keys was damaged; the other one is used", {
        path,
        reason,
      });
    },
  });
  const account = createAccount();
  const owner = { id: account.canonicalId, displayName: account.displayName };
  await makeDefaultBuckets(config, store, owner);
  return { store, directory, masterKey, keys, account, owner };
}

// All users belong to one account, which owns every bucket. Its ids do not depend on the keys.
function createAccount(): Account {
  return {
    canonicalId: createHash("sha256").update("platform-vault account").digest("hex"),
    displayName: "platform",
    accountId: "000000000001",
  };
}

async function makeDefaultBuckets(config: VaultConfig, store: Store, owner: Owner): Promise<void> {
  for (const bucket of config.default_buckets) {
    if (store.buckets.find(bucket) !== undefined) continue;
    try {
      await store.buckets.create({ bucket, owner, region: config.region });
    } catch (error) {
      if (!(error instanceof StoreError)) throw error;
      throw new Error(`default_buckets: ${bucket}: ${error.message}`, { cause: error });
    }
  }
}

/** True if the folders contain a store already, whose encrypted objects need its master key. */
function holdsStore({ data_dir: folder, drives }: VaultConfig): boolean {
  return drives.some(isDrive) || existsSync(new StoreFolders(folder).index);
}
