// The admin API with the console, on a listener of its own.
import type { Service } from "@platform/chassis";
import { createAdminAccess } from "../admin/admin-access.ts";
import { createAdminApi } from "../admin/admin-api.ts";
import { requireAdmin } from "../admin/storage-callers.ts";
import type { VaultConfig } from "../config.ts";
import { FORMAT_VERSION } from "../index/schema.ts";
import { asProblem } from "../admin/problem.ts";
import { createFigures, REQUEST_METRICS } from "../s3/object-metrics.ts";
import type { Callers } from "./callers.ts";
import type { EventDelivery } from "./delivery.ts";
import { restrictAddress, type Objects } from "./objects.ts";
import type { Storage } from "./storage.ts";

/** The time for a body of 5 GiB at 1.5 MB/s; slow bodies are refused by their pace. */
const UPLOAD_TIMEOUT_MS = 3_600_000;

/** Opens the listener. `startedMs` is the monotonic time at which the service started. */
export async function openAdmin(
  config: VaultConfig,
  service: Service,
  startedMs: number,
  { store, directory, ring, secrets }: Storage,
  { delivery }: EventDelivery,
  callers: Callers,
  { api, ids, port, onOperation, modules, jobs, backups, operations: inner }: Objects,
): Promise<void> {
  const isTls = service.certificates !== undefined;
  const access = createAdminAccess({
    config,
    api,
    ids,
    directory,
    tokens: callers.tokens,
    rootSecret: callers.rootSecret,
    isTls,
    objectPort: port,
    onOperation,
  });
  const operation = service.openOperation({
    guard: access.guard,
    console: access.console,
    figures: createFigures(store),
    requests: REQUEST_METRICS,
    access: requireAdmin,
    backup: { dataFormat: FORMAT_VERSION, takeSnapshot: () => asProblem(store.snapshot()) },
  });
  const admin = createAdminApi({
    service,
    operation,
    ...access,
    api,
    dataDir: config.data_dir,
    directory,
    masterKey: ring.webhookKey,
    ring,
    secrets,
    delivery,
    modules,
    jobs,
    backups,
    inner,
    startedMs,
  });
  await service.serve({
    name: "admin",
    address: restrictAddress(config.admin_addr, config),
    setting: "--admin-port or PLATFORM_VAULT_ADMIN_ADDR",
    fetch: admin.fetch,
    onUpgrade: operation.feeds.onUpgrade,
    isProxyAddress: (address) => api.trustedProxies.has(address),
    requestTimeoutMs: UPLOAD_TIMEOUT_MS,
  });
}
