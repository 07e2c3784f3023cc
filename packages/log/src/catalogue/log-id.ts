// The id of a log, by which its objects in a store are told from those of other logs.
import { crc32c } from "../batch/crc32c.ts";
import { readFileIfThere } from "../disk/files.ts";
import type { Disk } from "../disk/port.ts";

/** The file with the id. Backups do not contain it: a restored log gets an id of its own. */
export const LOG_ID_PATH = "log.id";

const MAGIC = "PLFLID\0\x01";
const ID_BYTES = 16;
const BODY_BYTES = 8 + ID_BYTES;
/** The second copy is in another sector. */
const COPY_BYTES = 512;

/** The id as found on the disk. */
export type FoundLogId = { id: Buffer; isDamaged: boolean } | "missing" | "damaged";

/** Reads the id from the undamaged copy. */
export async function readLogId(disk: Disk): Promise<FoundLogId> {
  const bytes = await readFileIfThere(disk, LOG_ID_PATH);
  if (bytes === undefined) return "missing";
  const copies = [0, COPY_BYTES].map((at) => decodeCopy(bytes.subarray(at, at + COPY_BYTES)));
  const id = copies[0] ?? copies[1];
  if (id === undefined) return bytes.length === 0 ? "missing" : "damaged";
  return { id, isDamaged: copies.some((copy) => copy === undefined) };
}

/** Writes both copies durably. */
export async function writeLogId(disk: Disk, id: Buffer): Promise<void> {
  const copy = Buffer.alloc(COPY_BYTES);
  copy.write(MAGIC, 0, "latin1");
  id.copy(copy, 8, 0, ID_BYTES);
  copy.writeUInt32BE(crc32c(copy.subarray(0, BODY_BYTES)), BODY_BYTES);
  const path = `${LOG_ID_PATH}.new`;
  const file = await disk.open(path, "create");
  try {
    await file.write([copy, copy], 0);
    await file.sync();
  } finally {
    await file.close();
  }
  await disk.rename(path, LOG_ID_PATH);
  await disk.syncFolder("");
}

function decodeCopy(copy: Buffer): Buffer | undefined {
  if (copy.length < BODY_BYTES + 4 || copy.toString("latin1", 0, 8) !== MAGIC) return undefined;
  if (crc32c(copy.subarray(0, BODY_BYTES)) !== copy.readUInt32BE(BODY_BYTES)) return undefined;
  return Buffer.from(copy.subarray(8, BODY_BYTES));
}
