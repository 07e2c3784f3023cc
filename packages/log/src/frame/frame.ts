// Checksummed frames of entries: the format that all files of the log share.
import { crc32c } from "../batch/crc32c.ts";

/*
 * A file is a header and frames. One write to the disk is one frame (a "group"); it holds entries.
 *
 *   file header   │ magic, kind, version 8 │ file number 8 │ salt 8 │ end of file before 8 │
 *                 │ manifest generation 8 │ crc 4 │ zeros up to 512 │ the same again up to 1024 │
 *   frame header  │ "GRP1" 4 │ payload bytes 4 │ own position 8 │ durable end 8 │ entries 4 │ crc 4 │
 *   entry         │ body bytes 4 │ crc of body 4 │ body …
 *
 * All numbers big-endian. The frame's crc covers its header after the file's salt, so bytes that
 * a user stored can never pass for a frame, nor can frames of another file. "Durable end" is the
 * position in this file up to which everything was on the medium before this frame was written.
 * Damage above the highest durable end that is known is a torn tail: nobody was told that it is
 * stored, it is cut. Damage below is reported.
 *
 * The header is stored twice, in sectors of its own, because without the salt no frame of the file
 * can be told from what a user stored. Version 1 (journal and manifest only) stored it once, in
 * 36 bytes, without the generation.
 */

/** Bytes before the first frame in files of the present version. */
export const fileHeaderBytes = 1024;
const headerCopyBytes = 512;
const headerBodyBytes = 40;
const version1Bytes = 36;
/** Bytes of a frame header. */
export const frameHeaderBytes = 32;
/** Bytes before an entry's body. */
export const entryHeaderBytes = 8;

const frameMagic = Buffer.from("GRP1");

/** The kinds of files that consist of frames. */
export type FileKind = "journal" | "manifest" | "shared" | "segment";

/**
 * The header of a file. `previousEnd`: valid bytes of the file numbered one less, 0 if none.
 * `generation`: the last manifest generation that was durable when the file was made.
 */
export type FileHeader = {
  kind: FileKind;
  number: number;
  salt: Buffer;
  previousEnd: number;
  generation: number;
};

/** A header as it was read. `bytes`: where frames begin. `isDamaged`: one of its two copies is unusable. */
export type DecodedHeader = FileHeader & { version: 1 | 2; bytes: number; isDamaged: boolean };

/** Who takes the entries of a scan. */
export type FrameVisit = {
  isWhole?: (entries: readonly Buffer[]) => Promise<boolean>;
  accept: (entries: readonly Buffer[]) => Promise<void>;
};

const magics = {
  journal: "PLFJRN\0",
  manifest: "PLFMAN\0",
  shared: "PLFSHR\0",
  segment: "PLFSEG\0",
} as const;

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
  bytes.write(`${magics[header.kind]}\x02`, 0, "latin1");
  bytes.writeBigUInt64BE(BigInt(header.number), 8);
  header.salt.copy(bytes, 16, 0, 8);
  bytes.writeBigUInt64BE(BigInt(header.previousEnd), 24);
  bytes.writeBigUInt64BE(BigInt(header.generation), 32);
  bytes.writeUInt32BE(crc32c(bytes.subarray(0, headerBodyBytes)), headerBodyBytes);
  bytes.copy(bytes, headerCopyBytes, 0, headerCopyBytes);
  return bytes;
}

/** Decodes a file header; undefined if no copy of it is whole, or it is of another kind or version. */
export function decodeFileHeader(kind: FileKind, bytes: Buffer): DecodedHeader | undefined {
  const first = decodeCopy(kind, bytes.subarray(0, headerCopyBytes));
  if (first?.version === 1) return first;
  const second = decodeCopy(kind, bytes.subarray(headerCopyBytes, fileHeaderBytes));
  const header = first ?? (second?.version === 2 ? second : undefined);
  if (header === undefined) return undefined;
  return { ...header, isDamaged: first === undefined || second === undefined };
}

function decodeCopy(kind: FileKind, bytes: Buffer): DecodedHeader | undefined {
  if (bytes.length < version1Bytes) return undefined;
  const magic = bytes.toString("latin1", 0, 8);
  const version = magic === `${magics[kind]}\x01` ? 1 : magic === `${magics[kind]}\x02` ? 2 : 0;
  if (version === 0) return undefined;
  const bodyBytes = version === 1 ? version1Bytes - 4 : headerBodyBytes;
  if (bytes.length < bodyBytes + 4) return undefined;
  if (crc32c(bytes.subarray(0, bodyBytes)) !== bytes.readUInt32BE(bodyBytes)) return undefined;
  return {
    kind,
    version,
    bytes: version === 1 ? version1Bytes : fileHeaderBytes,
    isDamaged: false,
    number: Number(bytes.readBigUInt64BE(8)),
    salt: Buffer.from(bytes.subarray(16, 24)),
    previousEnd: Number(bytes.readBigUInt64BE(24)),
    generation: version === 1 ? 0 : Number(bytes.readBigUInt64BE(32)),
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
  header: Pick<FileHeader, "salt">,
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
