// Access logs of buckets.
import type { Service } from "@platform/chassis";
import type { Authorizer } from "../access/authorizer.ts";
import { BucketLogs } from "../audit/bucket-logs.ts";
import type { VaultConfig } from "../config.ts";
import type { Storage } from "./storage.ts";

/** Opens the writer of the logs that `?logging` asks for. */
export function openBucketLogs(
  config: VaultConfig,
  { clock, log, lifecycle, metrics }: Service,
  store: Storage["store"],
  authorizer: Authorizer,
): BucketLogs {
  const objects = metrics.counter({
    name: "platform_vault_bucket_logs_total",
    help: "Objects with access logs of buckets: delivered, refused by their bucket, or failed.",
    labels: ["outcome"],
  });
  const dropped = metrics.counter({
    name: "platform_vault_bucket_log_lines_dropped_total",
    help: "Lines of access logs of buckets that could not be written.",
  });
  const logs = new BucketLogs({
    store,
    authorizer,
    clock,
    log,
    intervalMs: config.bucket_logging_interval_s * 1_000,
    onDelivered: (outcome, lines) => {
      objects.with({ outcome }).add();
      if (outcome === "refused") dropped.add(lines);
    },
    onDropped: (lines) => dropped.add(lines),
  });
  lifecycle.onDrain("access logs of buckets", () => logs.close());
  return logs;
}
