// What is counted of the object API's connections, and of clients that they were closed on.
import type { ServerFault } from "@platform/http1";
import type { MetricRegistry } from "@platform/kernel/metrics";

/** Connections at this moment. */
interface ConnectionState {
  connections: number;
  /** Bytes that wait for clients to read them. */
  unsentBytes: number;
}

/** Makes the families in `registry`; returns what counts a fault of the server. */
export function createConnectionMetrics(
  registry: MetricRegistry,
  readState: () => ConnectionState,
): (fault: ServerFault) => void {
  const refused = registry.counter({
    name: "platform_vault_connections_refused_total",
    help: "Connections to the object API closed at once: by the bound on all, or on those of one address.",
    labels: ["bound"],
  });
  const dropped = registry.counter({
    name: "platform_vault_slow_readers_total",
    help: "Clients of the object API disconnected because they read too slowly.",
    labels: ["reason"],
  });
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
  return ({ kind, code }) => {
    if (kind === "too-many-connections") refused.with({ bound: "all" }).add();
    else if (kind === "too-many-of-address") refused.with({ bound: "address" }).add();
    else if (kind === "slow-reader") dropped.with({ reason: code.replace("-", "_") }).add();
  };
}
