// A window over a segment file that moves forward batch by batch.
import {
  BATCH_HEADER_BYTES,
  BATCH_PREFIX_BYTES,
  readBatchHeader,
  readInt64,
  type BatchHeader,
} from "../batch/header.ts";
import type { BufferPool } from "@platform/kernel/memory";
import type { ReadableFile } from "../cold/cold-reader.ts";
import { LogError } from "../errors.ts";

/** Options of a {@link BatchWindow}. */
export interface BatchWindowOptions {
  position: number;
  end: number;
  size: number;
  /** Memory for the bytes; their user gives it back. */
  memory?: BufferPool | undefined;
}

/** Reads a file from `position` to `end`, about `size` bytes at a time. Rejects with `corrupt`. */
export class BatchWindow {
  readonly #file: ReadableFile;
  readonly #end: number;
  readonly #size: number;
  readonly #memory: BufferPool | undefined;
  #chunk: Buffer = Buffer.alloc(0);
  #chunkPosition: number;
  #at = 0;

  constructor(file: ReadableFile, { position, end, size, memory }: BatchWindowOptions) {
    this.#file = file;
    this.#memory = memory;
    this.#chunkPosition = position;
    this.#end = end;
    this.#size = size;
  }

  /** Position of the next batch in the file. */
  get position(): number {
    return this.#chunkPosition + this.#at;
  }

  /** Reads the header of the next batch; `undefined` at the end. */
  async header(): Promise<BatchHeader | undefined> {
    if (this.position >= this.#end) return undefined;
    await this.need(BATCH_HEADER_BYTES);
    const header = readBatchHeader(this.#chunk, this.#at);
    if (header !== undefined && this.position + header.bytes <= this.#end) return header;
    throw new LogError("corrupt", `no batch at ${this.position} of a segment`);
  }

  skip(bytes: number): void {
    this.#at += bytes;
  }

  /** Loads at least `bytes` of the next batch. */
  async need(bytes: number): Promise<void> {
    if (this.#at + bytes <= this.#chunk.length) return;
    const position = this.position;
    const length = Math.min(Math.max(bytes, this.#size), this.#end - position);
    const wanted = Math.max(0, length);
    const chunk = this.#memory?.take(wanted) ?? Buffer.allocUnsafe(wanted);
    // The beginning of a batch that is larger than the window.
    const kept = this.#chunk.copy(chunk, 0, Math.min(this.#at, this.#chunk.length));
    this.#memory?.recycle(this.#chunk);
    const left = chunk.length - kept;
    const count = kept + (await this.#file.read(chunk, kept, left, position + kept));
    if (count < bytes) {
      throw new LogError("corrupt", `a segment ends at ${position + count}, inside a batch`);
    }
    this.#chunk = chunk.subarray(0, count);
    this.#chunkPosition = position;
    this.#at = 0;
  }

  /** Takes the whole batches that are loaded, up to `bytesMax`. The first batch must be loaded. */
  take(bytesMax: number): { bytes: Buffer; nextOffset: number } {
    const start = this.#at;
    let nextOffset = -1;
    while (this.#at + BATCH_HEADER_BYTES <= this.#chunk.length) {
      const bytes = this.#chunk.readInt32BE(this.#at + 8) + BATCH_PREFIX_BYTES;
      const end = this.#at + bytes;
      if (bytes < BATCH_HEADER_BYTES || end > this.#chunk.length || end - start > bytesMax) break;
      nextOffset = readInt64(this.#chunk, this.#at) + this.#chunk.readInt32BE(this.#at + 23) + 1;
      this.#at = end;
    }
    return { bytes: this.#chunk.subarray(start, this.#at), nextOffset };
  }
}
