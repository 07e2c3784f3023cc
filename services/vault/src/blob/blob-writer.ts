// Writes a body: into memory for the index or a segment, or frame by frame into its own file.
import { StoreError } from "../model/store-error.ts";
import {
  closeFile,
  openFile,
  removeFile,
  renameFile,
  syncData,
  writeAll,
  type FolderSync,
  type StoreFolders,
} from "../disk/files.ts";
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
import {
  StagedWriter,
  translateDiskError,
  type BlobWriter,
  type NewBlob,
  type StagedWriterOptions,
} from "./staged-writer.ts";
import type { BlobPlace } from "../model/blob.ts";

/** Parts that all writers share. */
export interface WriterEnvironment extends ShardEnvironment {
  folders: StoreFolders;
  folderSync: FolderSync;
  segments: SegmentWriter;
  inlineBytesMax: number;
  segmentRecordBytesMax: number;
}

const FRAME_BUFFER_BYTES = FRAME_BYTES + 4 * (FRAME_BYTES / BLOCK_BYTES);
const FRAMES_KEPT = 32;
/** Bytes of a body after which they are synced while more arrive. */
const FLUSH_BYTES = 4 * 1024 * 1024;
/** Frames of a body that are being written. */
const FLIGHTS_MAX = 2;

/** Chooses the location by size. */
export function createBlobWriter(environment: WriterEnvironment, blob: NewBlob): BlobWriter {
  if (blob.stored <= environment.inlineBytesMax) return new InlineWriter(environment, blob);
  if (blob.stored <= environment.segmentRecordBytesMax) return new RecordWriter(environment, blob);
  return new FileWriter(environment, blob);
}

// Collects a whole body in one buffer.
abstract class MemoryWriter extends StagedWriter {
  protected readonly environment: WriterEnvironment;
  protected readonly blob: NewBlob;
  protected readonly batchBytes: number;
  protected readonly memoryBytes: number;
  protected body: Buffer | undefined;

  constructor(environment: WriterEnvironment, blob: NewBlob, bytes: number) {
    super(chooseStaging(environment, blob));
    this.environment = environment;
    this.blob = blob;
    this.batchBytes = blob.stored;
    this.memoryBytes = bytes;
  }

  protected allocate(): void {
    // Not from a pool: the message to the writer thread copies the whole memory behind the buffer.
    this.body = Buffer.allocUnsafeSlow(this.memoryBytes);
  }

  protected fill(bytes: Uint8Array, at: number): void {
    this.body!.set(bytes, at);
  }

  protected view(bytes: number): Uint8Array[] {
    return [this.body!.subarray(0, bytes)];
  }

  protected drop(): void {
    this.body = undefined;
  }

  protected flush(): undefined {
    return undefined;
  }

  // A record that was appended and never committed is garbage, which compaction finds.
  discard(): Promise<void> {
    return this.end();
  }
}

class InlineWriter extends MemoryWriter implements BlobWriter {
  constructor(environment: WriterEnvironment, blob: NewBlob) {
    super(environment, blob, blob.stored);
  }

  async seal(): Promise<{ place: BlobPlace; extent: number }> {
    try {
      await this.collectLast();
      const data = this.body ?? Buffer.alloc(0);
      return { place: { kind: "inline", data }, extent: data.length };
    } finally {
      await this.end();
    }
  }
}

class RecordWriter extends MemoryWriter implements BlobWriter {
  constructor(environment: WriterEnvironment, blob: NewBlob) {
    super(environment, blob, measureFrames(blob.stored));
  }

  async seal(summary: unknown): Promise<{ place: BlobPlace; extent: number }> {
    const { id, stored, description } = this.blob;
    try {
      await this.collectLast();
      const frame = this.body;
      if (frame === undefined) throw new StoreError("InternalError", "no body was written");
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
      await this.end();
    }
  }
}

