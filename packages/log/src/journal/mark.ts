// The durable mark: a second place that says how far journal and manifest had got.
import { crc32c } from "../batch/crc32c.ts";
import { readFileIfThere } from "../disk/files.ts";
import type { Disk, DiskFile } from "../disk/port.ts";

/*
 * journal/durable.mark: two slots of 512 bytes that are written in turn:
 *
 *   │ "PLFMRK" 0 1 8 │ sequence 8 │ journal file 8 │ durable end 8 │ manifest generation 8 │ crc 4 │
 *
 * Everything it names was on the medium before it was written, so a recovery that finds less knows
 * that something was damaged, cut off, removed or replaced by an older file. The mark may be behind:
 * it is not synced for each group, and it adds no information then. A damaged slot leaves the other.
 */
const markPath = "journal/durable.mark";
const magic = "PLFMRK\0\x01";
const slotBytes = 512;
const bodyBytes = 40;

/** A mark. `end`: bytes of journal file `file` that were durable. */
export type Mark = { file: number; end: number; generation: number };

/** Reads the newest whole slot; `missing` if there is no file, `damaged` if no slot is whole. */
export async function readMark(disk: Disk): Promise<Mark | "missing" | "damaged"> {
  const bytes = await readFileIfThere(disk, markPath);
  if (bytes === undefined) return "missing";
  const slots = [decodeSlot(bytes.subarray(0, slotBytes)), decodeSlot(bytes.subarray(slotBytes))];
  let newest: (Mark & { sequence: number }) | undefined;
  for (const slot of slots) {
    if (slot !== undefined && slot.sequence > (newest?.sequence ?? -1)) newest = slot;
  }
  return newest ?? "damaged";
}

/** Writes marks. */
export class MarkFile {
  readonly #file: DiskFile;
  #sequence = 0;

  private constructor(file: DiskFile) {
    this.#file = file;
  }

  /** Begins the file again with one durable mark in both slots. */
  static async start(disk: Disk, mark: Mark): Promise<MarkFile> {
    const file = await disk.open(`${markPath}.new`, "create");
    try {
      const marks = new MarkFile(file);
      await marks.write(mark);
      await marks.write(mark);
      await file.sync();
      await disk.rename(`${markPath}.new`, markPath);
      await disk.syncFolder("journal");
      return marks;
    } catch (error) {
      await file.close();
      throw error;
    }
  }

  /** Writes a mark into the slot whose turn it is. */
  async write({ file, end, generation }: Mark): Promise<void> {
    const bytes = Buffer.alloc(slotBytes);
    const sequence = this.#sequence + 1;
    bytes.write(magic, 0, "latin1");
    bytes.writeBigUInt64BE(BigInt(sequence), 8);
    bytes.writeBigUInt64BE(BigInt(file), 16);
    bytes.writeBigUInt64BE(BigInt(end), 24);
    bytes.writeBigUInt64BE(BigInt(generation), 32);
    bytes.writeUInt32BE(crc32c(bytes.subarray(0, bodyBytes)), bodyBytes);
    await this.#file.write([bytes], (sequence % 2) * slotBytes);
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

function decodeSlot(bytes: Buffer): (Mark & { sequence: number }) | undefined {
  if (bytes.length < bodyBytes + 4 || bytes.toString("latin1", 0, 8) !== magic) return undefined;
  if (crc32c(bytes.subarray(0, bodyBytes)) !== bytes.readUInt32BE(bodyBytes)) return undefined;
  return {
    sequence: Number(bytes.readBigUInt64BE(8)),
    file: Number(bytes.readBigUInt64BE(16)),
    end: Number(bytes.readBigUInt64BE(24)),
    generation: Number(bytes.readBigUInt64BE(32)),
  };
}
