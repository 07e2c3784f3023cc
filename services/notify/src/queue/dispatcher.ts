// Runs deliveries: takes them from memory in turn, attempts them, records the results, and refills from the database.
//
//   accepted message ─► room in memory? ─ yes ─► lanes ─► attempt ─► result ─► database
//                              │ no                ▲                  │ temporary: due later
//                              └────► database ────┴──── refill ◄─────┘
import { setTimeout as sleep } from "node:timers/promises";
import type { Logger } from "@platform/kernel/log";
import { every, SetBackWatch, type Clock, type RepeatingTimer } from "@platform/kernel/time";
import {
  channelOf,
  QUEUE_CLASSES,
  type Delivery,
  type DeliveryResult,
  type Outcome,
  type QueueClass,
  type Transport,
} from "../delivery.ts";
import { Destinations } from "./destinations.ts";
import { Lanes } from "./lanes.ts";
import { toResult } from "./result.ts";
import { findLongestDelay } from "./retry.ts";
import { FIRST_LANE, type LaneKey, type QueueStore } from "./store.ts";

/** Options of {@link Dispatcher}. */
export interface DispatcherOptions {
  store: QueueStore;
  transports: Readonly<Record<Delivery["message"]["channel"], Transport>>;
  /** Returns the deliveries whose addresses are suppressed. */
  findSuppressed: (deliveries: readonly Delivery[]) => Promise<ReadonlySet<Delivery>>;
  clock: Clock;
  log: Logger;
  /** Returns a number from 0 to 1. */
  random: () => number;
  /** Maximum number of concurrent attempts. */
  concurrencyMax: number;
  /** Maximum number of concurrent attempts per destination. */
  destinationConcurrencyMax: number;
  /** Maximum number of attempts per second and destination; 0 for no limit. */
  ratePerSecond: number;
  /** Delay of the first retry in ms. */
  retryMs: number;
}

/** Length of a lease. It exceeds the time of an attempt, so that no two attempts of a delivery overlap. */
export const LEASE_MS = 15 * 60_000;

const ATTEMPT_MS_MAX = 10 * 60_000;
/** Leases of attempts in flight that end sooner are extended. */
const RENEW_MS = 60_000;
const POLL_MS = 500;
const RECORD_RETRY_MS = 1_000;
const DELIVERIES_MAX = 1_000;
const BYTES_MAX = 64 * 1024 * 1024;
/** Maximum number of results that wait to be written. */
const RECORDING_MAX = 500;
/** Share of the attempts that bulk messages and retries may use: the rest is for new transactional messages. */
const BACKGROUND_SHARE = 0.75;

