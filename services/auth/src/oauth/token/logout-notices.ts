// Telling clients that a session is over (OpenID Connect Back-Channel Logout): again where that fails for the moment.
import { setTimeout as wait } from "node:timers/promises";
import type { Logger } from "@platform/kernel/log";

const DELIVERIES_MAX = 1_000;
const RETRY_MS: readonly number[] = [1_000, 5_000, 25_000];

/** Delivers notices. Those that are still to be tried again when the process ends are not kept. */
export class LogoutNotices {
  readonly #log: Logger;
  readonly #deliveries = new Set<Promise<void>>();
  readonly #closing = new AbortController();

  constructor(log: Logger) {
    this.#log = log;
  }

  /** Sends a notice; resolves once that has been tried, while further tries go on by themselves. Never rejects. */
  tell(clientId: string, send: () => Promise<void>): Promise<void> {
    if (this.#deliveries.size >= DELIVERIES_MAX) {
      this.#log.warn("a client was not told of a logout: too many are waiting", {
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

  /** Ends the waiting for further tries; those under way are bounded by the egress guard. */
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
          this.#log.warn("a client could not be told of a logout", { client_id: clientId, error });
          return;
        }
      } finally {
        onTried();
      }
      // Closing ends the wait early, and the next try is the last.
      await wait(waitMs, undefined, { signal }).catch(() => {});
    }
  }
}

// A client that refuses the token refuses the next one as well; one that cannot be reached, or is not well, may recover.
function isTemporary(error: unknown): boolean {
  const { response } = error as { response?: { status: number } };
  return response === undefined || response.status >= 500 || response.status === 429;
}
