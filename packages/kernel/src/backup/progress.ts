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
    const total = bytesTotal === undefined ? "" : ` of ${formatMebibytes(bytesTotal)}`;
    print(`${VERBS[phase]} ${formatMebibytes(bytes)}${total} MiB`);
  };
}

/** A size in MiB with one decimal. */
export function formatMebibytes(bytes: number): string {
  return (bytes / 1024 / 1024).toFixed(1);
}
