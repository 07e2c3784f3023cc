// A body on its way to the disk: into memory for the index or a segment, frame by frame into a file of its own.
import { StoreError } from "../store-error.ts";
import {
  closeFile,
  openFile,
  removeFile,
  renameFile,
  syncData,
  writeAll,
  type FolderSync,
  type StoreFolders,
} from "./disk.ts";
import {
  BLOCK_BYTES,
  encodeHead,
  encodeTrailer,
  FRAME_BYTES,
  measureFrames,
  sealFrame,
} from "./layout.ts";
import type { SegmentWriter } from "./segment-writer.ts";
import type { ShardEnvironment } from "./shard-writer.ts";
import type { BlobId, BlobPlace } from "./types.ts";

/** What writers share. */
export interface WriterEnvironment extends ShardEnvironment {
  folders: StoreFolders;
  folderSync: FolderSync;
  segments: SegmentWriter;
  inlineBytesMax: number;
  segmentRecordBytesMax: number;
}

/** What is known of a blob before its first byte. */
export interface NewBlob {
  id: BlobId;
  /** Bytes that will be written. */
  stored: number;
  description: unknown;
}

/** Takes the bytes of one blob. */
export interface BlobWriter {
  /** As `Upload.write`. */
  write(chunk: Uint8Array): Promise<void> | undefined;
  /** All bytes were written: makes them durable. */
  seal(summary: unknown): Promise<{ place: BlobPlace; extent: number }>;
  /** Forgets them. Harmless after `seal` has failed; after it has succeeded it removes what was stored. */
  discard(): Promise<void>;
}

const FRAME_BUFFER_BYTES = FRAME_BYTES + 4 * (FRAME_BYTES / BLOCK_BYTES);
const FRAMES_KEPT = 32;
/** Bytes of one body after which they are brought to the disk, while more come. */
const FLUSH_BYTES = 4 * 1024 * 1024;
/** Frames of one body that are being written. */
const FLIGHTS_MAX = 2;

/** Chooses the place by the size. */
export function createBlobWriter(environment: WriterEnvironment, blob: NewBlob): BlobWriter {
  if (blob.stored <= environment.inlineBytesMax) return new InlineWriter(environment, blob);
  if (blob.stored <= environment.segmentRecordBytesMax) return new RecordWriter(environment, blob);
  return new FileWriter(environment, blob);
}

/** What an error of the disk is to the caller. */
export function translateDiskError(error: unknown): StoreError {
  if (error instanceof StoreError) return error;
  const code = (error as NodeJS.ErrnoException).code;
  if (code === "ENOSPC" || code === "EDQUOT") {
    return new StoreError("InsufficientStorage", "There is not enough space left to store this");
  }
  return new StoreError("InternalError", `The disk cannot be written (${code ?? "unknown"})`);
}

// Collects a whole body in one buffer, once the budget has room for it.
abstract class MemoryWriter {
  protected readonly environment: WriterEnvironment;
  protected readonly blob: NewBlob;
  protected readonly bytes: number;
  protected body: Buffer | undefined;
  #at = 0;
  #isDone = false;

  constructor(environment: WriterEnvironment, blob: NewBlob, bytes: number) {
    this.environment = environment;
    this.blob = blob;
    this.bytes = bytes;
  }

