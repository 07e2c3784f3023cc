// Restart delays.

const FIRST_MS = 500;
/** The longest restart delay. */
export const LONGEST_MS = 30_000;
/** After a run of this length, the next failure counts as the first. */
export const STABLE_RUN_MS = 60_000;

/** Returns the restart delay in ms after this many consecutive failures (from 1): 0.5 s, doubled up to 30 s. */
export function computeBackoffMs(failures: number): number {
  return Math.min(LONGEST_MS, FIRST_MS * 2 ** Math.min(failures - 1, 16));
}
