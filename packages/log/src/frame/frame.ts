// Checksummed frames of entries: the format that journal and manifest files share.
import { crc32c } from "../batch/crc32c.ts";

/*
 * A file is a header and frames. One write to the disk is one frame (a "group"); it holds entries.
 *
 *   file header   │ magic, kind, version 8 │ file number 8 │ salt 8 │ end of file before 8 │ crc 4 │
 *   frame header  │ "GRP1" 4 │ payload bytes 4 │ own position 8 │ durable end 8 │ entries 4 │ crc 4 │
 *   entry         │ body bytes 4 │ crc of body 4 │ body …
 *
 * All numbers big-endian. The frame's crc covers its header after the file's salt, so bytes that
 * a user stored can never pass for a frame, nor can frames of another file. "Durable end" is the
 * position in this file up to which everything was on the medium before this frame was written.
 * Damage above the highest durable end that any whole frame names is a torn tail: nobody was told
 * that it is stored, it is cut. Damage below is reported.
 */

/** Bytes of a file header. */
export const fileHeaderBytes = 36;
/** Bytes of a frame header. */
export const frameHeaderBytes = 32;
/** Bytes before an entry's body. */
export const entryHeaderBytes = 8;

const frameMagic = Buffer.from("GRP1");

/** What a file begins with. `previousEnd`: valid bytes of the file numbered one less, 0 if none. */
export type FileHeader = {
  kind: "journal" | "manifest";
  number: number;
  salt: Buffer;
  previousEnd: number;
};

/** Who takes the entries of a scan. */
export type FrameVisit = {
  isWhole?: (entries: readonly Buffer[]) => Promise<boolean>;
  accept: (entries: readonly Buffer[]) => Promise<void>;
};

const magics = { journal: "PLFJRN\0\x01", manifest: "PLFMAN\0\x01" } as const;

/** What a scan found. `end` is where the whole, trusted part ends. */
export type Scan = {
  end: number;
  /** Bytes after `end` that were a torn tail. */
  cutBytes: number;
  /** Damage below the durable end. */
  damaged: { position: number; length: number }[];
};

/** Encodes a file header. */
export function encodeFileHeader(header: FileHeader): Buffer {
  const bytes = Buffer.alloc(fileHeaderBytes);
  bytes.write(magics[header.kind], 0, "latin1");
  bytes.writeBigUInt64BE(BigInt(header.number), 8);
  header.salt.copy(bytes, 16);
  bytes.writeBigUInt64BE(BigInt(header.previousEnd), 24);
  bytes.writeUInt32BE(crc32c(bytes.subarray(0, 32)), 32);
  return bytes;
}

/** Decodes a file header; undefined if it is not whole or of another kind or version. */
export function decodeFileHeader(kind: FileHeader["kind"], bytes: Buffer): FileHeader | undefined {
  if (bytes.length < fileHeaderBytes) return undefined;
  if (bytes.toString("latin1", 0, 8) !== magics[kind]) return undefined;
  if (crc32c(bytes.subarray(0, 32)) !== bytes.readUInt32BE(32)) return undefined;
  return {
    kind,
    number: Number(bytes.readBigUInt64BE(8)),
    salt: Buffer.from(bytes.subarray(16, 24)),
    previousEnd: Number(bytes.readBigUInt64BE(24)),
  };
}

/**
 * Frames `entries` (each the pieces of one body) for a write at `position`.
 * The pieces are not copied; the result is ready for a vectored write.
 */
export function encodeFrame(
  salt: Buffer,
  position: number,
  durableEnd: number,
  entries: readonly (readonly Buffer[])[],
): { pieces: Buffer[]; bytes: number } {
  const header = Buffer.allocUnsafe(frameHeaderBytes);
  const pieces: Buffer[] = [header];
  let payloadBytes = 0;
  for (const body of entries) {
    const entryHeader = Buffer.allocUnsafe(entryHeaderBytes);
    let bodyBytes = 0;
    let crc = 0;
    pieces.push(entryHeader);
    for (const piece of body) {
      bodyBytes += piece.length;
      crc = crc32c(piece, crc);
      pieces.push(piece);
    }
    entryHeader.writeUInt32BE(bodyBytes, 0);
    entryHeader.writeUInt32BE(crc, 4);
    payloadBytes += entryHeaderBytes + bodyBytes;
  }
  frameMagic.copy(header);
  header.writeUInt32BE(payloadBytes, 4);
  writeUint64(header, position, 8);
  writeUint64(header, durableEnd, 16);
  header.writeUInt32BE(entries.length, 24);
  header.writeUInt32BE(crc32c(header.subarray(0, 28), crc32c(salt)), 28);
  return { pieces, bytes: frameHeaderBytes + payloadBytes };
}

