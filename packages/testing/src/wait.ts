// Waiting for something that a test cannot be notified of.
import { setTimeout as sleep } from "node:timers/promises";

/** Enough for a machine several times slower than an idle one with two cores. */
const WAIT_MS = 60_000;
const LOOK_EVERY_MS = 10;

/**
 * Calls `look` until it returns something other than `undefined`, `null` and `false`, and resolves with that. Rejects
 * after `timeoutMs`, naming `what`, which may be a function that describes the state then.
 */
export async function waitFor<T>(
  look: () => T | Promise<T>,
  what: string | (() => string) = look.toString(),
  timeoutMs = WAIT_MS,
): Promise<Exclude<T, undefined | null | false>> {
  const endMs = performance.now() + timeoutMs;
  for (;;) {
    const found = await look();
    if (found !== undefined && found !== null && found !== false) {
      return found as Exclude<T, undefined | null | false>;
    }
    if (performance.now() > endMs) {
      const missed = typeof what === "string" ? what : what();
      throw new Error(`not seen within ${timeoutMs} ms: ${missed}`);
    }
    await sleep(LOOK_EVERY_MS);
  }
}
