// Questions of a worker to the control plane, which alone talks to identity providers.
import type { FromWorker, RefreshOutcome, ToWorker } from "../shared-state/index.ts";

const WAITING_MAX = 256;
const TIMEOUT_MS = 15_000;

/** Asks the control plane. One per worker. */
export class ControlLink {
  readonly #send: (message: FromWorker) => void;
  readonly #waiting = new Map<number, (outcome: RefreshOutcome) => void>();
  #id = 0;

  constructor(send: (message: FromWorker) => void) {
    this.#send = send;
  }

  /** Renews the session of a browser at its identity provider. Never rejects. */
  refreshSession(client: string, sealed: string): Promise<RefreshOutcome> {
    if (this.#waiting.size >= WAITING_MAX) return Promise.resolve({ kind: "unavailable" });
    const id = ++this.#id;
    return new Promise((resolve) => {
      const timer = setTimeout(() => this.#settle(id, { kind: "unavailable" }), TIMEOUT_MS);
      this.#waiting.set(id, (outcome) => {
        clearTimeout(timer);
        resolve(outcome);
      });
      this.#send({ type: "refresh-session", id, client, sealed });
    });
  }

  /** Receives an answer. */
  receive({ id, outcome }: Extract<ToWorker, { type: "session-refreshed" }>): void {
    this.#settle(id, outcome);
  }

  #settle(id: number, outcome: RefreshOutcome): void {
    const settle = this.#waiting.get(id);
    this.#waiting.delete(id);
    settle?.(outcome);
  }
}
