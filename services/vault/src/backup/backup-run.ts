// A backup as a job. One that was interrupted begins again: what it has stored is found.
import type { JobProgress, JobRow, BackupSpec } from "../model/job.ts";
import { backUp } from "./back-up.ts";
import { type BackupParts, OtherRun } from "./other-run.ts";
import { requireBackupAllowed } from "./repository-place.ts";

/** Backs a store up into a repository. */
export class BackupRun extends OtherRun {
  readonly #spec: BackupSpec;

  constructor(parts: BackupParts, job: JobRow, spec: BackupSpec, signal: AbortSignal) {
    super(parts, job, signal);
    this.#spec = spec;
  }

  protected override async work(): Promise<Pick<JobProgress, "reason" | "snapshot">> {
    const { store, openPlace, readPassphrase, owner, now } = this.parts;
    const { repository, keep } = this.#spec;
    await requireBackupAllowed(store, repository);
    // It may read the snapshots that would be removed.
    const isRestoring = (["running", "queued", "paused"] as const).some((state) =>
      store.jobs.listIn(state, 1_000).some(({ operation }) => operation === "restore"),
    );
    const { snapshot, pruneFailure } = await backUp({
      storage: openPlace(repository),
      passphrase: await readPassphrase(),
      owner,
      takeSnapshot: async () => {
        const taken = await store.snapshot();
        // So that a restore is refused early; it reads the names again.
        const buckets = store.buckets.list().map(({ name }) => name);
        return { ...taken, mark: { ...(taken.mark as object), buckets } };
      },
      keep: isRestoring ? undefined : keep,
      nowMs: now(),
      onProgress: ({ files, bytes }) => this.show({ matched: files, done: files, bytes }),
      signal: this.signal,
    });
    const { files, bytes } = snapshot.mark;
    await this.setCounts({ matched: files, done: files, bytes });
    const reason =
      pruneFailure === undefined
        ? {}
        : { reason: `The snapshot is whole. Nothing was removed: ${pruneFailure}` };
    return { snapshot: snapshot.id, ...reason };
  }
}
