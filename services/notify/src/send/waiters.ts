// Requests that wait for the results of their message.
import type { DeliveryResult } from "../delivery.ts";

interface Waiter {
  open: Set<number>;
  results: DeliveryResult[];
  resolve: (results: DeliveryResult[]) => void;
  timer: NodeJS.Timeout;
}

/** Waiting requests by message. */
export class Waiters {
  readonly #waiters = new Map<string, Waiter>();

  /** Resolves when each of these deliveries has a result, or after `waitMs` with the results so far. */
  wait(messageId: string, positions: readonly number[], waitMs: number): Promise<DeliveryResult[]> {
    return new Promise((resolve) => {
      const timer = setTimeout(() => this.#end(messageId), waitMs);
      this.#waiters.set(messageId, { open: new Set(positions), results: [], resolve, timer });
    });
  }

  /** Adds a result. */
  note(result: DeliveryResult): void {
    const { message, position } = result.delivery;
    const waiter = this.#waiters.get(message.id);
    if (waiter === undefined) return;
    waiter.open.delete(position);
    waiter.results.push(result);
    if (waiter.open.size === 0) this.#end(message.id);
  }

  #end(messageId: string): void {
    const waiter = this.#waiters.get(messageId);
    if (waiter === undefined) return;
    this.#waiters.delete(messageId);
    clearTimeout(waiter.timer);
    waiter.resolve(waiter.results);
  }
}
