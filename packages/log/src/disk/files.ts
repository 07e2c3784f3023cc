// Reading whole files and their first bytes through the disk port.
import type { Disk } from "./port.ts";

/** The bytes of a file; undefined if there is none. */
export async function readFileIfThere(disk: Disk, path: string): Promise<Buffer | undefined> {
  return readPart(disk, path, 0, undefined);
}

/** At most `length` bytes of a file from `position` on; undefined if there is no such file. */
export async function readPart(
  disk: Disk,
  path: string,
  position: number,
  length: number | undefined,
): Promise<Buffer | undefined> {
  let file;
  try {
    file = await disk.open(path, "read");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw error;
  }
  try {
    const left = Math.max(0, (await file.size()) - position);
    const bytes = Buffer.alloc(Math.min(length ?? left, left));
    const count = await file.read(bytes, 0, bytes.length, position);
    return bytes.subarray(0, count);
  } finally {
    await file.close();
  }
}
