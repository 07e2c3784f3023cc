// How long a process that ended by itself waits before it is started again.

const FIRST_MS = 500;
const LONGEST_MS = 30_000;
/** A process that ran this long has proved itself: the next failure counts as the first. */
export const STABLE_RUN_MS = 60_000;

/** Milliseconds before the restart after this many failures in a row, the first being 1: 0.5 s, doubled up to 30 s. */
export function computeBackoffMs(failures: number): number {
  return Math.min(LONGEST_MS, FIRST_MS * 2 ** Math.min(failures - 1, 16));
}
