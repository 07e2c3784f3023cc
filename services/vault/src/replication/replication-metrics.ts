// Metrics of replication: a series for each remote, and one for buckets of this store.
import type { MetricFamily, MetricRegistry } from "@platform/kernel/metrics";
import type { Lane } from "./lane.ts";

/** Registers the metrics. What waits is counted with the tasks. */
export function collectReplication(
  registry: MetricRegistry,
  list: () => readonly (readonly [remote: string, lane: Lane])[],
): void {
  registry.collect({
    name: "vault-replication",
    collect: (): MetricFamily[] => {
      const lanes = list();
      return [
        {
          type: "counter",
          name: "platform_vault_replication_versions_total",
          help: "Versions and changes that were sent, refused, or are tried again, by the remote; empty for this store.",
          samples: lanes.flatMap(([remote, { counts }]) =>
            (["completed", "failed", "retried"] as const).map((outcome) =>
              sample({ remote, outcome }, counts[outcome]),
            ),
          ),
        },
        {
          type: "counter",
          name: "platform_vault_replication_bytes_total",
          help: "Bytes of the versions that were sent.",
          samples: lanes.map(([remote, { counts }]) => sample({ remote }, counts.bytes)),
        },
        {
          type: "gauge",
          name: "platform_vault_replication_paused",
          help: "1 while a destination does not answer and is tried once in a while.",
          samples: lanes.map(([remote, lane]) =>
            sample({ remote }, lane.pausedMs === undefined ? 0 : 1),
          ),
        },
      ];
    },
  });
}

function sample(labels: Readonly<Record<string, string>>, value: number) {
  return { labels: Object.entries(labels), value };
}
