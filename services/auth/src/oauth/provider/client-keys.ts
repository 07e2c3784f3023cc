// Keys that clients publish: fetched again when a token names one that is not known yet.
import type { Clock } from "@platform/kernel/time";
import type { CoreClientKeys } from "../core/core-client.ts";

/** Minimum time between two requests for unknown keys of one client. */
const UNKNOWN_KEY_MS = 10_000;

const watched = new WeakSet<CoreClientKeys>();

/**
 * Makes a store stale when a token names a key that it does not hold: clients rotate keys under a new `kid`, before the
 * period ends for which their document may be cached (OpenID Connect Core 10.1.1). Tokens with invented names do so once in
 * 10 s at most, and a failed request leaves the store as it was.
 */
export function fetchUnknownKeys(keys: CoreClientKeys, clock: Clock): void {
  if (watched.has(keys)) return;
  watched.add(keys);
  let nextMs = Number.NEGATIVE_INFINITY;
  let keptUntil: number | undefined;
  const { selectForVerify, refresh } = keys;
  keys.selectForVerify = function selectOrExpire(wanted) {
    const found = selectForVerify.call(this, wanted);
    const now = clock.monotonicMs();
    if (found.length > 0 || wanted.kid === undefined || !this.fresh() || now < nextMs) return found;
    nextMs = now + UNKNOWN_KEY_MS;
    keptUntil = this.freshUntil;
    this.freshUntil = 0;
    return found;
  };
  keys.refresh = async function refreshOrKeep() {
    try {
      await refresh.call(this);
    } catch (error) {
      if (this.freshUntil === 0) this.freshUntil = keptUntil;
      throw error;
    }
  };
}