  write(chunk: Uint8Array): Promise<void> | undefined {
    if (this.body === undefined) {
      const waiting = this.environment.budget.take(this.bytes);
      if (waiting !== undefined) {
        const kept = Buffer.from(chunk);
        return waiting.then(() => this.#begin(kept));
      }
    }
    return this.#begin(chunk);
  }

  #begin(chunk: Uint8Array): undefined {
    if (this.#isDone) {
      this.environment.budget.give(this.bytes);
      return;
    }
    // Not from a pool: the writer thread gets a copy of all that stands behind the buffer.
    this.body ??= Buffer.allocUnsafeSlow(this.bytes);
    this.body.set(chunk, this.#at);
    this.#at += chunk.length;
  }

  protected release(): void {
    if (this.#isDone) return;
    this.#isDone = true;
    if (this.body !== undefined) this.environment.budget.give(this.bytes);
    this.body = undefined;
  }
}

class InlineWriter extends MemoryWriter implements BlobWriter {
  constructor(environment: WriterEnvironment, blob: NewBlob) {
    super(environment, blob, blob.stored);
  }

  async seal(): Promise<{ place: BlobPlace; extent: number }> {
    const data = this.body ?? Buffer.alloc(0);
    this.release();
    return { place: { kind: "inline", data }, extent: data.length };
  }

  async discard(): Promise<void> {
    this.release();
  }
}

class RecordWriter extends MemoryWriter implements BlobWriter {
  constructor(environment: WriterEnvironment, blob: NewBlob) {
    super(environment, blob, measureFrames(blob.stored));
  }

  async seal(summary: unknown): Promise<{ place: BlobPlace; extent: number }> {
    const { id, stored, description } = this.blob;
    const frame = this.body;
    if (frame === undefined) throw new StoreError("InternalError", "no body was written");
    try {
      sealFrame(frame, stored);
      const head = encodeHead(id, stored, description);
      const trailer = encodeTrailer(summary, head.length + frame.length);
      const at = await this.environment.segments.append([head, frame, trailer]);
      return {
        place: { kind: "segment", segment: at.segment, position: at.position + head.length },
        extent: head.length + frame.length + trailer.length,
      };
    } catch (error) {
      throw translateDiskError(error);
    } finally {
      this.release();
    }
  }

  // What was appended and never committed is garbage that compaction finds.
  async discard(): Promise<void> {
    this.release();
  }
}

//   chunks ──► frame being filled ──(full)──► frames in flight ──► staged file ──(seal)──► renamed, synced with its folder
//
// At most three frames a writer; `write` falls behind when the second is in flight before the first is written.
class FileWriter implements BlobWriter {
  readonly #environment: WriterEnvironment;
  readonly #blob: NewBlob;
  readonly #head: Buffer;
  #fd: number | undefined;
  #opening: Promise<number> | undefined;
  #frame: Buffer | undefined;
  #filled = 0;
  #position: number;
  readonly #flights = new Set<Promise<void>>();
  #dirty = 0;
  #flushing: Promise<void> | undefined;
  #granting: Promise<void> | undefined;
  #failure: StoreError | undefined;
  #isDiscarded = false;
  // Staged until it is sealed.
  #path: string;

  constructor(environment: WriterEnvironment, blob: NewBlob) {
    this.#environment = environment;
    this.#blob = blob;
    this.#path = environment.folders.staged(blob.id);
    this.#head = encodeHead(blob.id, blob.stored, blob.description);
    this.#position = this.#head.length;
  }

  write(chunk: Uint8Array): Promise<void> | undefined {
    if (this.#failure !== undefined) throw this.#failure;
    const rest = this.#fill(chunk);
    if (rest !== undefined) return this.#writeRest(Buffer.from(rest));
    return this.#flights.size < FLIGHTS_MAX ? undefined : this.#land();
  }

  async seal(summary: unknown): Promise<{ place: BlobPlace; extent: number }> {
    try {
      await Promise.all(this.#flights);
      await this.#flushing;
      if (this.#failure !== undefined) throw this.#failure;
      const fd = await this.#open();
      const frame = this.#frame;
      const sealed = frame === undefined ? [] : [frame.subarray(0, sealFrame(frame, this.#filled))];
      const before = this.#position + (sealed[0]?.length ?? 0);
      const trailer = encodeTrailer(summary, before);
      await writeAll(fd, [...sealed, trailer], this.#position);
      this.#giveFrame();
      await this.#publish(fd);
      const extent = before + trailer.length;
      return { place: { kind: "file", position: this.#head.length }, extent };
    } catch (error) {
      await this.discard();
      throw translateDiskError(error);
    }
  }

  async discard(): Promise<void> {
    if (this.#isDiscarded) return;
    this.#isDiscarded = true;
    await Promise.all(this.#flights);
    await this.#flushing;
    this.#giveFrame();
    await this.#close().catch(() => undefined);
    // Where this fails, the next start or the scrubber removes it.
    await removeFile(this.#path).catch(() => undefined);
  }

  // The bytes and the name come to the disk together, in one wait: until both are there, nothing refers to them.
  async #publish(fd: number): Promise<void> {
    const { folders, folderSync } = this.#environment;
    const path = folders.file(this.#blob.id);
    await renameFile(this.#path, path);
    this.#path = path;
    await Promise.all([syncData(fd), folderSync.sync(folders.fileFolder(this.#blob.id))]);
    await this.#close();
  }

  async #close(): Promise<void> {
    const fd = this.#fd;
    this.#fd = undefined;
    if (fd !== undefined) await closeFile(fd);
  }

  // Copies what fits; returns what is left when the writer must wait.
  #fill(chunk: Uint8Array): Uint8Array | undefined {
    let rest = chunk;
    while (rest.length > 0) {
      if (this.#filled === FRAME_BYTES) {
        if (this.#flights.size === FLIGHTS_MAX) return rest;
        this.#launch();
      }
      if (this.#frame === undefined) {
        const waiting = this.#environment.budget.take(FRAME_BUFFER_BYTES);
        if (waiting !== undefined) {
          this.#granting = waiting;
          return rest;
        }
        this.#takeFrame();
      }
      const count = Math.min(rest.length, FRAME_BYTES - this.#filled);
      this.#frame!.set(rest.length === count ? rest : rest.subarray(0, count), this.#filled);
      this.#filled += count;
      rest = rest.subarray(count);
    }
    if (this.#filled === FRAME_BYTES && this.#flights.size < FLIGHTS_MAX) this.#launch();
    return undefined;
  }

  async #writeRest(rest: Uint8Array): Promise<void> {
    let left: Uint8Array | undefined = rest;
    while (left !== undefined) {
      if (this.#granting !== undefined) {
        await this.#granting;
        this.#granting = undefined;
        if (!this.#isDiscarded) this.#takeFrame();
        else this.#environment.budget.give(FRAME_BUFFER_BYTES);
      } else {
        await this.#land();
      }
      if (this.#failure !== undefined) throw this.#failure;
      if (this.#isDiscarded) return;
      left = this.#fill(left);
    }
  }

  async #land(): Promise<void> {
    await Promise.race(this.#flights);
    if (this.#failure !== undefined) throw this.#failure;
  }

  #takeFrame(): void {
    this.#frame = this.#environment.frames.pop() ?? Buffer.allocUnsafeSlow(FRAME_BUFFER_BYTES);
    this.#filled = 0;
  }

  #giveFrame(): void {
    if (this.#frame !== undefined) this.#recycle(this.#frame);
    this.#frame = undefined;
    this.#filled = 0;
  }

  #recycle(frame: Buffer): void {
    if (this.#environment.frames.length < FRAMES_KEPT) this.#environment.frames.push(frame);
    this.#environment.budget.give(FRAME_BUFFER_BYTES);
  }

  #launch(): void {
    const frame = this.#frame!;
    const bytes = sealFrame(frame, this.#filled);
    const position = this.#position;
    this.#position += bytes;
    this.#frame = undefined;
    this.#filled = 0;
    const flight = this.#open()
      .then(async (fd) => {
        await writeAll(fd, [frame.subarray(0, bytes)], position);
        this.#flush(fd, bytes);
      })
      .catch((error: unknown) => {
        this.#failure = translateDiskError(error);
      })
      .finally(() => {
        this.#recycle(frame);
        this.#flights.delete(flight);
      });
    this.#flights.add(flight);
  }

  // Brings to the disk what was written meanwhile, so that little is left when the client waits for its answer.
  #flush(fd: number, bytes: number): void {
    this.#dirty += bytes;
    if (this.#dirty < FLUSH_BYTES || this.#flushing !== undefined) return;
    this.#dirty = 0;
    this.#flushing = syncData(fd)
      .catch((error: unknown) => {
        this.#failure = translateDiskError(error);
      })
      .finally(() => {
        this.#flushing = undefined;
      });
  }

  // Once, whoever comes first.
  #open(): Promise<number> {
    this.#opening ??= this.#create();
    return this.#opening;
  }

  async #create(): Promise<number> {
    this.#fd = await openFile(this.#path, "wx");
    await writeAll(this.#fd, [this.#head], 0);
    return this.#fd;
  }
}
