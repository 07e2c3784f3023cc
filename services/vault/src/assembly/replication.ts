// Replication: what sends versions to other buckets.
import type { Service } from "@platform/chassis";
import type { Authorizer } from "../access/authorizer.ts";
import type { JobEngine } from "../job/job-engine.ts";
import { collectReplication } from "../replication/replication-metrics.ts";
import { Replicator } from "../replication/replicator.ts";
import type { Storage } from "./storage.ts";

/** Creates the replicator, which starts with the object API. */
export function openReplication(
  { log, clock, lifecycle, metrics, health }: Service,
  { store, directory, owner }: Storage,
  authorizer: Authorizer,
  jobs: JobEngine,
): Replicator {
  const replicator = new Replicator({
    store,
    authorizer,
    directory,
    owner,
    clock,
    log,
    startExisting: (bucket, requester) => jobs.startReplication(bucket, requester),
  });
  lifecycle.onDrain("replication", () => replicator.stop());
  health.addWarning("replication", () => {
    const buckets = replicator.listSuspended();
    return buckets.length === 0
      ? undefined
      : `rules of ${buckets.slice(0, 10).join(", ")} wait: they were put in the store that was backed up`;
  });
  collectReplication(metrics, () => replicator.listLanes());
  return replicator;
}
