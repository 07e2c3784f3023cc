// Waiting for something that a test cannot be notified of.
import { setTimeout as sleep } from "node:timers/promises";

/** Enough for a machine several times slower than an idle one with two cores. */
const WAIT_MS = 60_000;
const LOOK_EVERY_MS = 10;

/**
 * Calls `look` until it returns something other than `undefined`, `null` and `false`, and resolves with that. Rejects
 * after `timeoutMs`, naming `what`.
 */
export async function waitFor<T>(
  look: () => T | Promise<T>,
  what: string = look.toString(),
  timeoutMs = WAIT_MS,
): Promise<Exclude<T, undefined | null | false>> {
  const endMs = performance.now() + timeoutMs;
  for (;;) {
    const found = await look();
    if (found !== undefined && found !== null && found !== false) {
      return found as Exclude<T, undefined | null | false>;
    }
    if (performance.now() > endMs) throw new Error(`not seen within ${timeoutMs} ms: ${what}`);
    await sleep(LOOK_EVERY_MS);
  }
}
