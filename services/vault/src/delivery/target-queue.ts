// The events of one subscription on their way to its target: order, delays, and pauses of the target.
//
//   offered ──► ready ──► in flight ──► delivered
//                 ▲           │
//                 └─ delayed ◄┘ failed: each event has its own next time, the one due first goes first
//
// After `FAILURES_TO_PROBE` failures in a row the target is probed with one event at a time, at growing intervals.
import type { Clock } from "@platform/kernel/time";
import type { PendingEvent } from "../model/event.ts";
import type { Message, Sender, SendOutcome } from "./sender.ts";

const FAILURES_TO_PROBE = 3;

/** Options of a queue. */
export interface TargetQueueOptions {
  sender: Sender;
  format: (event: PendingEvent) => Message;
  /** Events in the queue, including those in flight. */
  eventsMax: number;
  /** Events in flight. */
  concurrency: number;
  /** The wait after the first failure in ms, doubled by each further failure up to `retryMsMax`. */
  retryMs: number;
  retryMsMax: number;
  /** Delivery of an event is abandoned at this age. */
  ageMsMax: number;
  /** Waits follow its monotonic time: they do not grow by as much as the calendar is set back. */
  clock: Clock;
  /** A number from 0 to 1, so that targets that failed together do not retry together. */
  random: () => number;
  /** False for events of a deleted subscription: they are dropped instead of sent. */
  isWanted: (event: PendingEvent) => boolean;
  onDropped: (event: PendingEvent) => void;
  onDelivered: (event: PendingEvent, attempt: Attempt) => void;
  onFailed: (event: PendingEvent, reason: string, attempt: Attempt) => void;
  onGivenUp: (event: PendingEvent, reason: string, attempt: Attempt) => void;
  /** The queue has become half empty. */
  onRoom: () => void;
}

/** An attempt that has ended. */
export interface Attempt {
  /** 1 is the first one of the event. */
  readonly number: number;
  readonly durationMs: number;
  /** Of an HTTP answer. */
  readonly status?: number;
  /** The planned time of the next one, in ms since 1970, after a failure. */
  readonly nextMs?: number;
}

interface Delayed {
  event: PendingEvent;
  attempts: number;
  /** Monotonic. */
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
  /** The earliest monotonic time of the next attempt. */
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
    const { clock } = this.#options;
    clearTimeout(this.#timer);
    while (
      !this.#isClosed &&
      this.#underWay < this.#concurrency &&
      this.#openAtMs <= clock.monotonicMs()
    ) {
      const next = this.#takeNext();
      if (next === undefined) break;
      if (this.#options.isWanted(next.event)) void this.#send(next);
      else {
        this.#options.onDropped(next.event);
        this.#announceRoom();
      }
    }
    if (!this.#isClosed && this.#underWay < this.#concurrency) this.#sleep();
  }

  #announceRoom(): void {
    if (this.lagsAfterId !== undefined && this.size <= this.#options.eventsMax / 2)
      this.#options.onRoom();
  }

  get #concurrency(): number {
    return this.#failures >= FAILURES_TO_PROBE ? 1 : this.#options.concurrency;
  }

  #takeNext(): Delayed | undefined {
    const [first] = this.#delayed;
    return first !== undefined && first.dueMs <= this.#options.clock.monotonicMs()
      ? this.#delayed.shift()
      : this.#ready.shift();
  }

  #sleep(): void {
    const due = this.#ready.length > 0 ? 0 : this.#delayed[0]?.dueMs;
    if (due === undefined) return;
    const waitMs = Math.max(due, this.#openAtMs) - this.#options.clock.monotonicMs();
    this.#timer = setTimeout(() => this.#advance(), Math.max(1, waitMs));
    this.#timer.unref();
  }

  async #send(item: Delayed): Promise<void> {
    const { clock, sender, format } = this.#options;
    const beganMs = clock.monotonicMs();
    this.#underWay++;
    const outcome = await sender.send(format(item.event));
    this.#underWay--;
    if (this.#isClosed && outcome.kind !== "delivered") return;
    item.attempts++;
    this.#judge(item, outcome, {
      number: item.attempts,
      durationMs: Math.round(clock.monotonicMs() - beganMs),
      ...(outcome.status === undefined ? {} : { status: outcome.status }),
    });
    this.#advance();
    this.#announceRoom();
  }

  #judge(item: Delayed, outcome: SendOutcome, attempt: Attempt): void {
    const { clock, ageMsMax, onDelivered, onFailed, onGivenUp } = this.#options;
    if (outcome.kind === "delivered") {
      this.#failures = 0;
      this.#openAtMs = 0;
      onDelivered(item.event, attempt);
      return;
    }
    const nowMs = clock.monotonicMs();
    if (outcome.blames === "target") {
      this.#failures++;
      if (this.#failures >= FAILURES_TO_PROBE)
        this.#openAtMs = nowMs + this.#backOff(this.#failures - FAILURES_TO_PROBE, outcome.afterMs);
    } else {
      // An answer means that the target is alive.
      this.#failures = 0;
      this.#openAtMs = 0;
    }
    const waitMs = this.#backOff(item.attempts - 1, outcome.afterMs);
    item.dueMs = nowMs + waitMs;
    if (clock.now() + waitMs - item.event.timeMs > ageMsMax) {
      onGivenUp(item.event, outcome.reason, attempt);
      return;
    }
    // While the target is probed, the event may have to wait longer.
    onFailed(item.event, outcome.reason, {
      ...attempt,
      nextMs: clock.now() + Math.max(item.dueMs, this.#openAtMs) - nowMs,
    });
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
