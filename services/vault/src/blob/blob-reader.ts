// Reads stored bytes, verifying the checksum of each block, one frame ahead of the consumer.
import { fstatSync } from "node:fs";
import type { FileLease, OpenFiles } from "@platform/kernel/files";
import { readAll, type StoreFolders } from "../disk/files.ts";
import type { BlobRecord } from "../model/blob.ts";
import type { ReadWindow } from "../model/read-window.ts";
import { StoreError } from "../model/store-error.ts";
import type { FrameMemory } from "./frame-memory.ts";
import {
  BLOCK_BYTES,
  findCorruptBlock,
  FRAME_BYTES,
  locateFrame,
  measureFrames,
} from "./layout.ts";
import { limitRead } from "./read-window.ts";

/** A blob opened for reading: its file stays readable until `close`, even if it is renamed or deleted. */
export interface OpenBlob {
  /**
   * Stored bytes from `start` up to, not including, `end`. Each chunk has been charged to the read window; the consumer
   * gives its bytes back to the window.
   */
  read(start: number, end: number, window?: ReadWindow): AsyncGenerator<Buffer, void, undefined>;
  close(): void;
}

/** A range of a frame's data, and the location of the frame. */
interface FrameRange {
  /** Offset of the frame in the file. */
  position: number;
  /** Size of the frame's data, without checksums. */
  dataBytes: number;
  /** Start of the range within the frame's data. */
  from: number;
  /** End of the range, exclusive. */
  to: number;
  /** Following bytes that may be read as well, to save a second read. */
  gapBytesMax: number;
}

/** A read of `size` bytes in flight. */
interface FrameRead {
  size: number;
  bytes: Promise<Buffer>;
}

const SHORT = "Stored data is truncated";
// Reading a little more than necessary is cheaper than a second read for the checksums.
const GAP_BYTES_MAX = 128 * 1024;

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

  /** Opens a blob that is not composite. Rejects with `ENOENT` if its file is missing. */
  async open(blob: BlobRecord): Promise<OpenBlob> {
    const { place } = blob;
    if (place.kind === "inline") return openInline(place.data);
    if (place.kind === "parts") throw new TypeError("a blob of parts has no bytes of its own");
    const path =
      place.kind === "segment" ? this.#folders.segment(place.segment) : this.#folders.file(blob.id);
    const lease = await this.#files.use(path);
    // A truncated file is detected before the response begins; its inode is cached.
    if (place.kind === "file" && blob.stored > FRAME_BYTES) {
      if (fstatSync(lease.file).size < place.position + measureFrames(blob.stored)) {
        lease.release();
        this.corruptBlocks += 1;
        throw new StoreError("InternalError", SHORT);
      }
    }
    let isOpen = true;
    return {
      read: (start, end, window) =>
        this.#read(lease, blob, { position: place.position, start, end, window }),
      close: () => {
        if (isOpen) lease.release();
        isOpen = false;
      },
    };
  }

  async *#read(
    lease: FileLease<number>,
    blob: BlobRecord,
    wanted: { position: number; start: number; end: number; window: ReadWindow | undefined },
  ): AsyncGenerator<Buffer, void, undefined> {
    const { position, start, end, window } = wanted;
    const locate = (at: number): FrameRange =>
      locateRange(blob.stored, position, at, end, limitRead(window));
    const begin = (range: FrameRange): FrameRead => {
      const bytes = this.#readFrame(lease.file, blob, range);
      // The read may fail before it is awaited; the consumer gets the error when it awaits the read.
      bytes.catch(() => undefined);
      return { size: range.to - range.from, bytes };
    };
    // Window bytes charged for data that has not been yielded.
    let taken = 0;
    let ahead: FrameRead | undefined;
    try {
      for (let at = start; at < end;) {
        let current = ahead;
        if (current === undefined) {
          const range = locate(at);
          const room = window?.take(range.to - range.from);
          if (room !== undefined) await room;
          current = begin(range);
          taken += current.size;
        }
        ahead = undefined;
        const bytes = await current.bytes;
        at += current.size;
        if (at < end && limitRead(window) === FRAME_BYTES) {
          const range = locate(at);
          if (window?.tryTake(range.to - range.from) !== false) {
            ahead = begin(range);
            taken += ahead.size;
          }
        }
        taken -= current.size;
        yield bytes;
      }
    } finally {
      window?.give(taken);
    }
  }

  async #readFrame(fd: number, blob: BlobRecord, range: FrameRange): Promise<Buffer> {
    const first = Math.floor(range.from / BLOCK_BYTES) * BLOCK_BYTES;
    const last = Math.min(Math.ceil(range.to / BLOCK_BYTES) * BLOCK_BYTES, range.dataBytes);
    const tableBytes = 4 * Math.ceil(range.dataBytes / BLOCK_BYTES);
    const tableAt = (first / BLOCK_BYTES) * 4;
    let blocks: Buffer;
    let table: Buffer;
    if (range.dataBytes - last <= range.gapBytesMax) {
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
    async *read(start, end, window) {
      if (end <= start) return;
      const room = window?.take(end - start);
      if (room !== undefined) await room;
      yield bytes.subarray(start, end);
    },
    close: () => undefined,
  };
}

/** The next range to read of the bytes `at` to `end` of a blob: within one frame, and no more than one read may return. */
function locateRange(
  stored: number,
  position: number,
  at: number,
  end: number,
  bytesMax: number,
): FrameRange {
  const frameStart = Math.floor(at / FRAME_BYTES) * FRAME_BYTES;
  const dataBytes = Math.min(FRAME_BYTES, stored - frameStart);
  const from = at - frameStart;
  // The range ends at a block boundary, so that no block is read twice.
  const toMax = Math.floor((from + bytesMax) / BLOCK_BYTES) * BLOCK_BYTES;
  return {
    position: position + locateFrame(at),
    dataBytes,
    from,
    to: Math.min(end - frameStart, dataBytes, toMax),
    gapBytesMax: bytesMax < FRAME_BYTES ? 0 : GAP_BYTES_MAX,
  };
}

async function readExactly(fd: number, bytes: Buffer, position: number): Promise<Buffer> {
  const count = await readAll(fd, bytes, position);
  if (count < bytes.length) throw new StoreError("InternalError", SHORT);
  return bytes;
}
