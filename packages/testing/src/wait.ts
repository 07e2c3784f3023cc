// Waiting for something that a test cannot be notified of.
import { setTimeout as sleep } from "node:timers/promises";

/** Enough for a machine several times slower than an idle one with two cores. */
const WAIT_MS = 60_000;
/**
 * Time between two looks, of which many are requests: a tenth of what has passed, so that a long wait costs little, and
 * is at most a tenth longer.
 */
const LOOK_EVERY = { minMs: 10, part: 0.1, maxMs: 250 };

/**
 * Calls `look` until it returns something other than `undefined`, `null` and `false`, and resolves with that. Rejects
 * after `timeoutMs`, naming `what`, which may be a function that describes the state then.
 */
export async function waitFor<T>(
  look: () => T | Promise<T>,
  what: string | (() => string) = look.toString(),
  timeoutMs = WAIT_MS,
): Promise<Exclude<T, undefined | null | false>> {
  const startedMs = performance.now();
  const endMs = startedMs + timeoutMs;
  for (;;) {
    const found = await look();
    if (found !== undefined && found !== null && found !== false) {
      return found as Exclude<T, undefined | null | false>;
    }
    if (performance.now() > endMs) {
      const missed = typeof what === "string" ? what : what();
      throw new Error(`not seen within ${timeoutMs} ms: ${missed}`);
    }
    const passedMs = performance.now() - startedMs;
    const { minMs, part, maxMs } = LOOK_EVERY;
    await sleep(Math.min(maxMs, Math.max(minMs, passedMs * part)));
  }
}
