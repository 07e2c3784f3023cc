// Opens the keys of a configuration: the master key from its source, and the key file.
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { Logger } from "@platform/kernel/log";
import { SecretService } from "@platform/kernel/secret-service";
import { type Clock, systemClock } from "@platform/kernel/time";
import type { DirectoryDamage } from "../access/directory-file.ts";
import { isDrive } from "../blob/drive/identity.ts";
import type { VaultConfig } from "../config.ts";
import { StoreFolders } from "../disk/files.ts";
import { KeyRing } from "./key-ring.ts";
import {
  createFileSource,
  createSecretSource,
  createSettingSource,
  type MasterSource,
} from "./master-key.ts";
import { SecretKeys } from "./secret-keys.ts";

/** Options of {@link openKeys}. */
export interface OpenKeysOptions {
  clock?: Clock;
  log?: Logger;
  /** True for the running service: it creates the key file, and ends an interrupted change of the master key. */
  isWriting: boolean;
}

/** The keys, and those of them that are in a secret service. */
export interface OpenedKeys {
  readonly ring: KeyRing;
  readonly secrets: SecretKeys | undefined;
}

/** Opens the keys. Rejects with an Error that says what is missing. */
export async function openKeys(
  config: VaultConfig,
  { clock = systemClock, log, isWriting }: OpenKeysOptions,
): Promise<OpenedKeys> {
  const service = openSecretService(config);
  const secrets =
    service === undefined || log === undefined
      ? undefined
      : new SecretKeys({
          service,
          mount: config.secret_mount,
          path: config.secret_keys_path,
          cacheMs: config.secret_cache_s * 1_000,
          clock,
          log,
        });
  const onDamage = ({ path, reason }: DirectoryDamage): void => {
    log?.error("a copy of the keys was damaged; the other one is used", { path, reason });
  };
  const path = locateKeyFile(config.data_dir);
  const master = openMasterSource(config, service, path, !isWriting);
  const ring = await KeyRing.open({ path, master, clock, secrets, onDamage }, isWriting);
  return { ring, secrets };
}

/** The path of the key file. */
function locateKeyFile(dataDir: string): string {
  return join(dataDir, "access", "encryption-keys.json");
}

function openMasterSource(
  config: VaultConfig,
  service: SecretService | undefined,
  keyFile: string,
  isOffline: boolean,
): MasterSource {
  const { master_key: given, master_key_source: kind, data_dir: dataDir } = config;
  if (kind === "secret_service") {
    if (given !== undefined)
      throw new Error("master_key and master_key_source: secret_service exclude each other");
    if (service === undefined)
      throw new Error("master_key_source: secret_service requires secret_url");
    return createSecretSource(service, config.secret_mount, config.secret_master_key_path);
  }
  if (given !== undefined) return createSettingSource(given);
  const isNeeded = (): boolean => isOffline || holdsStore(config) || existsSync(keyFile);
  return createFileSource(join(dataDir, "access", "master.key"), isNeeded);
}

function openSecretService(config: VaultConfig): SecretService | undefined {
  const {
    secret_url: url,
    secret_api_key: apiKey,
    secret_token_file: file,
    secret_tenant_id: tenant,
    secret_ca: ca,
  } = config;
  if (url === undefined) return undefined;
  if (apiKey === undefined && file === undefined)
    throw new Error("secret_url requires secret_api_key or secret_token_file");
  return new SecretService({
    url,
    // A token that was replaced in its file is the one of the next request.
    token: () => (file === undefined ? apiKey! : readFileSync(file, "utf8").trim()),
    namespace: tenant === "default" ? undefined : tenant,
    ca: ca === undefined ? undefined : readFileSync(ca, "utf8"),
  });
}

/** True if the folders contain a store already, whose encrypted objects need its master key. */
function holdsStore({ data_dir: folder, drives }: VaultConfig): boolean {
  return drives.some(isDrive) || existsSync(new StoreFolders(folder).index);
}