/** Attempts deliveries until it is stopped. */
export class Dispatcher {
  readonly #options: DispatcherOptions;
  readonly #lanes = new Lanes({
    deliveriesMax: DELIVERIES_MAX,
    laneDeliveriesMax: DELIVERIES_MAX / 2,
    bytesMax: BYTES_MAX,
  });
  readonly #destinations: Destinations;
  readonly #cursors = new Map<QueueClass, LaneKey>();
  /** Attempts until their results are recorded. */
  readonly #attempts = new Set<Promise<void>>();
  readonly #aborting = new AbortController();
  /** Deliveries from their attempts until their results are recorded, with the ends of their leases. */
  readonly #leases = new Map<Delivery, number>();
  /** Attempts until the relay has answered; of these, bulk messages and retries. */
  #inFlight = 0;
  #background = 0;
  readonly #resultListeners: ((result: DeliveryResult) => void)[] = [];
  #isStopped = false;
  #hasBacklog = true;
  readonly #setBack = new SetBackWatch();
  #poll: RepeatingTimer | undefined;
  #opening: NodeJS.Timeout | undefined;

  constructor(options: DispatcherOptions) {
    this.#options = options;
    const { destinationConcurrencyMax: concurrencyMax, ratePerSecond, clock } = options;
    this.#destinations = new Destinations({ concurrencyMax, ratePerSecond, clock });
  }

  /** Calls `listener` with each result that was recorded. */
  onResult(listener: (result: DeliveryResult) => void): void {
    this.#resultListeners.push(listener);
  }

  /** Starts to deliver. */
  start(): void {
    const { log } = this.#options;
    this.#poll = every(
      POLL_MS,
      () => this.#refill(),
      (error) => log.error("reading the queue failed", { error }),
    );
    void this.#poll.run();
  }

  /** Looks for due deliveries now; resolves when those found are in memory. */
  async refill(): Promise<void> {
    await this.#poll?.run();
  }

  /** True if new deliveries of this kind can be attempted from memory. */
  hasRoom(queueClass: QueueClass, client: string, domain: string): boolean {
    return !this.#isStopped && this.#lanes.laneRoom(queueClass, client, domain) > 0;
  }

  /** Adds a leased delivery. */
  add(delivery: Delivery): void {
    this.#setBack.note(this.#options.clock.now());
    this.#lanes.add(delivery);
    this.#pump();
  }

  /** Reports deliveries that are due and only in the database. */
  noteBacklog(): void {
    this.#hasBacklog = true;
  }

  /** Removes the waiting deliveries of a message from memory and returns them; those in flight continue. */
  withdraw(messageId: string): Delivery[] {
    return this.#lanes.remove(({ message }) => message.id === messageId);
  }

  /** Stops: attempts in flight may take `graceMs`; then they are aborted, and everything else is given back. */
  async stop(graceMs: number): Promise<void> {
    this.#isStopped = true;
    clearTimeout(this.#opening);
    await this.#poll?.stop();
    const ended = Promise.allSettled(this.#attempts);
    const timer = setTimeout(() => this.#aborting.abort(), graceMs);
    await ended;
    clearTimeout(timer);
    const rest = this.#lanes.remove(() => true);
    await this.#options.store.release(rest, this.#options.clock.now());
  }

  #pump(): void {
    if (this.#isStopped) return;
    const { concurrencyMax, transports } = this.#options;
    const backgroundMax = Math.max(1, Math.floor(concurrencyMax * BACKGROUND_SHARE));
    while (
      this.#inFlight < concurrencyMax &&
      this.#attempts.size < concurrencyMax + RECORDING_MAX
    ) {
      const delivery = this.#lanes.take(({ queueClass, message, domain }) => {
        if (queueClass !== 0 && this.#background >= backgroundMax) return false;
        return this.#destinations.isOpen(transports[message.channel].destinationOf(domain));
      });
      if (delivery === undefined) break;
      void this.#track(this.#run(delivery)).finally(() => this.#pump());
    }
    this.#scheduleOpening();
    if (this.#hasBacklog && this.#lanes.size < DELIVERIES_MAX / 2) void this.#poll?.run();
  }

  // Remembers work that `stop` waits for.
  async #track(work: Promise<void>): Promise<void> {
    this.#attempts.add(work);
    await work.finally(() => this.#attempts.delete(work));
  }

  // Wakes up when a pause ends.
  #scheduleOpening(): void {
    if (this.#lanes.size === 0) return;
    const waitMs = this.#destinations.nextOpeningMs();
    if (waitMs === undefined) return;
    clearTimeout(this.#opening);
    this.#opening = setTimeout(() => this.#pump(), Math.ceil(waitMs)).unref();
  }

  async #run(delivery: Delivery): Promise<void> {
    const { clock, store, log } = this.#options;
    try {
      if (clock.now() + ATTEMPT_MS_MAX > delivery.leaseUntil) {
        await store.release([delivery], clock.now());
        this.#hasBacklog = true;
        return;
      }
      const { expiresAt = Number.POSITIVE_INFINITY } = delivery.message;
      if (clock.now() >= expiresAt) {
        await this.#record(delivery, "expired");
        return;
      }
      this.#leases.set(delivery, delivery.leaseUntil);
      const outcome = await this.#attempt(delivery);
      // The connection is free: another delivery uses it while the result is written.
      this.#pump();
      await this.#record(delivery, outcome);
    } catch (error) {
      log.error("a delivery failed unexpectedly; it is repeated after its lease", {
        error,
        message_id: delivery.message.id,
      });
    } finally {
      this.#leases.delete(delivery);
    }
  }

  async #attempt(delivery: Delivery): Promise<Outcome> {
    const transport = this.#options.transports[delivery.message.channel];
    const destination = transport.destinationOf(delivery.domain);
    const isBackground = delivery.queueClass !== 0;
    let isFailure = false;
    this.#destinations.start(destination);
    this.#inFlight += 1;
    if (isBackground) this.#background += 1;
    try {
      const signal = AbortSignal.any([this.#aborting.signal, AbortSignal.timeout(ATTEMPT_MS_MAX)]);
      const outcome = await transport.deliver(delivery, signal);
      isFailure = outcome.kind === "deferred" && outcome.cause === "relay";
      return outcome;
    } finally {
      this.#destinations.end(destination, isFailure);
      this.#inFlight -= 1;
      if (isBackground) this.#background -= 1;
    }
  }

  // A result is kept until the database accepts it: a lost result would send the message again.
  async #record(
    delivery: Delivery,
    outcome: Outcome | "suppressed" | "expired" | "damaged",
  ): Promise<void> {
    const { clock, retryMs, random, store, log } = this.#options;
    const result = toResult(delivery, outcome, {
      nowMs: clock.now(),
      retryMs,
      random: random(),
      isStopping: this.#isStopped,
    });
    for (;;) {
      try {
        if (await store.record(result)) {
          for (const listener of this.#resultListeners) listener(result);
        } else
          log.warn("a result came after the end of its lease", { message_id: delivery.message.id });
        return;
      } catch (error) {
        log.error("a result could not be recorded", { error, message_id: delivery.message.id });
        if (this.#aborting.signal.aborted) return;
      }
      await sleep(RECORD_RETRY_MS);
    }
  }

  async #refill(): Promise<void> {
    if (this.#isStopped) return;
    await this.#followClock();
    await this.#renewLeases();
    let claimed = 0;
    for (const queueClass of QUEUE_CLASSES) claimed += await this.#refillClass(queueClass);
    this.#hasBacklog = claimed > 0;
    if (claimed > 0) this.#pump();
  }

  async #followClock(): Promise<void> {
    const { store, clock, retryMs } = this.#options;
    const nowMs = clock.now();
    const latestMs = nowMs + findLongestDelay(retryMs);
    await this.#setBack.follow(nowMs, () => store.moveUp(nowMs, latestMs));
  }

  // The clock may have been set forward, or the database may refuse results: the mail of an ended lease is sent again.
  async #renewLeases(): Promise<void> {
    const nowMs = this.#options.clock.now();
    const ending = [...this.#leases].flatMap(([delivery, endsMs]) =>
      endsMs < nowMs + RENEW_MS ? [delivery] : [],
    );
    if (ending.length === 0) return;
    await this.#options.store.renew(ending, nowMs + LEASE_MS);
    for (const delivery of ending) {
      if (this.#leases.has(delivery)) this.#leases.set(delivery, nowMs + LEASE_MS);
    }
  }

  // A turn of the lanes: each gets a share, and the next turn begins where this one ended.
  async #refillClass(queueClass: QueueClass): Promise<number> {
    const { store, clock, transports, findSuppressed, log } = this.#options;
    if (this.#lanes.room(queueClass) < DELIVERIES_MAX / 2) return 0;
    const nowMs = clock.now();
    const { deliveries, last } = await store.claim({
      queueClass,
      after: this.#cursors.get(queueClass) ?? FIRST_LANE,
      nowMs,
      leaseUntil: nowMs + LEASE_MS,
      roomOf: ({ client, domain }) =>
        this.#destinations.isPaused(transports[channelOf(domain)].destinationOf(domain))
          ? 0
          : this.#lanes.laneRoom(queueClass, client, domain),
    });
    this.#cursors.set(queueClass, last);
    // Addresses may have been suppressed since their messages were accepted.
    const suppressed = await findSuppressed(deliveries);
    for (const delivery of deliveries) {
      if (delivery.damage !== undefined) {
        log.error("a stored message is damaged and is not sent", {
          message_id: delivery.message.id,
          damage: delivery.damage,
        });
        void this.#track(this.#record(delivery, "damaged"));
      } else if (suppressed.has(delivery)) void this.#track(this.#record(delivery, "suppressed"));
      else this.#lanes.add(delivery);
    }
    return deliveries.length;
  }
}
