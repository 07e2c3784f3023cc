// Answers to questions about the content of objects.
import type { Service } from "@platform/chassis";
import type { VaultConfig } from "../config.ts";
import { createSelectObserver } from "../select/select-metrics.ts";
import { SelectPool } from "../select/select-pool.ts";

/** Creates the pool. Its threads start with the first question. */
export function openSelect(
  { select_threads: threads, select_timeout_ms: timeoutMs }: VaultConfig,
  { metrics, lifecycle }: Service,
): SelectPool {
  const pool: SelectPool = new SelectPool({
    threads,
    timeoutMs,
    onFinished: createSelectObserver(metrics, () => pool),
  });
  lifecycle.onDrain("questions", () => pool.close());
  return pool;
}