//   chunks ──► frame being filled ──(full)──► frames in flight ──► staged file ──(seal)──► renamed, synced with its folder
//
// At most three frames per writer; `write` waits if a second frame is in flight before the first one is written.
class FileWriter extends StagedWriter implements BlobWriter {
  protected readonly batchBytes = FRAME_BYTES;
  protected readonly memoryBytes = FRAME_BUFFER_BYTES;
  readonly #environment: WriterEnvironment;
  readonly #blob: NewBlob;
  readonly #head: Buffer;
  #fd: number | undefined;
  #opening: Promise<number> | undefined;
  #frame: Buffer | undefined;
  #position: number;
  readonly #flights = new Set<Promise<void>>();
  #dirty = 0;
  #flushing: Promise<void> | undefined;
  #failure: StoreError | undefined;
  #isDiscarded = false;
  // Staged until `seal`.
  #path: string;

  constructor(environment: WriterEnvironment, blob: NewBlob) {
    super(chooseStaging(environment, blob));
    this.#environment = environment;
    this.#blob = blob;
    this.#path = environment.folders.staged(blob.id);
    this.#head = encodeHead(blob.id, blob.stored, blob.description);
    this.#position = this.#head.length;
  }

  override write(chunk: Uint8Array): Promise<void> | undefined {
    if (this.#failure !== undefined) throw this.#failure;
    return super.write(chunk);
  }

  protected allocate(): void {
    this.#frame = this.#environment.frames.pop() ?? Buffer.allocUnsafeSlow(FRAME_BUFFER_BYTES);
  }

  protected fill(bytes: Uint8Array, at: number): void {
    this.#frame!.set(bytes, at);
  }

  protected view(bytes: number): Uint8Array[] {
    return [this.#frame!.subarray(0, bytes)];
  }

  protected drop(): void {
    this.#recycle(this.#frame!);
    this.#frame = undefined;
  }

  protected flush(): Promise<void> | undefined {
    this.#launch();
    return this.#flights.size < FLIGHTS_MAX ? undefined : this.#land();
  }

  async seal(summary: unknown): Promise<{ place: BlobPlace; extent: number }> {
    try {
      const filled = await this.collectLast();
      await Promise.all(this.#flights);
      await this.#flushing;
      if (this.#failure !== undefined) throw this.#failure;
      const fd = await this.#open();
      const frame = this.#frame;
      const hasRest = frame !== undefined && filled > 0;
      const sealed = hasRest ? [frame.subarray(0, sealFrame(frame, filled))] : [];
      const before = this.#position + (sealed[0]?.length ?? 0);
      const trailer = encodeTrailer(summary, before);
      await writeAll(fd, [...sealed, trailer], this.#position);
      await this.end();
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
    await this.end();
    await Promise.all(this.#flights);
    await this.#flushing;
    await this.#close().catch(() => undefined);
    // If this fails, the next start or the scrubber removes it.
    await removeFile(this.#path).catch(() => undefined);
  }

  // The bytes and the name are synced together: nothing refers to them before both are on disk.
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

  async #land(): Promise<void> {
    await Promise.race(this.#flights);
    if (this.#failure !== undefined) throw this.#failure;
  }

  #recycle(frame: Buffer): void {
    if (this.#environment.frames.length < FRAMES_KEPT) this.#environment.frames.push(frame);
  }

  #launch(): void {
    const frame = this.#frame!;
    this.#frame = undefined;
    const release = this.handOver();
    const bytes = sealFrame(frame, FRAME_BYTES);
    const position = this.#position;
    this.#position += bytes;
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
        release();
        this.#flights.delete(flight);
      });
    this.#flights.add(flight);
  }

  // Syncs the bytes written so far, so that little is left when the client waits for its answer.
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

  // Once, by the first caller.
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

function chooseStaging({ budget, folders }: WriterEnvironment, blob: NewBlob): StagedWriterOptions {
  const { id, tenant } = blob;
  return { budget, tenant, spillPath: () => folders.spilled(id) };
}
