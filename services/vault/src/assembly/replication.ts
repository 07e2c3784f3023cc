// Replication: what sends versions to other buckets.
import type { Service } from "@platform/chassis";
import type { Authorizer } from "../access/authorizer.ts";
import type { JobEngine } from "../job/job-engine.ts";
import { collectReplication } from "../replication/replication-metrics.ts";
import { Replicator } from "../replication/replicator.ts";
import type { Storage } from "./storage.ts";

/** Creates the replicator, which starts with the object API. */
export function openReplication(
  { log, clock, lifecycle, metrics }: Service,
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
  collectReplication(metrics, () => replicator.listLanes());
  return replicator;
}
