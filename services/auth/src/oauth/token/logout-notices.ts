// Logout notices to clients (OpenID Connect Back-Channel Logout), with retries.
import { setTimeout as wait } from "node:timers/promises";
import type { Logger } from "@platform/kernel/log";

const DELIVERIES_MAX = 1_000;
const RETRY_MS: readonly number[] = [1_000, 5_000, 25_000];

/** Delivers notices. Retries that are pending when the process ends are lost. */
export class LogoutNotices {
  readonly #log: Logger;
  readonly #deliveries = new Set<Promise<void>>();
  readonly #closing = new AbortController();

  constructor(log: Logger) {
    this.#log = log;
  }

  /** Sends a notice; resolves after the first try, retries continue in the background. Never rejects. */
  tell(clientId: string, send: () => Promise<void>): Promise<void> {
    if (this.#deliveries.size >= DELIVERIES_MAX) {
      this.#log.warn("logout notice dropped: too many are waiting", {
        client_id: clientId,
      });
      return Promise.resolve();
    }
    const { promise, resolve } = Promise.withResolvers<void>();
    const delivery = this.#deliver(clientId, send, resolve).finally(() => {
      this.#deliveries.delete(delivery);
    });
    this.#deliveries.add(delivery);
    return promise;
  }

  /** Cancels pending retries; tries in flight are bounded by the egress guard. */
  async close(): Promise<void> {
    this.#closing.abort();
    await Promise.all(this.#deliveries);
  }

  async #deliver(clientId: string, send: () => Promise<void>, onTried: () => void): Promise<void> {
    const { signal } = this.#closing;
    for (const waitMs of [...RETRY_MS, undefined]) {
      try {
        await send();
        return;
      } catch (error) {
        if (waitMs === undefined || signal.aborted || !isTemporary(error)) {
          this.#log.warn("logout notice failed", { client_id: clientId, error });
          return;
        }
      } finally {
        onTried();
      }
      // Closing ends the delay, and the next try is the last.
      await wait(waitMs, undefined, { signal }).catch(() => {});
    }
  }
}

// A client that rejects the token will reject the next one as well; an unreachable or failing client may recover.
function isTemporary(error: unknown): boolean {
  const { response } = error as { response?: { status: number } };
  return response === undefined || response.status >= 500 || response.status === 429;
}
