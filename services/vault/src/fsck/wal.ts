// Reads a write-ahead log frame by frame, past damaged frames: SQLite itself stops at the first of them.
//
// The checksum of a frame begins with the stored checksum of the previous frame, so each frame can be checked by itself.
// (https://sqlite.org/fileformat2.html#the_write_ahead_log)

/** The remains of a log. */
export interface WalSalvage {
  /** A log of the intact frames up to the last commit among them; empty if there are none. */
  bytes: Buffer;
  frames: number;
  damaged: number;
}

const HEAD_BYTES = 32;
const FRAME_HEAD_BYTES = 24;
const MAGIC_BIG = 0x377f0683;
const MAGIC_LITTLE = 0x377f0682;
const FORMAT = 3007000;

type Sum = readonly [number, number];

/** Removes damaged frames from a log with pages of `pageBytes`, and rewrites its checksums. */
export function salvageWal(wal: Buffer, pageBytes: number): WalSalvage {
  const frameBytes = FRAME_HEAD_BYTES + pageBytes;
  const head = readHead(wal, pageBytes);
  const isBig = wal.length < 4 || wal.readUInt32BE(0) !== MAGIC_LITTLE;
  const kept: Buffer[] = [];
  let damaged = 0;
  let previous: Sum | undefined = head.isWhole ? readSum(wal, 24) : undefined;
  let committed = 0;
  for (let at = HEAD_BYTES; at + frameBytes <= wal.length; at += frameBytes) {
    const frame = wal.subarray(at, at + frameBytes);
    const stored = readSum(frame, 16);
    const computed = previous && sumFrame(frame, previous, isBig);
    const isWhole = computed === undefined || isSame(computed, stored);
    const isOurs = frame.compare(head.salts, 0, 8, 8, 16) === 0;
    if (isWhole && isOurs) {
      kept.push(frame);
      if (frame.readUInt32BE(4) !== 0) committed = kept.length;
    } else if (!isOurs && !isWhole) {
      // The head of this log, or a leftover of an earlier one; the next frames decide.
      if (!hasOurs(wal, at + frameBytes, frameBytes, head.salts)) break;
      damaged += 1;
    } else {
      damaged += 1;
    }
    previous = stored;
  }
  return {
    bytes: encodeWal(kept.slice(0, committed), head.salts, pageBytes),
    frames: committed,
    damaged,
  };
}

// If the head is damaged, its contents are derived from the frames.
function readHead(wal: Buffer, pageBytes: number): { salts: Buffer; isWhole: boolean } {
  const isWhole =
    wal.length >= HEAD_BYTES &&
    (wal.readUInt32BE(0) === MAGIC_BIG || wal.readUInt32BE(0) === MAGIC_LITTLE) &&
    isSame(sum(wal.subarray(0, 24), [0, 0], wal.readUInt32BE(0) === MAGIC_BIG), readSum(wal, 24));
  if (isWhole) return { salts: wal.subarray(16, 24), isWhole };
  const frameBytes = FRAME_HEAD_BYTES + pageBytes;
  const [first, second] = [HEAD_BYTES, HEAD_BYTES + frameBytes];
  const at = second + frameBytes <= wal.length ? second : first;
  const salts = Buffer.alloc(8);
  if (at + 16 <= wal.length) wal.copy(salts, 0, at + 8, at + 16);
  return { salts, isWhole };
}

function hasOurs(wal: Buffer, from: number, frameBytes: number, salts: Buffer): boolean {
  const next = from + frameBytes <= wal.length ? wal.subarray(from, from + frameBytes) : undefined;
  return next !== undefined && next.compare(salts, 0, 8, 8, 16) === 0;
}

function encodeWal(frames: readonly Buffer[], salts: Buffer, pageBytes: number): Buffer {
  if (frames.length === 0) return Buffer.alloc(0);
  const head = Buffer.alloc(HEAD_BYTES);
  head.writeUInt32BE(MAGIC_BIG, 0);
  head.writeUInt32BE(FORMAT, 4);
  head.writeUInt32BE(pageBytes, 8);
  salts.copy(head, 16);
  let last = sum(head.subarray(0, 24), [0, 0], true);
  writeSum(head, 24, last);
  const written = frames.map((frame) => {
    const copy = Buffer.from(frame);
    last = sumFrame(copy, last, true);
    writeSum(copy, 16, last);
    return copy;
  });
  return Buffer.concat([head, ...written]);
}

function sumFrame(frame: Buffer, seed: Sum, isBig: boolean): Sum {
  return sum(frame.subarray(FRAME_HEAD_BYTES), sum(frame.subarray(0, 8), seed, isBig), isBig);
}

function sum(bytes: Buffer, [first, second]: Sum, isBig: boolean): Sum {
  let s0 = first;
  let s1 = second;
  for (let at = 0; at + 8 <= bytes.length; at += 8) {
    s0 = (s0 + (isBig ? bytes.readUInt32BE(at) : bytes.readUInt32LE(at)) + s1) >>> 0;
    s1 = (s1 + (isBig ? bytes.readUInt32BE(at + 4) : bytes.readUInt32LE(at + 4)) + s0) >>> 0;
  }
  return [s0, s1];
}

function readSum(bytes: Buffer, at: number): Sum {
  return [bytes.readUInt32BE(at), bytes.readUInt32BE(at + 4)];
}

function writeSum(bytes: Buffer, at: number, [first, second]: Sum): void {
  bytes.writeUInt32BE(first, at);
  bytes.writeUInt32BE(second, at + 4);
}

function isSame(one: Sum, other: Sum): boolean {
  return one[0] === other[0] && one[1] === other[1];
}
