// Periodic deletions of expired data.
import { every, type RepeatingTimer } from "./every.ts";

/**
 * Runs all `sweeps` every `ms` milliseconds, one after the other. A failure of one is passed to `onError` with its name; the
 * others, and the next round, run all the same.
 *
 * ```ts
 * const timer = sweepEvery(60_000, { sessions: () => sessions.sweep() }, (error, sweep) => log.warn("…", { error, sweep }));
 * ```
 */
export function sweepEvery(
  ms: number,
  sweeps: Readonly<Record<string, () => Promise<void> | void>>,
  onError: (error: unknown, sweep: string) => void,
): RepeatingTimer {
  const runAll = async (): Promise<void> => {
    for (const [name, sweep] of Object.entries(sweeps)) {
      try {
        await sweep();
      } catch (error) {
        onError(error, name);
      }
    }
  };
  return every(ms, runAll, (error) => onError(error, "all"));
}
