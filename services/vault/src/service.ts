// Starts storage: the order of its parts.
import { openService, type ServiceLifecycle } from "@platform/chassis";
import { formatAddress } from "@platform/kernel/config";
import type { Logger } from "@platform/kernel/log";
import { openAdmin } from "./assembly/admin.ts";
import { openCallers } from "./assembly/callers.ts";
import { openDelivery } from "./assembly/delivery.ts";
import { followKeys } from "./assembly/key-changes.ts";
import { openObjects, restrictAddress } from "./assembly/objects.ts";
import { openStorage } from "./assembly/storage.ts";
import { hasDefaultCredentials, VERSION, type VaultConfig } from "./config.ts";
import type { LogOutput } from "./log/log-output.ts";

/** Options of the service. */
export interface VaultOptions {
  config: VaultConfig;
  log: Logger;
  /** The output of the log. */
  output: LogOutput;
  lifecycle: ServiceLifecycle;
}

/** Starts the service. Resolves when both APIs listen. */
export async function startVault({ config, log, output, lifecycle }: VaultOptions): Promise<void> {
  const service = openService({ name: "vault", version: VERSION, config, log, lifecycle });
  const startedMs = service.clock.monotonicMs();
  warnOfDefaultCredentials(config, log);
  const storage = await openStorage(config, service);
  const delivery = openDelivery(config, service, storage);
  const callers = openCallers(config, service, storage);
  followKeys(service, storage, callers.sessions);
  const objects = await openObjects(config, service, output, storage, delivery, callers);
  await openAdmin(config, service, startedMs, storage, delivery, callers, objects);
  service.setReady();
}

// Throws if the built-in credentials would be usable from other machines.
function warnOfDefaultCredentials(config: VaultConfig, log: Logger): void {
  const addresses = [config.addr, config.admin_addr].map((one) => restrictAddress(one, config));
  if (!hasDefaultCredentials(config)) return;
  log.warn("the built-in credentials are in use: every program on this machine has full access", {
    addresses: addresses.map(formatAddress),
    remedy: "set STORE_ACCESS_KEY_ID and STORE_SECRET_ACCESS_KEY",
  });
}
