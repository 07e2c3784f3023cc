// The blob store: creates writers, opens stored blobs, checks free space.
import { rmSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { StoreError } from "../model/store-error.ts";
import type { DriveSet } from "./drive/drive-set.ts";
import type { Drive } from "./drive/drive.ts";
import { ReedSolomon } from "./erasure/reed-solomon.ts";
import type { OpenBlob } from "./blob-reader.ts";
import { createBlobWriter, type WriterEnvironment } from "./blob-writer.ts";
import { translateDiskError, type BlobWriter, type NewBlob } from "./staged-writer.ts";
import { openCopy, type DamageListener } from "./copy-reader.ts";
import type { FrameMemory } from "./frame-memory.ts";
import { Leases } from "./leases.ts";
import { encodeHead, encodeTrailer } from "./layout.ts";
import { Quarantine } from "./quarantine.ts";
import { SegmentWriter } from "./segment-writer.ts";
import { ShardBlob } from "./shard-reader.ts";
import { ShardWriter } from "./shard-writer.ts";
import type { FreeSpace } from "../disk/free-space.ts";
import { StagingBudget } from "./staging-budget.ts";
import { readFrames } from "./frame-reader.ts";
import type { Remotes } from "../remote/remotes.ts";
import type { BlobId, BlobRecord, RemotePlace } from "../model/blob.ts";

/** Options of a `BlobStore`. */
export interface BlobStoreOptions {
  drives: DriveSet;
  /** Buffers for reading from the drives. */
  memory: FrameMemory;
  freeSpace: FreeSpace;
  /** Generation of this start of the process, from the index. */
  generation: number;
  inlineBytesMax: number;
  segmentRecordBytesMax: number;
  segmentBytesMax: number;
  stagingBytesMax: number;
  stagingWaitersMax: number;
  quarantineBytesMax: number;
  remotes: Remotes;
}

// An id is generation × 2^32 + count: 2^21 starts with 2^32 blobs each stay below 2^53.
const IDS_PER_GENERATION = 2 ** 32;

/** Stores and reads blobs. */
export class BlobStore {
  readonly drives: DriveSet;
  readonly code: ReedSolomon;
  readonly segments: SegmentWriter;
  readonly budget: StagingBudget;
  readonly quarantine: Quarantine;
  /** The lowest id that blobs and segments created since startup can have. */
  readonly firstId: number;
  /** A lease per body, from its first byte to its commit: a drive may lack bodies whose write began while it was absent. */
  readonly writes = new Leases();
  readonly remotes: Remotes;
  /** Called when a copy or a shard could not be read. */
  onDamage: DamageListener = () => undefined;
  readonly #memory: FrameMemory;
  readonly #freeSpace: FreeSpace;
  readonly #environment: WriterEnvironment;
  #nextId: number;

  constructor(options: BlobStoreOptions) {
    const { drives } = options;
    this.drives = drives;
    this.code = new ReedSolomon(drives.data, drives.parity);
    this.remotes = options.remotes;
    this.#memory = options.memory;
    this.#freeSpace = options.freeSpace;
    this.firstId = options.generation * IDS_PER_GENERATION;
    this.#nextId = this.firstId;
    this.segments = new SegmentWriter(drives, this.firstId, options.segmentBytesMax);
    this.quarantine = new Quarantine(options.quarantineBytesMax);
    this.budget = new StagingBudget(options.stagingBytesMax, options.stagingWaitersMax);
    const [first] = drives.all;
    this.#environment = {
      drives,
      code: this.code,
      folders: first!.folders,
      folderSync: first!.folderSync,
      segments: this.segments,
      budget: this.budget,
      frames: [],
      inlineBytesMax: options.inlineBytesMax,
      segmentRecordBytesMax: options.segmentRecordBytesMax,
    };
  }

  get openFiles(): number {
    return this.drives.all.reduce((sum, { files }) => sum + files.count, 0);
  }

  get corruptBlocks(): number {
    return this.drives.all.reduce((sum, { reader }) => sum + reader.corruptBlocks, 0);
  }

  /** Returns the id for a new blob. */
  takeId(): BlobId {
    this.#nextId += 1;
    return this.#nextId;
  }

  /** Starts a blob. Throws `InsufficientStorage` if it would use the reserve. */
  begin(blob: NewBlob): BlobWriter {
    if (this.segments.stopped !== undefined) {
      throw new StoreError(
        "ServiceUnavailable",
        "The disk failed to sync; writes stop until the next start",
      );
    }
    this.#freeSpace.require(blob.stored);
    if (this.drives.present.length <= this.drives.parity) {
      // A failed store cannot commit, and would reuse the id.
      throw new StoreError("ServiceUnavailable", "Too few drives are present to store this");
    }
    const isLarge = blob.stored > this.#environment.segmentRecordBytesMax;
    if (isLarge && this.drives.isErasureCoded) return new ShardWriter(this.#environment, blob);
    return createBlobWriter(this.#environment, blob);
  }

  /** Throws `InsufficientStorage` if these bytes would use the reserve. */
  requireSpace(bytes: number): void {
    this.#freeSpace.require(bytes);
  }

  /** The path of a new file for bytes that are not stored yet; the next start removes it. */
  nameSpool(): string {
    const { present } = this.drives;
    const id = this.takeId();
    const drive = present[id % Math.max(1, present.length)];
    return (drive?.folders ?? this.#environment.folders).spilled(id);
  }

  /** Stores a record without data, and pins its segment. */
  async appendManifest(
    id: BlobId,
    description: unknown,
    summary: object = {},
  ): Promise<{ segment: number; position: number; extent: number }> {
    this.#freeSpace.require(0);
    const head = encodeHead(id, 0, description);
    const trailer = encodeTrailer(summary, head.length);
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

  /** Opens a blob that is not composite. Rejects with `ENOENT` if its bytes are missing. */
  async open(blob: BlobRecord): Promise<OpenBlob> {
    if (blob.place.kind === "remote") return this.#openRemote(blob, blob.place.at);
    const [first] = this.drives.all;
    if (!this.drives.isErasureCoded || blob.place.kind === "inline")
      return first!.reader.open(blob);
    if (isInSegment(blob)) return openCopy(this.drives, blob, this.onDamage);
    return this.openShards(blob).open();
  }

  /** Opens a blob in a remote for background work, which has a budget there. */
  openPaced(blob: BlobRecord, signal: AbortSignal): Promise<OpenBlob> {
    const at = blob.place.kind === "remote" ? blob.place.at : undefined;
    return this.#openRemote(blob, at, signal);
  }

  async #openRemote(
    blob: BlobRecord,
    at: RemotePlace | undefined,
    signal?: AbortSignal,
  ): Promise<OpenBlob> {
    if (at === undefined)
      throw new StoreError("InternalError", `The place of blob ${blob.id.toString(16)} is unknown`);
    if (at.copy !== undefined) return this.open(at.copy);
    const remote = this.remotes.require(at.remote);
    const source = {
      read: (position: number, length: number, isTable: boolean) => {
        const end = position + length;
        if (signal !== undefined) return remote.readPaced(at, position, end, signal);
        return isTable ? remote.readTable(at, position, end) : remote.read(at, position, end);
      },
      failCorrupt: () => {
        remote.wrongBlocks += 1;
        remote.dropTables();
        return new StoreError(
          "InternalError",
          `The remote ${at.remote} returned other bytes (blob ${blob.id.toString(16)})`,
        );
      },
    };
    return {
      read: (start, end, window) =>
        readFrames(source, blob, { position: at.position, start, end, window }),
      close: () => undefined,
    };
  }

  /** Throws if too many drives are absent to read a blob. */
  requireDrives(blob: BlobRecord): void {
    const { drives } = this;
    if (blob.place.kind === "remote") {
      if (blob.place.at?.copy !== undefined) this.requireDrives(blob.place.at.copy);
      return;
    }
    if (!drives.isErasureCoded || drives.present.length === drives.all.length) return;
    const { place } = blob;
    const isReadable =
      place.kind === "file"
        ? drives.rankShards(blob.id).filter((drive) => drive.isPresent).length >= drives.data
        : place.kind !== "segment" || drives.rank(place.segment).some((drive) => drive.isPresent);
    if (isReadable) return;
    throw new StoreError("ServiceUnavailable", "Too few drives are present to read this");
  }

  /** The shards of a blob. */
  openShards(blob: BlobRecord): ShardBlob {
    return new ShardBlob(blob, this.drives, this.code, (damage) => this.onDamage(damage));
  }

  /** Gives back a chunk that is no longer used. */
  recycle(chunk: Buffer): void {
    this.#memory.recycle(chunk);
  }

  /** Closes files after their last use. */
  async close(): Promise<void> {
    await this.segments.close();
    await Promise.all(this.drives.all.map(({ files }) => files.close()));
  }
}

/** Removes the leftovers of uploads on a drive after the process ended. Files with other names are left alone. */
export function clearStaging({ folders }: Drive): void {
  for (const name of readdirSync(folders.staging)) {
    if (STAGED_NAME.test(name)) rmSync(join(folders.staging, name), { force: true });
  }
}

const STAGED_NAME = /^[0-9a-f]{14}(?:\.seg|\.spill)?$/;

function isInSegment(blob: BlobRecord): blob is BlobRecord & { place: { kind: "segment" } } {
  return blob.place.kind === "segment";
}
