// The concurrency step: bounds the requests of a route across all workers; others wait in a bounded queue, first come first served.
import { createRetryLaterError, PlatformError } from "@platform/kernel/errors";
import type { GateExchange, Step } from "../../exchange/exchange.ts";
import type { ConcurrencySpec, RouteSpec } from "../../shared-state/index.ts";
import type { StepParts } from "../step-parts.ts";

/** Interval at which waiting requests look for a place that a request of another worker has left. */
const POLL_MS = 2;
const RETRY_AFTER_SECONDS = 1;

/** Bounds concurrency with 503 `queue_full` and 504 `queue_timeout`. */
export function createConcurrencyStep(spec: RouteSpec, parts: StepParts): Step | undefined {
  const { concurrency } = spec.steps;
  return concurrency === undefined ? undefined : new ConcurrencyStep(concurrency, spec.slot, parts);
}

interface Waiter {
  ticket: number;
  deadlineMs: number;
  settle: (error?: PlatformError) => void;
}

class ConcurrencyStep implements Step {
  readonly #spec: ConcurrencySpec;
  readonly #slot: number;
  readonly #parts: StepParts;
  readonly #queue = new Set<Waiter>();
  #timer: NodeJS.Timeout | undefined;

  constructor(spec: ConcurrencySpec, slot: number, parts: StepParts) {
    this.#spec = spec;
    this.#slot = slot;
    this.#parts = parts;
  }

  run(exchange: GateExchange): boolean | Promise<boolean> {
    const { concurrency } = this.#parts;
    if (!concurrency.hasWaiting(this.#slot) && this.#enter()) return true;
    if (!concurrency.join(this.#slot, this.#spec.queueMax)) {
      this.#parts.block.addCounter("queueFull", 1);
      throw createRetryLaterError(
        "queue_full",
        "Too many requests are in progress and waiting.",
        RETRY_AFTER_SECONDS,
      );
    }
    this.#parts.block.addCounter("queued", 1);
    return this.#wait(exchange);
  }

  finish(): void {
    this.#parts.concurrency.leave(this.#slot);
    this.#advance();
  }

  abandon(): void {
    this.finish();
  }

  #enter(): boolean {
    return this.#parts.concurrency.enter(this.#slot, this.#spec.requestsMax);
  }

  #wait(exchange: GateExchange): Promise<boolean> {
    const waiting = new Promise<boolean>((resolve, reject) => {
      const waiter: Waiter = {
        ticket: this.#parts.routeState.takeTicket(this.#slot),
        deadlineMs: this.#parts.readNowMs() + this.#spec.queueTimeoutMs,
        settle: (error) => {
          this.#remove(waiter);
          if (error === undefined) resolve(true);
          else reject(error);
        },
      };
      exchange.onAborted = () => {
        if (!this.#queue.has(waiter)) return;
        this.#remove(waiter);
        resolve(false);
      };
      this.#queue.add(waiter);
    });
    this.#showHead();
    this.#timer ??= setInterval(() => this.#advance(), POLL_MS);
    return waiting;
  }

  #remove(waiter: Waiter): void {
    this.#queue.delete(waiter);
    this.#parts.concurrency.quit(this.#slot);
    this.#showHead();
    if (this.#queue.size > 0) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  #showHead(): void {
    const [first] = this.#queue;
    this.#parts.concurrency.showHead(this.#slot, first?.ticket ?? 0);
  }

  // Lets the first requests in, and ends those that have waited too long.
  #advance(): void {
    if (this.#queue.size === 0) return;
    const nowMs = this.#parts.readNowMs();
    for (const waiter of this.#queue) {
      if (nowMs >= waiter.deadlineMs) {
        this.#parts.block.addCounter("queueTimeouts", 1);
        waiter.settle(createTimeoutError());
        continue;
      }
      if (!this.#parts.concurrency.isFirst(this.#slot, waiter.ticket) || !this.#enter()) return;
      waiter.settle();
    }
  }
}

function createTimeoutError(): PlatformError {
  return new PlatformError("queue_timeout", "No place became free in time.", {
    headers: { "Retry-After": String(RETRY_AFTER_SECONDS) },
  });
}
