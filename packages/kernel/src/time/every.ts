// Repeated timers.

/** A running timer. */
export interface RepeatingTimer {
  /** Runs the work now, or joins the run in flight. */
  run(): Promise<void>;
  /** Stops the timer; resolves when the run in flight has ended. */
  stop(): Promise<void>;
}

/**
 * Calls `work` every `ms` milliseconds, the first time after `ms`. Runs never overlap: a tick during a run
 * is skipped. Errors of `work` are passed to `onError`, and the timer continues. The timer does not keep the process alive.
 *
 * ```ts
 * const timer = every(60_000, () => sessions.deleteExpired(), (error) => log.error("…", { error }));
 * await timer.stop();
 * ```
 */
export function every(
  ms: number,
  work: () => Promise<void> | void,
  onError: (error: unknown) => void,
): RepeatingTimer {
  let running: Promise<void> | undefined;
  const finish = (): void => {
    running = undefined;
  };
  const run = (): Promise<void> => {
    if (running !== undefined) return running;
    try {
      const result = work();
      if (result === undefined) return Promise.resolve();
      running = result.catch(onError).finally(finish);
      return running;
    } catch (error) {
      onError(error);
      return Promise.resolve();
    }
  };
  const timer = setInterval(() => void run(), ms);
  timer.unref();
  return {
    run,
    stop: () => {
      clearInterval(timer);
      return running ?? Promise.resolve();
    },
  };
}
