// Metrics of the object API's connections, and of clients that were disconnected.
import type { ServerFault } from "@platform/http1";
import type { MetricRegistry } from "@platform/kernel/metrics";

interface ConnectionState {
  connections: number;
  /** Bytes that clients have not read yet. */
  unsentBytes: number;
}

/** Registers the counters. Returns the function that counts server faults. */
export function createFaultCounter(registry: MetricRegistry): (fault: ServerFault) => void {
  const refused = registry.counter({
    name: "platform_vault_connections_refused_total",
    help: "Connections to the object API refused because of the limit of all connections or of one address.",
    labels: ["bound"],
  });
  const dropped = registry.counter({
    name: "platform_vault_slow_readers_total",
    help: "Clients of the object API disconnected for reading too slowly.",
    labels: ["reason"],
  });
  return ({ kind, code }) => {
    if (kind === "too-many-connections") refused.with({ bound: "all" }).add();
    else if (kind === "too-many-of-address") refused.with({ bound: "address" }).add();
    else if (kind === "slow-reader") dropped.with({ reason: code.replace("-", "_") }).add();
  };
}

/** Registers the gauges. */
export function collectConnections(
  registry: MetricRegistry,
  readState: () => ConnectionState,
): void {
  const gauge = (name: string, help: string, read: (state: ConnectionState) => number) => ({
    type: "gauge" as const,
    name,
    help,
    samples: [{ labels: [], value: read(readState()) }],
  });
  registry.collect({
    name: "vault-connections",
    collect: () => [
      gauge("platform_vault_connections", "Open connections to the object API.", (state) => {
        return state.connections;
      }),
      gauge(
        "platform_vault_unsent_bytes",
        "Bytes of answers that clients have not read yet.",
        (state) => {
          return state.unsentBytes;
        },
      ),
    ],
  });
}
