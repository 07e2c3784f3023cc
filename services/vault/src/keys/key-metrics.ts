// Metrics of the keys of encrypted objects.
import type { MetricRegistry } from "@platform/kernel/metrics";
import type { Store } from "../object-store.ts";
import type { KeyRing } from "./key-ring.ts";

const STATES = ["enabled", "disabled", "pending_deletion"] as const;

/** Registers the metrics, which are read at each scrape. */
export function collectKeys(
  registry: MetricRegistry,
  ring: KeyRing,
  { maintenance }: Pick<Store, "maintenance">,
): void {
  registry.collect({
    name: "vault-keys",
    collect: () => [
      {
        type: "gauge",
        name: "platform_vault_encryption_keys",
        help: "Named keys by their state.",
        samples: STATES.map((state) => ({
          labels: [["state", state] as const],
          value: ring.list().filter((key) => key.state === state).length,
        })),
      },
      {
        type: "gauge",
        name: "platform_vault_former_key_versions",
        help: "Former versions of keys that objects, or heads of records, still name.",
        samples: [{ labels: [], value: ring.rotation.listFormer().length }],
      },
      {
        type: "counter",
        name: "platform_vault_rewrapped_total",
        help: "Keys of objects that were wrapped with a newer key, or could not be.",
        samples: Object.entries(maintenance.rewrapTotals).map(([outcome, value]) => ({
          labels: [["outcome", outcome] as const],
          value,
        })),
      },
    ],
  });
}
