// Reports jumps of the system clock, which make tokens and certificates invalid.
import type { Logger } from "@platform/kernel/log";
import { every, type Clock } from "@platform/kernel/time";

const CHECK_MS = 5_000;
/** Smaller differences are the work of a time service. */
const JUMP_MS = 30_000;
/** A jump is a condition for the operator for this time. */
const SHOWN_MS = 3_600_000;

/** Watches the clock. */
export interface ClockWatch {
  /** The last jump; undefined if it was more than an hour ago. */
  readonly describe: () => string | undefined;
  stop(): Promise<void>;
}

/** Compares calendar time with monotonic time every five seconds, and logs a jump of more than half a minute. */
export function watchClock(clock: Clock, logger: Logger, intervalMs = CHECK_MS): ClockWatch {
  let offsetMs = clock.now() - clock.monotonicMs();
  let last: { seconds: number; atMs: number } | undefined;
  const timer = every(
    intervalMs,
    () => {
      const nextMs = clock.now() - clock.monotonicMs();
      const jumpMs = nextMs - offsetMs;
      offsetMs = nextMs;
      if (Math.abs(jumpMs) < JUMP_MS) return;
      const seconds = Math.round(jumpMs / 1000);
      last = { seconds, atMs: clock.monotonicMs() };
      logger.error("the system clock has jumped", { seconds, remedy: explainJump(seconds) });
    },
    (error) => logger.error("checking the clock failed", { error }),
  );
  return {
    describe() {
      if (last === undefined || clock.monotonicMs() - last.atMs > SHOWN_MS) return undefined;
      const { seconds } = last;
      const direction = seconds > 0 ? "forward" : "back";
      return `the system clock jumped ${direction} by ${Math.abs(seconds)} s: ${explainJump(seconds)}`;
    },
    stop: () => timer.stop(),
  };
}

function explainJump(seconds: number): string {
  return seconds > 0
    ? "check it with date or timedatectl; sessions, tokens and presigned URLs may have expired"
    : "check it with date or timedatectl; tokens issued before may not be valid yet";
}
