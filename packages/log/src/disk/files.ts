// Reads whole files and parts of files through the disk port.
import type { Disk } from "./port.ts";

/** Reads a file; `undefined` if it does not exist. */
export async function readFileIfThere(disk: Disk, path: string): Promise<Buffer | undefined> {
  return readPart(disk, path, 0, undefined);
}

/** Reads at most `length` bytes of a file from `position` on; `undefined` if the file does not exist. */
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
