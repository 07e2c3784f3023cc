// Removes in the background what has expired, so that no table grows with time.
import type { Logger } from "@platform/kernel/log";

const intervalMs = 60_000;

/** One thing to clear away. */
export type Sweep = () => Promise<void>;

/** Runs the sweeps now and then; returns what stops them. */
export function startSweeping(sweeps: readonly Sweep[], log: Logger): () => Promise<void> {
  let running: Promise<void> = Promise.resolve();
  const timer = setInterval(() => {
    running = running.then(async () => {
      for (const sweep of sweeps) {
        await sweep().catch((error: unknown) => log.warn("clearing away failed", { error }));
      }
    });
  }, intervalMs);
  timer.unref();
  return () => {
    clearInterval(timer);
    return running;
  };
}
