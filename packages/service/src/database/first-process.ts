// The process that opens a SQLite file first keeps its checksums; others may use the file meanwhile.
import { mkdirSync } from "node:fs";
import { dirname } from "node:path";
import { FileLockedError, lockFile } from "@platform/kernel/files";

/** Returns a function that ends being the first, or undefined while another process is it. */
export function becomeFirst(file: string): (() => void) | undefined {
  mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
  try {
    return lockFile(`${file}.lock`);
  } catch (error) {
    if (error instanceof FileLockedError) return undefined;
    throw error;
  }
}
