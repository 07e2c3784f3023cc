// Reports jumps of the system clock, which make tokens and certificates invalid.
import type { Logger } from "@platform/kernel/log";
import { every, type Clock, type RepeatingTimer } from "@platform/kernel/time";

const CHECK_MS = 5_000;
/** Smaller differences are the work of a time service. */
const JUMP_MS = 30_000;

/** Compares calendar time with monotonic time every five seconds, and logs a jump of more than half a minute. */
export function watchClock(clock: Clock, logger: Logger, intervalMs = CHECK_MS): RepeatingTimer {
  let offsetMs = clock.now() - clock.monotonicMs();
  return every(
    intervalMs,
    () => {
      const nextMs = clock.now() - clock.monotonicMs();
      const jumpMs = nextMs - offsetMs;
      offsetMs = nextMs;
      if (Math.abs(jumpMs) < JUMP_MS) return;
      logger.error("the system clock has jumped", {
        seconds: Math.round(jumpMs / 1000),
        remedy:
          jumpMs > 0
            ? "check it with date or timedatectl; sessions, tokens and presigned URLs may have expired"
            : "check it with date or timedatectl; tokens issued before may not be valid yet",
      });
    },
    (error) => logger.error("checking the clock failed", { error }),
  );
}
