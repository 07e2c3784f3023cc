// Checksummed frames of entries, the format of all files of the log.
import { crc32c } from "../batch/crc32c.ts";
import { LogError } from "../errors.ts";

/*
 * A file is a header and frames. One write to the disk is one frame (a "group"); it holds entries.
 *
 *   file header   │ magic, kind, version 8 │ file number 8 │ salt 8 │ end of file before 8 │
 *                 │ manifest generation 8 │ crc 4 │ zeros up to 512 │ the same again up to 1024 │
 *   frame header  │ "GRP1" 4 │ payload bytes 4 │ own position 8 │ durable end 8 │ entries 4 │ crc 4 │
 *   entry         │ body bytes 4 │ crc of body 4 │ body …
 *
 * All numbers are big-endian. The frame's crc covers its header after the file's salt, so neither
 * stored user data nor frames of another file can pass for a frame. "Durable end" is the position in
 * this file up to which everything was on the medium before this frame was written. Damage above the
 * highest known durable end is a torn tail: it was never acknowledged and is cut off. Damage below is
 * reported.
 *
 * The header is stored twice, in separate sectors, because without the salt no frame of the file can be
 * told from user data. Version 1 (journal and manifest only) stored it once, in 36 bytes, without the
 * generation. Version 3 (journal and manifest only) is version 2 in a log with segments in an object
 * store, which programs that know only version 2 must not open.
 */

/** Bytes before the first frame in files of the current version. */
export const FILE_HEADER_BYTES = 1024;
const HEADER_COPY_BYTES = 512;
const HEADER_BODY_BYTES = 40;
const VERSION1_BYTES = 36;
/** Bytes of a frame header. */
export const FRAME_HEADER_BYTES = 32;
/** Bytes before an entry's body. */
export const ENTRY_HEADER_BYTES = 8;

const FRAME_MAGIC = Buffer.from("GRP1");

/** The kinds of files that consist of frames. */
export type FileKind = "journal" | "manifest" | "shared" | "segment";

/**
 * The header of a file. `previousEnd`: valid bytes of the previous file, 0 if there was none.
 * `generation`: the last manifest generation that was durable when the file was created.
 */
export interface FileHeader {
  kind: FileKind;
  number: number;
  salt: Buffer;
  previousEnd: number;
  generation: number;
  /** 2 by default. */
  version?: 2 | 3;
}

/** A decoded header. `bytes`: position of the first frame. `isDamaged`: one of the two copies of the header is unusable. */
export type DecodedHeader = Omit<FileHeader, "version"> & {
  version: 1 | 2 | 3;
  bytes: number;
  isDamaged: boolean;
};

/** Callbacks of `scanFrames`. */
export interface FrameVisit {
  isWhole?: (entries: readonly Buffer[]) => Promise<boolean>;
  accept: (entries: readonly Buffer[]) => Promise<void>;
}

const MAGICS = {
  journal: "PLFJRN\0",
  manifest: "PLFMAN\0",
  shared: "PLFSHR\0",
  segment: "PLFSEG\0",
} as const;

const VERSION_AT = 7;
/** The newest version of each kind of file. */
const NEWEST: Readonly<Record<FileKind, 2 | 3>> = {
  journal: 3,
  manifest: 3,
  shared: 2,
  segment: 2,
};

/** Result of a scan. */
export interface Scan {
  /** End of the trusted part of the file. */
  end: number;
  /** Bytes of the torn tail after `end`. */
  cutBytes: number;
  /** Damage below the durable end. */
  damaged: { position: number; length: number }[];
}

