// Metrics of questions about the content of objects.
import type { MetricRegistry } from "@platform/kernel/metrics";
import type { SelectPool, SelectPoolOptions } from "./select-pool.ts";

/** Registers the metrics. Returns the function that counts finished questions. */
export function createSelectObserver(
  registry: MetricRegistry,
  getPool: () => Pick<SelectPool, "waiting" | "threads">,
): SelectPoolOptions["onFinished"] {
  const requests = registry.counter({
    name: "platform_vault_select_requests_total",
    help: "Questions about the content of objects by their end; killed ones exceeded a limit of time or memory.",
    labels: ["outcome"],
  });
  const scanned = registry.counter({
    name: "platform_vault_select_scanned_bytes_total",
    help: "Bytes of objects that were read for questions about their content.",
  });
  const returned = registry.counter({
    name: "platform_vault_select_returned_bytes_total",
    help: "Bytes of records in the answers to questions about the content of objects.",
  });
  const gauge = (name: string, help: string, value: number) => ({
    type: "gauge" as const,
    name,
    help,
    samples: [{ labels: [], value }],
  });
  registry.collect({
    name: "vault-select",
    collect: () => [
      gauge(
        "platform_vault_select_waiting",
        "Questions about the content of objects that wait for a thread.",
        getPool().waiting,
      ),
      gauge(
        "platform_vault_select_threads",
        "Threads for questions about the content of objects.",
        getPool().threads,
      ),
    ],
  });
  return (outcome, { scannedBytes, returnedBytes }) => {
    requests.with({ outcome }).add();
    scanned.add(scannedBytes);
    returned.add(returnedBytes);
  };
}
