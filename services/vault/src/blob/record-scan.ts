// Scans the records of a segment or a file without an index, past damage.
import { readAll } from "../disk/files.ts";
import {
  BLOCK_BYTES,
  decodeHead,
  decodeSegmentHead,
  decodeTrailer,
  findCorruptBlock,
  FRAME_BYTES,
  locateFrame,
  measureFrames,
  padding,
  SEGMENT_HEAD_BYTES,
  type RecordHead,
} from "./layout.ts";

/** A scanned record. */
export interface ScannedRecord extends Pick<RecordHead, "id" | "stored" | "description"> {
  headBytes: number;
  /** Offset of its first frame. */
  framesAt: number;
  /** The summary in its trailer. */
  summary: unknown;
  /** Total size of the record. */
  extent: number;
  /** The whole body; `undefined` if a block does not match its checksum. */
  read(): Promise<Buffer | undefined>;
  /** Index of the first block that does not match its checksum, or -1. */
  verify(): Promise<number>;
}

const HEAD_READ_BYTES = 16 * 1024;
const HEAD_READ_BYTES_MAX = 272 * 1024;
const ALIGNMENT = 8;

/** The complete records in the order of the file. Torn and damaged records are skipped. */
export async function* scanRecords(fd: number): AsyncGenerator<ScannedRecord, void, undefined> {
  const first = Buffer.alloc(SEGMENT_HEAD_BYTES);
  await readAll(fd, first, 0);
  let position = decodeSegmentHead(first) === undefined ? 0 : SEGMENT_HEAD_BYTES;
  for (;;) {
    const record = await readRecord(fd, position);
    if (record === "end") return;
    if (record === undefined) {
      const next = await findNextHead(fd, position + ALIGNMENT);
      if (next === undefined) return;
      position = next;
      continue;
    }
    yield record;
    position += record.extent;
  }
}

async function readRecord(
  fd: number,
  position: number,
): Promise<ScannedRecord | "end" | undefined> {
  let bytes = Buffer.alloc(HEAD_READ_BYTES);
  let count = await readAll(fd, bytes, position);
  if (count === 0) return "end";
  let head = decodeHead(bytes.subarray(0, count));
  if (head === undefined && count === HEAD_READ_BYTES) {
    bytes = Buffer.alloc(HEAD_READ_BYTES_MAX);
    count = await readAll(fd, bytes, position);
    head = decodeHead(bytes.subarray(0, count));
  }
  if (head === undefined) return undefined;
  const framesAt = position + head.bytes;
  const trailerAt = framesAt + measureFrames(head.stored);
  const trailerBytes = Buffer.alloc(HEAD_READ_BYTES);
  const trailerCount = await readAll(fd, trailerBytes, trailerAt);
  const trailer = decodeTrailer(trailerBytes.subarray(0, trailerCount));
  if (trailer === undefined) return undefined;
  const unpadded = trailerAt - position + trailer.bytes;
  const extent = unpadded + padding(unpadded);
  const { id, stored, description } = head;
  return {
    id,
    stored,
    description,
    headBytes: head.bytes,
    framesAt,
    summary: trailer.summary,
    extent,
    async read() {
      const whole = Buffer.allocUnsafe(extent);
      if ((await readAll(fd, whole, position)) < unpadded) return undefined;
      const frames = whole.subarray(head.bytes, head.bytes + measureFrames(stored));
      return verifyFrames(frames, stored) < 0 ? whole : undefined;
    },
    verify: () => verifyOnDisk(fd, framesAt, stored),
  };
}

async function findNextHead(fd: number, from: number): Promise<number | undefined> {
  const chunk = Buffer.alloc(FRAME_BYTES);
  const magic = Buffer.from("VBLB");
  for (let position = from; ; position += FRAME_BYTES) {
    const count = await readAll(fd, chunk, position);
    if (count === 0) return undefined;
    for (let at = chunk.indexOf(magic); at >= 0 && at < count; at = chunk.indexOf(magic, at + 1)) {
      // Records begin at multiples of 8 after the head of the segment.
      if ((position + at) % ALIGNMENT === 0) return position + at;
    }
  }
}

// `frames` contains all frames one after another.
function verifyFrames(frames: Buffer, stored: number): number {
  for (let at = 0; at < stored; at += FRAME_BYTES) {
    const start = locateFrame(at);
    const dataBytes = Math.min(FRAME_BYTES, stored - at);
    const corrupt = findCorruptBlock(
      frames.subarray(start, start + dataBytes),
      frames.subarray(start + dataBytes),
    );
    if (corrupt >= 0) return at / BLOCK_BYTES + corrupt;
  }
  return -1;
}

async function verifyOnDisk(fd: number, framesAt: number, stored: number): Promise<number> {
  for (let at = 0; at < stored; at += FRAME_BYTES) {
    const dataBytes = Math.min(FRAME_BYTES, stored - at);
    const frame = Buffer.allocUnsafe(measureFrames(dataBytes));
    const count = await readAll(fd, frame, framesAt + locateFrame(at));
    if (count < frame.length) return at / BLOCK_BYTES;
    const corrupt = findCorruptBlock(frame.subarray(0, dataBytes), frame.subarray(dataBytes));
    if (corrupt >= 0) return at / BLOCK_BYTES + corrupt;
  }
  return -1;
}
