// Starts the relay: the order of its parts.
import { openService, type Service, type ServiceLifecycle } from "@platform/chassis";
import type { Logger } from "@platform/kernel/log";
import { every, sweepEvery, type Clock } from "@platform/kernel/time";
import { createRelayApi } from "./assembly/api.ts";
import { openCallers } from "./assembly/callers.ts";
import { openClients, type Clients } from "./assembly/clients.ts";
import { openNames, type Names } from "./assembly/names.ts";
import { openTraffic } from "./assembly/traffic.ts";
import { VERSION, type RelayConfig } from "./config.ts";
import type { CustomDomainsOptions } from "./name/custom-domains.ts";

/** Options of {@link startRelay}. */
export interface RelayOptions {
  config: RelayConfig;
  log: Logger;
  lifecycle: ServiceLifecycle;
  clock?: Clock;
  /** Looks up TXT records; tests pass their own. */
  lookUpTxt?: CustomDomainsOptions["lookUp"];
}

/** A running relay. */
export interface Relay {
  /** The actual port. */
  readonly port: number;
}

const SWEEP_MS = 1_000;
const STORE_SWEEP_MS = 600_000;

/** Starts the relay; when this resolves, it accepts clients and requests. */
export async function startRelay(options: RelayOptions): Promise<Relay> {
  const { config, lookUpTxt } = options;
  const service = openService({ name: "tunnel", version: VERSION, ...options });
  const names = await openNames(config, service, lookUpTxt);
  const clients = openClients(config, service);
  const callers = openCallers(config, service);
  const api = createRelayApi(config, service, names, clients, callers);
  const port = await openTraffic(config, service, names, clients, callers, api);
  names.urls.port = port;
  startSweeps(service, names, clients);
  service.setReady();
  return { port };
}

function startSweeps(
  { log, lifecycle }: Service,
  { links, store }: Names,
  { hub, capture }: Clients,
): void {
  const storeSweeps = {
    links: () => links.sweep(),
    tunnels: () => store.sweep((row) => hub.find(row.id) !== undefined),
    captures: () => capture.retain((id) => store.find(id) !== undefined),
  };
  const onError = (error: unknown, sweep?: string): void => {
    log.error("a sweep failed", { error, sweep });
  };
  const sweeps = [
    every(SWEEP_MS, () => hub.sweep(), onError),
    sweepEvery(STORE_SWEEP_MS, storeSweeps, onError),
  ];
  lifecycle.onDrain("sweeps", async () => {
    await Promise.all(sweeps.map((sweep) => sweep.stop()));
  });
}
