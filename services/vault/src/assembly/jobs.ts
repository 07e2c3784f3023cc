// Batch jobs.
import type { Service } from "@platform/chassis";
import type { VaultConfig } from "../config.ts";
import { JobEngine } from "../job/job-engine.ts";
import type { Storage } from "./storage.ts";

/** Creates the engine, which starts when the operations of the object API are there. */
export function openJobs(
  { job_rate: rate, region }: VaultConfig,
  { log, lifecycle, metrics }: Service,
  { store, directory, owner }: Storage,
): JobEngine {
  const engine = new JobEngine({ store, directory, owner, region, log, rate });
  lifecycle.onDrain("jobs", () => engine.stop());
  metrics.collect({
    name: "vault-jobs",
    collect: () => [
      {
        type: "gauge",
        name: "platform_vault_jobs",
        help: "Batch jobs that run or are queued.",
        samples: Object.entries(engine.counts).map(([state, value]) => ({
          labels: [["state", state] as const],
          value,
        })),
      },
    ],
  });
  return engine;
}
