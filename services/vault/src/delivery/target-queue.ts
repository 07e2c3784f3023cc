// The events of one subscription on their way to its target: order, delays, and pauses of the target.
//
//   offered ──► ready ──► in flight ──► delivered
//                 ▲           │
//                 └─ delayed ◄┘ failed: each event has its own next time, the one due first goes first
//
// After `FAILURES_TO_PROBE` failures in a row the target is probed with one event at a time, at growing intervals.
import type { PendingEvent } from "../model/event.ts";
import type { Sender, SendOutcome } from "./sender.ts";

const FAILURES_TO_PROBE = 3;

/** Options of a queue. */
export interface TargetQueueOptions {
  sender: Sender;
  /** Events in the queue, including those in flight. */
  eventsMax: number;
  /** Events in flight. */
  concurrency: number;
  /** The wait after the first failure in ms, doubled by each further failure up to `retryMsMax`. */
  retryMs: number;
  retryMsMax: number;
  /** Delivery of an event is abandoned at this age. */
  ageMsMax: number;
  /** Milliseconds since 1970. */
  now: () => number;
  /** A number from 0 to 1, so that targets that failed together do not retry together. */
  random: () => number;
  onDelivered: (event: PendingEvent) => void;
  onFailed: (event: PendingEvent, reason: string) => void;
  onGivenUp: (event: PendingEvent, reason: string, attempts: number) => void;
  /** The queue has become half empty. */
  onRoom: () => void;
}

interface Delayed {
  event: PendingEvent;
  attempts: number;
  dueMs: number;
}

/** A bounded queue in front of one target. */
export class TargetQueue {
  readonly #options: TargetQueueOptions;
  readonly #ready: Delayed[] = [];
  /** Sorted by due time. */
  readonly #delayed: Delayed[] = [];
  #underWay = 0;
  #failures = 0;
  /** The earliest time of the next attempt. */
  #openAtMs = 0;
  #timer: NodeJS.Timeout | undefined;
  #isClosed = false;
  /** Events with ids above this one were refused for lack of room. */
  lagsAfterId: number | undefined;

  constructor(options: TargetQueueOptions) {
    this.#options = options;
  }

  get size(): number {
    return this.#ready.length + this.#delayed.length + this.#underWay;
  }

  /** Accepts an event; false if there is no room. */
  offer(event: PendingEvent): boolean {
    if (this.#isClosed || this.size >= this.#options.eventsMax) return false;
    this.#ready.push({ event, attempts: 0, dueMs: 0 });
    this.#advance();
    return true;
  }

  /** Stops. Deliveries in flight may still succeed; otherwise they are repeated after the next start. */
  close(): void {
    this.#isClosed = true;
    clearTimeout(this.#timer);
    this.#options.sender.close();
  }

  #advance(): void {
    const { now } = this.#options;
    clearTimeout(this.#timer);
    while (!this.#isClosed && this.#underWay < this.#concurrency && this.#openAtMs <= now()) {
      const next = this.#takeNext();
      if (next === undefined) break;
      void this.#send(next);
    }
    if (!this.#isClosed && this.#underWay < this.#concurrency) this.#sleep();
  }

  get #concurrency(): number {
    return this.#failures >= FAILURES_TO_PROBE ? 1 : this.#options.concurrency;
  }

  #takeNext(): Delayed | undefined {
    const [first] = this.#delayed;
    return first !== undefined && first.dueMs <= this.#options.now()
      ? this.#delayed.shift()
      : this.#ready.shift();
  }

  #sleep(): void {
    const due = this.#ready.length > 0 ? 0 : this.#delayed[0]?.dueMs;
    if (due === undefined) return;
    const waitMs = Math.max(due, this.#openAtMs) - this.#options.now();
    this.#timer = setTimeout(() => this.#advance(), Math.max(1, waitMs));
    this.#timer.unref();
  }

  async #send(item: Delayed): Promise<void> {
    this.#underWay++;
    const outcome = await this.#options.sender.send(item.event);
    this.#underWay--;
    if (this.#isClosed && outcome.kind !== "delivered") return;
    this.#judge(item, outcome);
    if (this.lagsAfterId !== undefined && this.size <= this.#options.eventsMax / 2)
      this.#options.onRoom();
    this.#advance();
  }

  #judge(item: Delayed, outcome: SendOutcome): void {
    const { now, ageMsMax, onDelivered, onFailed, onGivenUp } = this.#options;
    if (outcome.kind === "delivered") {
      this.#failures = 0;
      this.#openAtMs = 0;
      onDelivered(item.event);
      return;
    }
    item.attempts++;
    if (outcome.blames === "target") {
      this.#failures++;
      if (this.#failures >= FAILURES_TO_PROBE)
        this.#openAtMs = now() + this.#backOff(this.#failures - FAILURES_TO_PROBE, outcome.afterMs);
    } else {
      // An answer means that the target is alive.
      this.#failures = 0;
      this.#openAtMs = 0;
    }
    item.dueMs = now() + this.#backOff(item.attempts - 1, outcome.afterMs);
    if (item.dueMs - item.event.timeMs > ageMsMax) {
      onGivenUp(item.event, outcome.reason, item.attempts);
      return;
    }
    onFailed(item.event, outcome.reason);
    const at = this.#delayed.findIndex((other) => other.dueMs > item.dueMs);
    this.#delayed.splice(at < 0 ? this.#delayed.length : at, 0, item);
  }

  /** Between half of the doubled wait and all of it. */
  #backOff(doublings: number, askedMs = 0): number {
    const { retryMs, retryMsMax, random } = this.#options;
    const wait = Math.min(retryMsMax, retryMs * 2 ** Math.min(doublings, 30));
    return Math.max(askedMs, wait * (0.5 + random() / 2));
  }
}