/** Encodes a file header. */
export function encodeFileHeader(header: FileHeader): Buffer {
  const bytes = Buffer.alloc(FILE_HEADER_BYTES);
  bytes.write(MAGICS[header.kind], 0, "latin1");
  bytes[VERSION_AT] = header.version ?? 2;
  bytes.writeBigUInt64BE(BigInt(header.number), 8);
  header.salt.copy(bytes, 16, 0, 8);
  bytes.writeBigUInt64BE(BigInt(header.previousEnd), 24);
  bytes.writeBigUInt64BE(BigInt(header.generation), 32);
  bytes.writeUInt32BE(crc32c(bytes.subarray(0, HEADER_BODY_BYTES)), HEADER_BODY_BYTES);
  bytes.copy(bytes, HEADER_COPY_BYTES, 0, HEADER_COPY_BYTES);
  return bytes;
}

/** Decodes a file header; `undefined` if both copies are damaged, or the kind or version differs. */
export function decodeFileHeader(kind: FileKind, bytes: Buffer): DecodedHeader | undefined {
  const first = decodeCopy(kind, bytes.subarray(0, HEADER_COPY_BYTES));
  if (first?.version === 1) return first;
  const second = decodeCopy(kind, bytes.subarray(HEADER_COPY_BYTES, FILE_HEADER_BYTES));
  const header = first ?? (second?.version === 1 ? undefined : second);
  if (header === undefined) return undefined;
  return { ...header, isDamaged: first === undefined || second === undefined };
}

/** Throws `unsupported-version` for an intact header of a version that this program does not know. */
export function refuseNewer(kind: FileKind, bytes: Buffer): void {
  for (const at of [0, HEADER_COPY_BYTES]) {
    const copy = bytes.subarray(at, at + HEADER_COPY_BYTES);
    if (copy.length < HEADER_BODY_BYTES + 4) return;
    const version = copy[VERSION_AT]!;
    const isKind = copy.toString("latin1", 0, VERSION_AT) === MAGICS[kind];
    if (!isKind || version <= NEWEST[kind]) continue;
    if (crc32c(copy.subarray(0, HEADER_BODY_BYTES)) !== copy.readUInt32BE(HEADER_BODY_BYTES))
      continue;
    const text = `the ${kind} has format version ${version}; this program reads up to ${NEWEST[kind]}`;
    throw new LogError("unsupported-version", text);
  }
}

function decodeCopy(kind: FileKind, bytes: Buffer): DecodedHeader | undefined {
  if (bytes.length < VERSION1_BYTES) return undefined;
  const version = bytes[VERSION_AT] as 1 | 2 | 3;
  if (bytes.toString("latin1", 0, VERSION_AT) !== MAGICS[kind]) return undefined;
  if (version < 1 || version > NEWEST[kind]) return undefined;
  const bodyBytes = version === 1 ? VERSION1_BYTES - 4 : HEADER_BODY_BYTES;
  if (bytes.length < bodyBytes + 4) return undefined;
  if (crc32c(bytes.subarray(0, bodyBytes)) !== bytes.readUInt32BE(bodyBytes)) return undefined;
  return {
    kind,
    version,
    bytes: version === 1 ? VERSION1_BYTES : FILE_HEADER_BYTES,
    isDamaged: false,
    number: Number(bytes.readBigUInt64BE(8)),
    salt: Buffer.from(bytes.subarray(16, 24)),
    previousEnd: Number(bytes.readBigUInt64BE(24)),
    generation: version === 1 ? 0 : Number(bytes.readBigUInt64BE(32)),
  };
}

/**
 * Frames `entries` (each given as the pieces of one body) for a write at `position`. The pieces are not
 * copied; the result is ready for a vectored write.
 */
export function encodeFrame(
  salt: Buffer,
  position: number,
  durableEnd: number,
  entries: readonly (readonly Buffer[])[],
): { pieces: Buffer[]; bytes: number } {
  const header = Buffer.allocUnsafe(FRAME_HEADER_BYTES);
  const pieces: Buffer[] = [header];
  let payloadBytes = 0;
  for (const body of entries) {
    const entryHeader = Buffer.allocUnsafe(ENTRY_HEADER_BYTES);
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
    payloadBytes += ENTRY_HEADER_BYTES + bodyBytes;
  }
  FRAME_MAGIC.copy(header);
  header.writeUInt32BE(payloadBytes, 4);
  writeUint64(header, position, 8);
  writeUint64(header, durableEnd, 16);
  header.writeUInt32BE(entries.length, 24);
  header.writeUInt32BE(crc32c(header.subarray(0, 28), crc32c(salt)), 28);
  return { pieces, bytes: FRAME_HEADER_BYTES + payloadBytes };
}

