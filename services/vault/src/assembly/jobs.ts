// Batch jobs, backups and restores.
import { join } from "node:path";
import type { Service } from "@platform/chassis";
import type { VaultConfig } from "../config.ts";
import { JobEngine } from "../job/job-engine.ts";
import { readPassphrase } from "@platform/kernel/backup";
import { BackupRun } from "../backup/backup-run.ts";
import type { BackupParts } from "../backup/other-run.ts";
import { createPlaces } from "../backup/repository-place.ts";
import { RestoreRun } from "../backup/restore-run.ts";
import { RestoreSweep } from "../backup/sweep.ts";
import type { Storage } from "./storage.ts";

/** Creates what backups and restores need. */
export function openBackups(
  { backup_dir: backupDir, backup_passphrase_file: file, data_dir: dataDir }: VaultConfig,
  { log, clock }: Service,
  { store, ring }: Storage,
): BackupParts {
  return {
    store,
    keys: ring,
    log,
    now: () => clock.now(),
    openPlace: createPlaces(backupDir, store),
    readPassphrase: async () => (file === undefined ? undefined : await readPassphrase(file)),
    owner: ring.owner,
    stagingFolder: join(dataDir, "restoring"),
  };
}

/** Creates the engine, which starts when the operations of the object API are there. */
export function openJobs(
  { job_rate: rate, region }: VaultConfig,
  { log, lifecycle, metrics }: Service,
  { store, directory, owner }: Storage,
  backups: BackupParts,
): JobEngine {
  const sweep = new RestoreSweep(backups);
  const engine = new JobEngine({
    store,
    directory,
    owner,
    region,
    log,
    rate,
    beginOther: (job, spec, signal) =>
      spec.operation === "backup"
        ? new BackupRun(backups, job, spec, signal)
        : new RestoreRun(backups, job, spec, signal),
    onEnd: () => sweep.start(),
  });
  sweep.start();
  lifecycle.onDrain("jobs", async () => {
    await engine.stop();
    await sweep.stop();
  });
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
