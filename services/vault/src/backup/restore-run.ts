// A restore of buckets into the running store as a job. One that was interrupted continues with the next version.
import { join } from "node:path";
import { BackupError, Repository, requireWholeSnapshot } from "@platform/kernel/backup";
import type { KeyProvider } from "../blob/encryption.ts";
import { runSteps } from "../job/run-steps.ts";
import { type Bucket, isOwnBucket, nameHiddenBucket } from "../model/bucket.ts";
import type { JobPosition, JobProgress, JobRow, RestoreSpec } from "../model/job.ts";
import { StoreError } from "../model/store-error.ts";
import { describeRepository } from "./back-up.ts";
import { BucketImport } from "./bucket-import.ts";
import { type BackupParts, OtherRun } from "./other-run.ts";
import { SnapshotReader } from "./snapshot-reader.ts";

const MASTER_KEY = "access/master.key";
const KEY_FILE = "access/encryption-keys.json";

/** A bucket of the snapshot and its new name. */
interface Wanted {
  id: number;
  bucket: Bucket;
  name: string;
}

/** Restores buckets of a snapshot. */
export class RestoreRun extends OtherRun {
  readonly #spec: RestoreSpec;

  constructor(parts: BackupParts, job: JobRow, spec: RestoreSpec, signal: AbortSignal) {
    super(parts, job, signal);
    this.#spec = spec;
  }

  protected override async work(): Promise<Pick<JobProgress, "snapshot"> | undefined> {
    const { store, openPlace, readPassphrase, stagingFolder } = this.parts;
    const storage = openPlace(this.#spec.repository);
    const passphrase = await readPassphrase();
    const repository = await Repository.open(describeRepository(storage, passphrase));
    const snapshot = await repository.load(this.#spec.snapshot);
    await requireWholeSnapshot(repository, { signal: this.signal }, snapshot);
    const reader = await SnapshotReader.open(
      {
        repository,
        snapshot,
        folder: join(stagingFolder, this.job.id),
        requireSpace: (bytes) => store.imports.requireSpace(bytes),
        openRemote: (blob) => store.imports.openRemote(blob, this.signal),
      },
      this.signal,
    );
    try {
      const wanted = this.#choose(reader);
      const keys = await this.#findKeys(reader);
      for (let at = this.progress.position.listed ?? 0; at < wanted.length; at += 1) {
        await this.#restore(reader, keys, wanted[at]!, at);
        if (this.signal.aborted) return undefined;
        await reader.clear();
      }
      return { snapshot: snapshot.id };
    } finally {
      await reader.close();
    }
  }

  #choose(reader: SnapshotReader): Wanted[] {
    const { buckets, as } = this.#spec;
    const found = reader.listBuckets();
    for (const name of [...(buckets ?? []), ...Object.keys(as)]) {
      if (found.some(({ bucket }) => bucket.name === name)) continue;
      throw new BackupError(`the snapshot has no bucket ${name}`);
    }
    const wanted = found
      .filter(({ bucket }) => buckets?.includes(bucket.name) ?? !isOwnBucket(bucket.name))
      .map(({ id, bucket }) => ({ id, bucket, name: as[bucket.name] ?? bucket.name }));
    const done = this.progress.position.listed ?? 0;
    for (const { name } of wanted.slice(done)) this.#requireFree(name);
    return wanted;
  }

  #requireFree(name: string): void {
    if (this.parts.store.buckets.find(name) === undefined) return;
    throw new StoreError("BucketAlreadyExists", `The bucket ${name} exists already.`, {
      bucket: name,
    });
  }

  // Of another store, the snapshot has the keys itself, and so it has those that were deleted here since.
  async #findKeys(reader: SnapshotReader): Promise<Pick<KeyProvider, "find">> {
    const { keys } = this.parts;
    const masterKey = await reader.readSmall(MASTER_KEY);
    const keyFile = await reader.readSmall(KEY_FILE);
    return keys.openSaved(masterKey, keyFile);
  }

  async #restore(
    reader: SnapshotReader,
    keys: Pick<KeyProvider, "find">,
    { id, bucket, name }: Wanted,
    at: number,
  ): Promise<void> {
    const { imports } = this.parts.store;
    const hidden = nameHiddenBucket(this.job.id, name);
    // Under another name, it would mix its versions with those of the bucket that it is a copy of.
    const { replication: _, ...others } = bucket.settings;
    const settings = name === bucket.name ? bucket.settings : others;
    await imports.begin({ ...bucket, settings, name: hidden });
    const work = new BucketImport({ reader, imports, keys, bucketId: id, name });
    await runSteps(async () => {
      const { listed: _, ...position } = this.progress.position;
      const page = await work.readPage(position).catch(async (error: unknown) => {
        await work.end(false);
        throw error;
      });
      let isCommitted = false;
      try {
        const { matched, done, bytes } = this.progress;
        const count = page.versions.length;
        const counts = { matched: matched + count, done: done + count, bytes: bytes + page.bytes };
        const next: JobPosition = { listed: at, ...page.position };
        const step = this.describeStep(counts, next, {});
        this.progress = await imports.commit(hidden, page.versions, step);
        isCommitted = true;
      } finally {
        await work.end(isCommitted);
      }
      return page.isLast;
    }, this.signal);
    if (this.signal.aborted) return;
    const step = this.describeStep(this.progress, { listed: at + 1 }, {});
    this.progress = await imports.publish(hidden, name, step);
  }
}
