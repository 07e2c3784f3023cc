// The events of one subscription on their way to its target: who is next, who waits, when to leave the target alone.
//
//   offered ──► ready ──► under way ──► delivered
//                 ▲           │
//                 └─ delayed ◄┘ failed: each event has its own next time, the one due first goes first
//
// After `FAILURES_TO_PROBE` failures in a row the target is probed with one event at a time, ever less often.
import type { PendingEvent } from "../model/event.ts";
import type { Sender, SendOutcome } from "./sender.ts";

const FAILURES_TO_PROBE = 3;

/** What a queue does with its events, and how often. */
export interface TargetQueueOptions {
  sender: Sender;
  /** Events in the queue, those under way included. */
  eventsMax: number;
  /** Events under way at once. */
  concurrency: number;
  /** The wait after the first failure in ms, doubled by each further one up to `retryMsMax`. */
  retryMs: number;
  retryMsMax: number;
  /** An event is given up when it is this old. */
  ageMsMax: number;
  /** Milliseconds since 1970. */
  now: () => number;
  /** A number from 0 to 1, so that targets that failed together do not come back together. */
  random: () => number;
  onDelivered: (event: PendingEvent) => void;
  onFailed: (event: PendingEvent, reason: string) => void;
  onGivenUp: (event: PendingEvent, reason: string, attempts: number) => void;
  /** The queue has become half empty. */
  onRoom: () => void;
}

type Delayed = { event: PendingEvent; attempts: number; dueMs: number };

/** A bounded queue before one target. */
export class TargetQueue {
  readonly #options: TargetQueueOptions;
  readonly #ready: Delayed[] = [];
  /** The one due first at the front. */
  readonly #delayed: Delayed[] = [];
  #underWay = 0;
  #failures = 0;
  /** When the target may be tried again. */
  #openAtMs = 0;
  #timer: NodeJS.Timeout | undefined;
  #isClosed = false;
  /** Events with ids above this one were not taken: there was no room. */
  lagsAfterId: number | undefined;

  constructor(options: TargetQueueOptions) {
    this.#options = options;
  }

  get size(): number {
    return this.#ready.length + this.#delayed.length + this.#underWay;
  }

  /** Takes an event, or says that there is no room. */
  offer(event: PendingEvent): boolean {
    if (this.#isClosed || this.size >= this.#options.eventsMax) return false;
    this.#ready.push({ event, attempts: 0, dueMs: 0 });
    this.#advance();
    return true;
  }

  /** Stops; what is under way may still be delivered, and is delivered again after the next start otherwise. */
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
      // It answers, so it lives.
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

  /** Between half and the whole of the doubled wait. */
  #backOff(doublings: number, askedMs = 0): number {
    const { retryMs, retryMsMax, random } = this.#options;
    const wait = Math.min(retryMsMax, retryMs * 2 ** Math.min(doublings, 30));
    return Math.max(askedMs, wait * (0.5 + random() / 2));
  }
}
