// The store, its keys, and the users and keys that may use it.
import { createHash } from "node:crypto";
import { join } from "node:path";
import type { Service } from "@platform/chassis";
import type { Account } from "../access/authorizer.ts";
import { Directory } from "../access/directory.ts";
import { SecretBox } from "../access/secret-box.ts";
import { toStoreOptions, type VaultConfig } from "../config.ts";
import { collectKeys } from "../keys/key-metrics.ts";
import type { KeyRing } from "../keys/key-ring.ts";
import { type OpenedKeys, openKeys } from "../keys/open-keys.ts";
import type { SecretKeys } from "../keys/secret-keys.ts";
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
  readonly ring: KeyRing;
  /** Keys in a secret service; undefined if none is configured. */
  readonly secrets: SecretKeys | undefined;
  /** Seals secrets of users, sessions and remotes. */
  readonly box: SecretBox;
  readonly account: Account;
  /** Owner of all buckets. */
  readonly owner: Owner;
}

/** Opens the store, and creates the configured buckets. */
export async function openStorage(config: VaultConfig, service: Service): Promise<Storage> {
  const { log, clock, lifecycle, health, metrics } = service;
  const { ring, secrets } = await openKeys(config, { clock, log, isWriting: true });
  const box = new SecretBox(ring.listBoxKeys);
  const store = await openStore({ ...toStoreOptions(config), log, keys: ring, secrets: box });
  lifecycle.onDrain("store", () => store.close(), "database");
  requireKeys(config, service, store, { ring, secrets });
  collectRemotes(metrics, () => store.remotes.list());
  collectBlocked(metrics, store);
  collectTasks(metrics, store.tasks, () => clock.now());
  collectKeys(metrics, ring, store);
  health.addCheck("store", () => store.check());
  health.addWarning("drives", () => store.describeLostDrives());
  health.addWarning("transitions", () => describeBlocked(store));
  const directory = new Directory({
    path: join(config.data_dir, "access", "directory.json"),
    box,
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
  return { store, directory, ring, secrets, box, account, owner };
}

// While the secret service is away, its objects must not look like damaged ones, one by one. Keys that are lost for good do not
// keep the others from being served.
function requireKeys(
  { force: isForced }: VaultConfig,
  { log, health }: Service,
  store: Store,
  { ring, secrets }: OpenedKeys,
): void {
  const used = store.keys.listUsed();
  const lost = used.filter((kek) => !ring.has(kek));
  if (lost.length > 0) {
    const buckets = store.keys.findBuckets(lost);
    log.error("keys of objects are lost: put the folder access back from a backup", { buckets });
    health.addWarning("lost keys", () => `keys of objects in ${buckets.join(", ")} are lost`);
  }
  const away = used.filter((kek) => ring.has(kek) && !isAvailable(kek, ring, secrets));
  if (away.length === 0) return;
  const buckets = store.keys.findBuckets(away);
  const reason = secrets?.fault ?? "secret_url is not set";
  if (isForced) {
    log.error("keys of objects are not available", { buckets, reason });
    return;
  }
  throw new Error(
    `keys in the secret service are not available (${reason}), and objects of these buckets need them: ${buckets.join(", ")}. ` +
      "Bring the service back, or start with --force to serve all other objects",
  );
}

function isAvailable(kek: string, ring: KeyRing, secrets: SecretKeys | undefined): boolean {
  return ring.isLocal(kek) || secrets?.isThere(kek) === true;
}

function describeBlocked({ sweeps }: Store): string | undefined {
  const [first, ...others] = sweeps.listBlocked();
  if (first === undefined) return undefined;
  const { bucket, rule, storageClass } = first;
  const more = others.length === 0 ? "" : `, and ${others.length} more`;
  return `no remote has the class ${storageClass} of the lifecycle rule ${rule} of ${bucket}${more}`;
}

function collectBlocked(metrics: Service["metrics"], { sweeps }: Store): void {
  metrics.collect({
    name: "vault-blocked-transitions",
    collect: () => [
      {
        type: "gauge",
        name: "platform_vault_blocked_transitions",
        help: "Transitions of lifecycle rules that move nothing, because no remote has their class.",
        samples: [{ labels: [], value: sweeps.listBlocked().length }],
      },
    ],
  });
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