/**
 * Reads the frames of a file with the header `header` from `start` on. `bytes` ends at the `previousEnd`
 * of the next file. `durableEnd` is the durable end known from other places (the next file's
 * `previousEnd`, a checkpoint), 0 if unknown.
 *
 * `visit.isWhole` may check data that entries refer to; if it returns false for a frame above the durable
 * end, that frame and everything after it is cut off. `visit.accept` receives the entries of each valid
 * frame in order, before the next frame is read.
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

interface Frame {
  position: number;
  bytes: number;
  durableEnd: number;
  whole: boolean;
  entries: Buffer[];
}

function findFrames(bytes: Buffer, salt: Buffer, start: number): Frame[] {
  const saltCrc = crc32c(salt);
  const frames: Frame[] = [];
  for (let at = start; at + FRAME_HEADER_BYTES <= bytes.length;) {
    const header = bytes.subarray(at, at + FRAME_HEADER_BYTES);
    const isFrame =
      header.indexOf(FRAME_MAGIC) === 0 &&
      readUint64(header, 8) === at &&
      crc32c(header.subarray(0, 28), saltCrc) === header.readUInt32BE(28);
    if (!isFrame) {
      const next = bytes.indexOf(FRAME_MAGIC, at + 1);
      if (next < 0) break;
      at = next;
      continue;
    }
    const payloadBytes = header.readUInt32BE(4);
    const payload = bytes.subarray(at + FRAME_HEADER_BYTES, at + FRAME_HEADER_BYTES + payloadBytes);
    const { entries, isWhole } = readEntries(payload);
    const isComplete =
      payload.length === payloadBytes && entries.length === header.readUInt32BE(24);
    const frame = {
      position: at,
      bytes: FRAME_HEADER_BYTES + payloadBytes,
      durableEnd: readUint64(header, 16),
      whole: isWhole && isComplete,
      entries,
    };
    frames.push(frame);
    // The length of a damaged frame cannot be trusted, so the next frame may begin anywhere after it.
    at += frame.whole ? frame.bytes : FRAME_HEADER_BYTES;
  }
  return frames;
}

// Skips entries with a wrong checksum; later ones are kept if the lengths still lead to them. Entries are never empty:
// zeros of a lost sector would otherwise read as entries without a body, whose checksum is 0.
function readEntries(payload: Buffer): { entries: Buffer[]; isWhole: boolean } {
  const entries: Buffer[] = [];
  let isWhole = true;
  let at = 0;
  while (at + ENTRY_HEADER_BYTES <= payload.length) {
    const length = payload.readUInt32BE(at);
    if (at + ENTRY_HEADER_BYTES + length > payload.length) break;
    const body = payload.subarray(at + ENTRY_HEADER_BYTES, at + ENTRY_HEADER_BYTES + length);
    if (length > 0 && crc32c(body) === payload.readUInt32BE(at + 4)) entries.push(body);
    else isWhole = false;
    at += ENTRY_HEADER_BYTES + length;
  }
  return { entries, isWhole: isWhole && at === payload.length };
}

function writeUint64(bytes: Buffer, value: number, at: number): void {
  bytes.writeUInt32BE(Math.floor(value / 4294967296), at);
  bytes.writeUInt32BE(value % 4294967296, at + 4);
}

function readUint64(bytes: Buffer, at: number): number {
  return bytes.readUInt32BE(at) * 4294967296 + bytes.readUInt32BE(at + 4);
}
