// Brings versions of a snapshot into the store: their stored bytes as they are, then their rows with the progress of the job.
import type { OpenBlob } from "../blob/blob-reader.ts";
import { type KeyProvider, rewrapCipher } from "../blob/encryption.ts";
import type { BlobWriter } from "../blob/staged-writer.ts";
import type { BlobRecord } from "../model/blob.ts";
import type { Bucket } from "../model/bucket.ts";
import type { ImportedVersion } from "../model/import.ts";
import type { JobProgress } from "../model/job.ts";
import type { AdvanceJobOperation } from "../transaction/job-operations.ts";
import type { ServiceEnvironment } from "./object-service.ts";
import type { RecordDescription, RecordSummary } from "./record-description.ts";

/** Bytes of a snapshot that are to be stored. */
export interface ImportedBytes {
  /** As the snapshot stored them. */
  readonly blob: BlobRecord;
  /** Without cipher and size, which are added. */
  readonly description: RecordDescription;
  readonly summary: RecordSummary;
  /** The stored bytes, encrypted if the blob is. */
  readonly chunks: AsyncIterable<Uint8Array>;
}

/** Bytes that are stored, until the rows that name them are committed. */
export interface StoredImport {
  readonly blob: BlobRecord;
  /** After the commit. */
  readonly end: () => void;
  /** If there will be none. */
  readonly discard: () => Promise<void>;
}

/** Imports versions into hidden buckets. */
export class ImportService {
  readonly #env: ServiceEnvironment;

  constructor(environment: ServiceEnvironment) {
    this.#env = environment;
  }

  /** The names of hidden buckets. */
  get hiddenNames(): readonly string[] {
    return this.#env.buckets.hiddenNames;
  }

  /** Throws `InsufficientStorage` if so many bytes would use the reserve of the disk. */
  requireSpace(bytes: number): void {
    this.#env.blobs.requireSpace(bytes);
  }

  /** Opens a body of a snapshot that is in a remote. Throws InternalError if this store does not have the remote. */
  openRemote(blob: BlobRecord, signal: AbortSignal): Promise<OpenBlob> {
    return this.#env.blobs.openPaced(blob, signal);
  }

  /** Creates a hidden bucket, unless it exists. */
  begin(bucket: Bucket): Promise<void> {
    return this.#env.buckets.beginImport(bucket);
  }

  /** Removes a hidden bucket with everything in it. */
  drop(hidden: string): Promise<void> {
    return this.#env.buckets.dropImport(hidden);
  }

  /** Stores bytes under a new id. Their key, if they have one, is one of `keys`, and is wrapped again. */
  async store(
    { blob: before, description, summary, chunks }: ImportedBytes,
    keys: Pick<KeyProvider, "find">,
  ): Promise<StoredImport> {
    const { blobs, keys: to } = this.#env;
    const id = blobs.takeId();
    const { stored, size } = before;
    const cipher = before.cipher && rewrapCipher(before.cipher, { from: keys, to }, before.id, id);
    const described = cipher === undefined ? description : { ...description, size, cipher };
    const writer = blobs.begin({ id, stored, description: described, tenant: "" });
    const endWrite = blobs.writes.begin();
    try {
      for await (const chunk of chunks) await writer.write(chunk);
      const sealed = await writer.seal(summary);
      const blob = { id, size, stored, ...sealed, ...(cipher === undefined ? {} : { cipher }) };
      return this.#hold(blob, writer, endWrite);
    } catch (error) {
      endWrite();
      await writer.discard();
      throw error;
    }
  }

  /** Stores the manifest of a body of parts. */
  async storeManifest(size: number, description: RecordDescription): Promise<StoredImport> {
    const { blobs } = this.#env;
    const id = blobs.takeId();
    const endWrite = blobs.writes.begin();
    try {
      const { extent, ...manifest } = await blobs.appendManifest(id, description);
      const place = { kind: "parts", manifest } as const;
      const release = (): void => {
        blobs.segments.unpin(manifest.segment);
        endWrite();
      };
      // A record that was appended and never committed is garbage, which compaction finds.
      const discard = (): Promise<void> => Promise.resolve(release());
      return { blob: { id, size, stored: size, extent, place }, end: release, discard };
    } catch (error) {
      endWrite();
      throw error;
    }
  }

  /** Commits versions with the progress of their job. */
  async commit(
    bucket: string,
    versions: readonly ImportedVersion[],
    step: Omit<AdvanceJobOperation, "type" | "nowMs">,
  ): Promise<JobProgress> {
    const { writer } = this.#env;
    const operation = { type: "importVersions", bucket, versions, step: this.#date(step) } as const;
    const { progress } = await writer.submit(operation);
    return progress;
  }

  /** Gives a hidden bucket its name, with the progress of the job. Throws `BucketAlreadyExists` if it is taken. */
  async publish(
    hidden: string,
    name: string,
    step: Omit<AdvanceJobOperation, "type" | "nowMs">,
  ): Promise<JobProgress> {
    const { writer, buckets } = this.#env;
    const operation = { type: "publishBucket", bucket: hidden, name } as const;
    const { state, progress } = await writer.submit({ ...operation, step: this.#date(step) });
    buckets.endImport(hidden, state);
    return progress;
  }

  #date(step: Omit<AdvanceJobOperation, "type" | "nowMs">): AdvanceJobOperation {
    return { type: "advanceJob", ...step, nowMs: this.#env.now() };
  }

  #hold(blob: BlobRecord, writer: BlobWriter, endWrite: () => void): StoredImport {
    const { place } = blob;
    const end = (): void => {
      if (place.kind === "segment") this.#env.blobs.segments.unpin(place.segment);
      endWrite();
    };
    return {
      blob,
      end,
      discard: async () => {
        end();
        await writer.discard();
      },
    };
  }
}
