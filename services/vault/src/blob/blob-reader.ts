// Reads stored bytes back, block by block against their checksums, one frame ahead of the consumer.
import type { FileLease, OpenFiles } from "@platform/kernel/files";
import { StoreError } from "../store-error.ts";
import { readAll, type StoreFolders } from "./disk.ts";
import type { FrameMemory } from "./frame-memory.ts";
import { BLOCK_BYTES, findCorruptBlock, FRAME_BYTES, locateFrame } from "./layout.ts";
import type { BlobRecord } from "./types.ts";

/** A blob opened for reading: its file stays readable until `close`, whatever becomes of its name. */
export interface OpenBlob {
  /** Stored bytes from `start` up to, not including, `end`. */
  read(start: number, end: number): AsyncGenerator<Buffer, void, undefined>;
  close(): void;
}

/** What of a frame is wanted, and where it lies. */
interface FrameRange {
  /** Where the frame begins in the file, and how many data bytes it has. */
  position: number;
  dataBytes: number;
  /** Of the frame's data, up to the end. */
  from: number;
  to: number;
}

// Reading a little more than wanted is cheaper than a second read for the checksums.
const GAP_BYTES_MAX = 128 * 1024;

/** Opens blobs. */
export class BlobReader {
  readonly #folders: StoreFolders;
  readonly #files: OpenFiles<number>;
  readonly #memory: FrameMemory;
  corruptBlocks = 0;

  constructor(folders: StoreFolders, files: OpenFiles<number>, memory: FrameMemory) {
    this.#folders = folders;
    this.#files = files;
    this.#memory = memory;
  }

  /** Opens a blob that is not of parts. Rejects with `ENOENT` where its file is gone. */
  async open(blob: BlobRecord): Promise<OpenBlob> {
    const { place } = blob;
    if (place.kind === "inline") return openInline(place.data);
    if (place.kind === "parts") throw new TypeError("a blob of parts has no bytes of its own");
    const path =
      place.kind === "segment" ? this.#folders.segment(place.segment) : this.#folders.file(blob.id);
    const lease = await this.#files.use(path);
    let isOpen = true;
    return {
      read: (start, end) => this.#read(lease, blob, place.position, start, end),
      close: () => {
        if (isOpen) lease.release();
        isOpen = false;
      },
    };
  }

  async *#read(
    lease: FileLease<number>,
    blob: BlobRecord,
    position: number,
    start: number,
    end: number,
  ): AsyncGenerator<Buffer, void, undefined> {
    const ranges = splitFrames(blob.stored, position, start, end);
    let ahead: Promise<Buffer> | undefined;
    for (const [index, range] of ranges.entries()) {
      const current = ahead ?? this.#readFrame(lease.file, blob, range);
      const bytes = await current;
      const next = ranges[index + 1];
      ahead = next === undefined ? undefined : this.#readFrame(lease.file, blob, next);
      // It may fail while nobody looks; whoever awaits it later hears of it.
      ahead?.catch(() => undefined);
      yield bytes;
    }
  }

  async #readFrame(fd: number, blob: BlobRecord, range: FrameRange): Promise<Buffer> {
    const first = Math.floor(range.from / BLOCK_BYTES) * BLOCK_BYTES;
    const last = Math.min(Math.ceil(range.to / BLOCK_BYTES) * BLOCK_BYTES, range.dataBytes);
    const tableBytes = 4 * Math.ceil(range.dataBytes / BLOCK_BYTES);
    const tableAt = (first / BLOCK_BYTES) * 4;
    let blocks: Buffer;
    let table: Buffer;
    if (range.dataBytes - last <= GAP_BYTES_MAX) {
      const length = range.dataBytes + tableBytes - first;
      const bytes = await readExactly(fd, this.#memory.take(length), range.position + first);
      blocks = bytes.subarray(0, last - first);
      table = bytes.subarray(range.dataBytes - first + tableAt);
    } else {
      [blocks, table] = await Promise.all([
        readExactly(fd, this.#memory.take(last - first), range.position + first),
        readExactly(
          fd,
          Buffer.allocUnsafe(tableBytes - tableAt),
          range.position + range.dataBytes + tableAt,
        ),
      ]);
    }
    if (findCorruptBlock(blocks, table) >= 0) {
      this.corruptBlocks += 1;
      throw new StoreError(
        "InternalError",
        `Stored data is damaged (blob ${blob.id.toString(16)})`,
      );
    }
    return blocks.subarray(range.from - first, range.to - first);
  }
}

function openInline(data: Uint8Array): OpenBlob {
  const bytes = Buffer.from(data.buffer, data.byteOffset, data.byteLength);
  return {
    async *read(start, end) {
      if (end > start) yield bytes.subarray(start, end);
    },
    close: () => undefined,
  };
}

function splitFrames(stored: number, position: number, start: number, end: number): FrameRange[] {
  const ranges: FrameRange[] = [];
  for (let at = start; at < end;) {
    const frameStart = Math.floor(at / FRAME_BYTES) * FRAME_BYTES;
    const dataBytes = Math.min(FRAME_BYTES, stored - frameStart);
    const to = Math.min(end - frameStart, dataBytes);
    ranges.push({ position: position + locateFrame(at), dataBytes, from: at - frameStart, to });
    at = frameStart + to;
  }
  return ranges;
}

async function readExactly(fd: number, bytes: Buffer, position: number): Promise<Buffer> {
  const count = await readAll(fd, bytes, position);
  if (count < bytes.length)
    throw new StoreError("InternalError", "Stored data is shorter than it should be");
  return bytes;
}
