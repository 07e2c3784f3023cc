// Reads frames of a record from any source of bytes, verifying the checksum of each block, one frame ahead of the consumer.
import type { BlobRecord } from "../model/blob.ts";
import type { ReadWindow } from "../model/read-window.ts";
import { BLOCK_BYTES, findCorruptBlock, FRAME_BYTES, locateFrame } from "./layout.ts";
import { limitRead } from "./read-window.ts";

/** A source of the bytes of a record. */
export interface FrameSource {
  /** Reads exactly `length` bytes; `isTable` if they are only checksums. */
  read(position: number, length: number, isTable: boolean): Promise<Buffer>;
  /** The error for a block that does not match its checksum. */
  failCorrupt(): Error;
}

/** A range of a frame's data, and the location of the frame. */
interface FrameRange {
  /** Offset of the frame in the source. */
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

// Reading a little more than necessary is cheaper than a second read for the checksums.
const GAP_BYTES_MAX = 128 * 1024;

/** Reads the data bytes `start` to below `end`; the first frame of the record is at `position` of the source. */
export async function* readFrames(
  source: FrameSource,
  blob: Pick<BlobRecord, "stored">,
  wanted: { position: number; start: number; end: number; window: ReadWindow | undefined },
): AsyncGenerator<Buffer, void, undefined> {
  const { position, start, end, window } = wanted;
  const locate = (at: number): FrameRange =>
    locateRange(blob.stored, position, at, end, limitRead(window));
  const begin = (range: FrameRange): FrameRead => {
    const bytes = readFrame(source, range);
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

async function readFrame(source: FrameSource, range: FrameRange): Promise<Buffer> {
  const first = Math.floor(range.from / BLOCK_BYTES) * BLOCK_BYTES;
  const last = Math.min(Math.ceil(range.to / BLOCK_BYTES) * BLOCK_BYTES, range.dataBytes);
  const tableBytes = 4 * Math.ceil(range.dataBytes / BLOCK_BYTES);
  const tableAt = (first / BLOCK_BYTES) * 4;
  let blocks: Buffer;
  let table: Buffer;
  if (range.dataBytes - last <= range.gapBytesMax) {
    const length = range.dataBytes + tableBytes - first;
    const bytes = await source.read(range.position + first, length, false);
    blocks = bytes.subarray(0, last - first);
    table = bytes.subarray(range.dataBytes - first + tableAt);
  } else {
    [blocks, table] = await Promise.all([
      source.read(range.position + first, last - first, false),
      source.read(range.position + range.dataBytes + tableAt, tableBytes - tableAt, true),
    ]);
  }
  if (findCorruptBlock(blocks, table) >= 0) throw source.failCorrupt();
  return blocks.subarray(range.from - first, range.to - first);
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
