// The durable mark: a second record of how far journal and manifest are durable.
import { crc32c } from "../batch/crc32c.ts";
import { readFileIfThere } from "../disk/files.ts";
import type { Disk, DiskFile } from "../disk/port.ts";

/*
 * journal/durable.mark: two slots of 512 bytes that are written alternately:
 *
 *   │ "PLFMRK" 0 1 8 │ sequence 8 │ journal file 8 │ durable end 8 │ manifest generation 8 │ crc 4 │
 *
 * Everything it records was on the medium before it was written, so a recovery that finds less knows
 * that something was damaged, truncated, removed or replaced by an older file. The mark may lag behind,
 * since it is not synced with each group; it adds no information then. The other slot survives a damaged one.
 */
/** The path of the mark. */
export const MARK_PATH = "journal/durable.mark";
const MAGIC = "PLFMRK\0\x01";
const SLOT_BYTES = 512;
const BODY_BYTES = 40;

/** A mark. `end`: durable bytes of journal file `file`. */
export interface Mark {
  file: number;
  end: number;
  generation: number;
}

/** Reads the newest intact slot; `missing` if there is no file, `damaged` if no slot is intact. */
export async function readMark(disk: Disk): Promise<Mark | "missing" | "damaged"> {
  const bytes = await readFileIfThere(disk, MARK_PATH);
  if (bytes === undefined) return "missing";
  const slots = [decodeSlot(bytes.subarray(0, SLOT_BYTES)), decodeSlot(bytes.subarray(SLOT_BYTES))];
  let newest: (Mark & { sequence: number }) | undefined;
  for (const slot of slots) {
    if (slot !== undefined && slot.sequence > (newest?.sequence ?? -1)) newest = slot;
  }
  return newest ?? "damaged";
}

/** Encodes a whole file with one mark in both slots. */
export function encodeMark(mark: Mark): Buffer {
  return Buffer.concat([encodeSlot(mark, 2), encodeSlot(mark, 1)]);
}

export class MarkFile {
  readonly #file: DiskFile;
  #sequence = 0;

  private constructor(file: DiskFile) {
    this.#file = file;
  }

  /** Recreates the file with one durable mark in both slots. */
  static async start(disk: Disk, mark: Mark): Promise<MarkFile> {
    const file = await disk.open(`${MARK_PATH}.new`, "create");
    try {
      const marks = new MarkFile(file);
      await marks.write(mark);
      await marks.write(mark);
      await file.sync();
      await disk.rename(`${MARK_PATH}.new`, MARK_PATH);
      await disk.syncFolder("journal");
      return marks;
    } catch (error) {
      await file.close();
      throw error;
    }
  }

  /** Writes a mark into the older slot. */
  async write(mark: Mark): Promise<void> {
    const sequence = this.#sequence + 1;
    await this.#file.write([encodeSlot(mark, sequence)], (sequence % 2) * SLOT_BYTES);
    this.#sequence = sequence;
  }

  /** Makes the last mark durable. */
  sync(): Promise<void> {
    return this.#file.sync();
  }

  close(): Promise<void> {
    return this.#file.close();
  }
}

function encodeSlot({ file, end, generation }: Mark, sequence: number): Buffer {
  const bytes = Buffer.alloc(SLOT_BYTES);
  bytes.write(MAGIC, 0, "latin1");
  bytes.writeBigUInt64BE(BigInt(sequence), 8);
  bytes.writeBigUInt64BE(BigInt(file), 16);
  bytes.writeBigUInt64BE(BigInt(end), 24);
  bytes.writeBigUInt64BE(BigInt(generation), 32);
  bytes.writeUInt32BE(crc32c(bytes.subarray(0, BODY_BYTES)), BODY_BYTES);
  return bytes;
}

function decodeSlot(bytes: Buffer): (Mark & { sequence: number }) | undefined {
  if (bytes.length < BODY_BYTES + 4 || bytes.toString("latin1", 0, 8) !== MAGIC) return undefined;
  if (crc32c(bytes.subarray(0, BODY_BYTES)) !== bytes.readUInt32BE(BODY_BYTES)) return undefined;
  return {
    sequence: Number(bytes.readBigUInt64BE(8)),
    file: Number(bytes.readBigUInt64BE(16)),
    end: Number(bytes.readBigUInt64BE(24)),
    generation: Number(bytes.readBigUInt64BE(32)),
  };
}
