// The mark of an index: the number of its last commit in a separate file. It tells an index that was rolled back, emptied
// or lost from a new one.
//
//   mark = slot │ slot, 512 bytes each, written in turn
//   slot = "VMRK" │ format u32 │ commit generation u64 │ commit u64 │ crc u32
//
// It is written after each commit and not synced: it survives the end of the process, and after a power cut it may be older
// than the index, never newer.
import { closeSync, existsSync, fsyncSync, openSync, readFileSync, writeSync } from "node:fs";
import { crc32c } from "@node-rs/crc32";

/** A state of the index: the start that committed its last group, and the number of that group. */
export interface IndexMark {
  commitGeneration: number;
  commit: number;
}

const MAGIC = 0x564d524b;
const FORMAT = 1;
const SLOT_BYTES = 512;
const USED_BYTES = 28;

/** The path of the mark of the index at `path`. */
function nameMark(path: string): string {
  return `${path}.mark`;
}

/** True if one state is older than another. */
export function isBefore(one: IndexMark, other: IndexMark): boolean {
  if (one.commitGeneration !== other.commitGeneration) {
    return one.commitGeneration < other.commitGeneration;
  }
  return one.commit < other.commit;
}

/** Reads the mark of an index: the newer slot; `undefined` if neither is intact. */
export function readMark(indexPath: string): { mark: IndexMark | undefined; isDamaged: boolean } {
  const path = nameMark(indexPath);
  if (!existsSync(path)) return { mark: undefined, isDamaged: false };
  let bytes: Buffer;
  try {
    bytes = readFileSync(path);
  } catch {
    return { mark: undefined, isDamaged: true };
  }
  const slots = [bytes.subarray(0, SLOT_BYTES), bytes.subarray(SLOT_BYTES, 2 * SLOT_BYTES)];
  const marks = slots.map(decodeSlot);
  const whole = marks.filter((mark) => mark !== undefined);
  const [first, second] = whole;
  const newest = first !== undefined && second !== undefined && isBefore(first, second);
  return {
    mark: newest ? second : first,
    isDamaged:
      bytes.length !== 2 * SLOT_BYTES ||
      slots.some((slot, index) => marks[index] === undefined && slot.some((byte) => byte !== 0)) ||
      (whole.length === 0 && bytes.length > 0),
  };
}

/** The open mark of an index that is being written. */
export class MarkFile {
  readonly #fd: number;
  readonly #slot = Buffer.alloc(SLOT_BYTES);
  #turn = 0;

  /** Opens the mark of the index at `indexPath`, and writes `mark` to both slots. */
  constructor(indexPath: string, mark: IndexMark) {
    const path = nameMark(indexPath);
    this.#fd = openSync(path, existsSync(path) ? "r+" : "w+", 0o600);
    this.save(mark);
    this.save(mark);
    try {
      fsyncSync(this.#fd);
    } catch {
      // As in `save`: the store starts even if the disk is full.
    }
  }

  /** Records a commit. If that fails, the mark is too old and detects less; the commit itself is safe. */
  save(mark: IndexMark): void {
    try {
      this.#write(mark);
    } catch {
      this.#turn ^= 1;
    }
  }

  close(): void {
    try {
      fsyncSync(this.#fd);
    } finally {
      closeSync(this.#fd);
    }
  }

  #write({ commitGeneration, commit }: IndexMark): void {
    const slot = this.#slot;
    slot.writeUInt32BE(MAGIC, 0);
    slot.writeUInt32BE(FORMAT, 4);
    slot.writeBigUInt64BE(BigInt(commitGeneration), 8);
    slot.writeBigUInt64BE(BigInt(commit), 16);
    slot.writeUInt32BE(crc32c(slot.subarray(0, 24)), 24);
    writeSync(this.#fd, slot, 0, SLOT_BYTES, this.#turn * SLOT_BYTES);
    this.#turn ^= 1;
  }
}

function decodeSlot(slot: Buffer): IndexMark | undefined {
  if (slot.length < USED_BYTES || slot.readUInt32BE(0) !== MAGIC) return undefined;
  if (slot.readUInt32BE(4) !== FORMAT) return undefined;
  if (crc32c(slot.subarray(0, 24)) !== slot.readUInt32BE(24)) return undefined;
  return {
    commitGeneration: Number(slot.readBigUInt64BE(8)),
    commit: Number(slot.readBigUInt64BE(16)),
  };
}