/**
 * Reads the frames of a file that starts with `header`, from `start` on; `bytes` end where the next
 * file says that this one ended. `durableEnd` is what is known from
 * elsewhere to be on the medium (the next file's `previousEnd`, a checkpoint), 0 if nothing.
 *
 * `visit.isWhole` may look at data that entries refer to; a frame above the durable end is cut,
 * with all after it, if it says no. `visit.accept` takes the entries of each frame that counts,
 * in order, before the next frame is looked at.
 */
export async function scanFrames(
  bytes: Buffer,
  header: FileHeader,
  start: number,
  durableEnd: number,
  visit: FrameVisit,
): Promise<Scan> {
  const frames = findFrames(bytes, header.salt, start);
  for (const frame of frames) if (frame.durableEnd > durableEnd) durableEnd = frame.durableEnd;
  const scan: Scan = { end: start, cutBytes: 0, damaged: [] };
  for (const frame of frames) {
    if (frame.position > scan.end) {
      if (scan.end >= durableEnd) break;
      scan.damaged.push({ position: scan.end, length: frame.position - scan.end });
    }
    if (frame.position < durableEnd) {
      if (!frame.whole) scan.damaged.push({ position: frame.position, length: frame.bytes });
    } else if (!frame.whole || (await visit.isWhole?.(frame.entries)) === false) {
      scan.end = frame.position;
      break;
    }
    await visit.accept(frame.entries);
    scan.end = Math.min(frame.position + frame.bytes, bytes.length);
  }
  if (scan.end < durableEnd) {
    scan.damaged.push({ position: scan.end, length: durableEnd - scan.end });
    scan.end = durableEnd;
  }
  scan.cutBytes = Math.max(0, bytes.length - scan.end);
  return scan;
}

type Frame = {
  position: number;
  bytes: number;
  durableEnd: number;
  whole: boolean;
  entries: Buffer[];
};

function findFrames(bytes: Buffer, salt: Buffer, start: number): Frame[] {
  const saltCrc = crc32c(salt);
  const frames: Frame[] = [];
  for (let at = start; at + frameHeaderBytes <= bytes.length;) {
    const header = bytes.subarray(at, at + frameHeaderBytes);
    const isFrame =
      header.indexOf(frameMagic) === 0 &&
      readUint64(header, 8) === at &&
      crc32c(header.subarray(0, 28), saltCrc) === header.readUInt32BE(28);
    if (!isFrame) {
      const next = bytes.indexOf(frameMagic, at + 1);
      if (next < 0) break;
      at = next;
      continue;
    }
    const payloadBytes = header.readUInt32BE(4);
    const payload = bytes.subarray(at + frameHeaderBytes, at + frameHeaderBytes + payloadBytes);
    const entries = readEntries(payload);
    const frame = {
      position: at,
      bytes: frameHeaderBytes + payloadBytes,
      durableEnd: readUint64(header, 16),
      whole: payload.length === payloadBytes && entries.length === header.readUInt32BE(24),
      entries,
    };
    frames.push(frame);
    // After a broken frame the next one may begin anywhere, as its length cannot be relied on.
    at += frame.whole ? frame.bytes : frameHeaderBytes;
  }
  return frames;
}

// An entry with a wrong checksum is left out; the ones after it are kept if lengths still lead there.
function readEntries(payload: Buffer): Buffer[] {
  const entries: Buffer[] = [];
  for (let at = 0; at + entryHeaderBytes <= payload.length;) {
    const length = payload.readUInt32BE(at);
    if (at + entryHeaderBytes + length > payload.length) break;
    const body = payload.subarray(at + entryHeaderBytes, at + entryHeaderBytes + length);
    if (crc32c(body) === payload.readUInt32BE(at + 4)) entries.push(body);
    at += entryHeaderBytes + length;
  }
  return entries;
}

function writeUint64(bytes: Buffer, value: number, at: number): void {
  bytes.writeUInt32BE(Math.floor(value / 4294967296), at);
  bytes.writeUInt32BE(value % 4294967296, at + 4);
}

function readUint64(bytes: Buffer, at: number): number {
  return bytes.readUInt32BE(at) * 4294967296 + bytes.readUInt32BE(at + 4);
}
