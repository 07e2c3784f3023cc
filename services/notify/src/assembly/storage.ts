// The database with its secrets, and the relay that it holds.
import type { Service } from "@platform/chassis";
import { clearDatabaseCopies, type DatabaseState } from "@platform/kernel/database-backup";
import type { SecretBox } from "@platform/kernel/secrets";
import type { NotifyConfig } from "../config.ts";
import { claimMark } from "../database/lease-mark.ts";
import { openNotifyDatabase } from "../database/open.ts";
import { migrateAll, type NotifyDatabase } from "../database/schema.ts";
import { openSecretBox } from "../database/secrets.ts";
import { describeState } from "../database/state.ts";
import { openRelaySettings, type RelaySettings } from "../relay/relay-settings.ts";

/** Open storage. */
export interface Storage {
  readonly database: NotifyDatabase;
  /** Seals the secrets that the database holds. */
  readonly box: SecretBox;
  readonly state: DatabaseState;
  /** See `claimMark`. */
  readonly leaseMark: number;
}

/** Opens and migrates the database. */
export async function openStorage(config: NotifyConfig, service: Service): Promise<Storage> {
  const { log, lifecycle, health, clock } = service;
  const { database_url: url, data_dir: dataDir, encryption_keys: keys } = config;
  const database = openNotifyDatabase({ url, dataDir, acceptLoss: config.accept_loss, log });
  lifecycle.onDrain("database", () => database.close(), "database");
  await migrateAll(database, clock.now());
  health.addCheck("database", () => database.check());
  const state = describeState(config);
  await clearDatabaseCopies(state);
  const box = await openSecretBox(database, { keys, dataDir });
  const leaseMark = claimMark({ kind: database.kind, dataDir, log, lifecycle });
  return { database, box, state, leaseMark };
}

/** Reads the relay that was set through the API; its `config` is that of the service. */
export async function openRelay(
  config: NotifyConfig,
  sources: ReadonlyMap<string, string> | undefined,
  { clock }: Service,
  { database, box }: Storage,
): Promise<RelaySettings> {
  return openRelaySettings({ config, sources, database, box, clock });
}
