// Progress of backups and restores as lines of text.
import type { BackupProgress } from "./files.ts";

/** Interval between two lines. */
const PRINT_MS = 2_000;
const VERBS = { copying: "copied", verifying: "verified", restoring: "restored" } as const;

/** Returns a listener that prints a line every two seconds. */
export function createProgressPrinter(
  print: (line: string) => void,
): (progress: BackupProgress) => void {
  let printedMs: number | undefined;
  return ({ phase, bytes, bytesTotal }) => {
    const nowMs = performance.now();
    printedMs ??= nowMs;
    if (nowMs - printedMs < PRINT_MS) return;
    printedMs = nowMs;
    const total = bytesTotal === undefined ? "" : ` of ${formatSize(bytesTotal)}`;
    print(`${VERBS[phase]} ${formatSize(bytes)}${total}`);
  };
}

/** A number of things: `1 file`, `14 files`. */
export function formatCount(count: number, singular: string, plural = `${singular}s`): string {
  return `${count} ${count === 1 ? singular : plural}`;
}

/** A size with its unit: `512 bytes`, `3.4 KiB`, `1.2 MiB`, with one decimal. */
export function formatSize(bytes: number): string {
  if (bytes < 1024) return `${bytes} bytes`;
  if (bytes < 1024 * 1024) return `${(bytes / 1024).toFixed(1)} KiB`;
  return `${(bytes / 1024 / 1024).toFixed(1)} MiB`;
}
