// The bytes: makes writers, opens what is stored, knows how much room is left.
import { rmSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { StoreError } from "../store-error.ts";
import { BlobReader, type OpenBlob } from "./blob-reader.ts";
import {
  createBlobWriter,
  translateDiskError,
  type BlobWriter,
  type NewBlob,
  type WriterEnvironment,
} from "./blob-writer.ts";
import { FolderSync, type StoreFolders } from "./disk.ts";
import { encodeHead, encodeTrailer } from "./layout.ts";
import { OpenFiles } from "./open-files.ts";
import { SegmentWriter } from "./segment-writer.ts";
import type { FreeSpace } from "./free-space.ts";
import { StagingBudget } from "./staging-budget.ts";
import type { BlobId, BlobRecord } from "./types.ts";

/** Bounds and sizes of the bytes' store. */
export interface BlobStoreOptions {
  folders: StoreFolders;
  freeSpace: FreeSpace;
  /** Of this start: from the index. */
  generation: number;
  inlineBytesMax: number;
  segmentRecordBytesMax: number;
  segmentBytesMax: number;
  stagingBytesMax: number;
  stagingWaitersMax: number;
  openFilesMax: number;
}

// A number is generation × 2^32 + count: 2^21 starts with 2^32 blobs each stay below 2^53.
const IDS_PER_GENERATION = 2 ** 32;

/** The bytes of a store. */
export class BlobStore {
  readonly folders: StoreFolders;
  readonly folderSync = new FolderSync();
  readonly segments: SegmentWriter;
  readonly files: OpenFiles;
  readonly reader: BlobReader;
  readonly budget: StagingBudget;
  /** Blobs and segments of this start have this number or a higher one. */
  readonly firstId: number;
  readonly #freeSpace: FreeSpace;
  readonly #environment: WriterEnvironment;
  #nextId: number;

  constructor(options: BlobStoreOptions) {
    this.folders = options.folders;
    this.#freeSpace = options.freeSpace;
    this.firstId = options.generation * IDS_PER_GENERATION;
    this.#nextId = this.firstId;
    this.segments = new SegmentWriter(
      this.folders,
      this.folderSync,
      this.firstId,
      options.segmentBytesMax,
    );
    this.files = new OpenFiles(options.openFilesMax);
    this.reader = new BlobReader(this.folders, this.files);
    this.budget = new StagingBudget(options.stagingBytesMax, options.stagingWaitersMax);
    this.#environment = {
      folders: this.folders,
      folderSync: this.folderSync,
      segments: this.segments,
      budget: this.budget,
      frames: [],
      inlineBytesMax: options.inlineBytesMax,
      segmentRecordBytesMax: options.segmentRecordBytesMax,
    };
  }

  /** Removes what uploads have left behind when the process ended. */
  clearStaging(): void {
    for (const name of readdirSync(this.folders.staging)) {
      rmSync(join(this.folders.staging, name), { force: true });
    }
  }

  /** A number for a new blob. */
  takeId(): BlobId {
    this.#nextId += 1;
    return this.#nextId;
  }

  /** Begins a blob; `InsufficientStorage` where the reserve would be touched. */
  begin(blob: NewBlob): BlobWriter {
    if (this.segments.stopped !== undefined) {
      throw new StoreError(
        "ServiceUnavailable",
        "The disk failed to sync; writes stop until the next start",
      );
    }
    this.#freeSpace.require(blob.stored);
    return createBlobWriter(this.#environment, blob);
  }

  /** Stores a record without data, and pins its segment. */
  async appendManifest(
    id: BlobId,
    description: unknown,
  ): Promise<{ segment: number; position: number; extent: number }> {
    this.#freeSpace.require(0);
    const head = encodeHead(id, 0, description);
    const trailer = encodeTrailer({}, head.length);
    try {
      const at = await this.segments.append([head, trailer]);
      return {
        segment: at.segment,
        position: at.position + head.length,
        extent: head.length + trailer.length,
      };
    } catch (error) {
      throw translateDiskError(error);
    }
  }

  /** Opens a blob for reading. */
  open(blob: BlobRecord): Promise<OpenBlob> {
    return this.reader.open(blob);
  }

  /** Closes files when they are no longer in use. */
  async close(): Promise<void> {
    await this.segments.close();
    this.files.close();
  }
}
