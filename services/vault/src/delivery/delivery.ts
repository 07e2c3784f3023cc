// Delivers events from the store's outbox to their targets: at least once, each target at its own pace.
//
//   outbox ──► cursor ──► a queue per subscription ──► webhook, STOMP
//     ▲                      │ full: the events that it refused are read again when it has room
//     └── acknowledged ◄─────┘ delivered, or abandoned and written to the dead letters
import { createHash, randomBytes } from "node:crypto";
import type { EgressFetch } from "@platform/kernel/egress";
import { createIdSource } from "@platform/kernel/ids";
import type { Logger } from "@platform/kernel/log";
import type { Clock } from "@platform/kernel/time";
import { createTraceHeaders } from "@platform/kernel/trace";
import type { EventOutbox, NotificationRule, PendingEvent } from "../model/event.ts";
import type { DeadLetters } from "./dead-letters.ts";
import { type EventOrigin, formatEvent, formatTest } from "./event-record.ts";
import type { Sender, SendOutcome } from "./sender.ts";
import { createStompSender } from "./stomp.ts";
import { TargetQueue, type Attempt } from "./target-queue.ts";
import { readTarget, type DeliveryTarget, type EventPolicy } from "./target.ts";
import { TryLog, type SubscriptionTries, type Try } from "./tries.ts";
import { createWebhookSender, deriveWebhookSecret } from "./webhook.ts";

/** Options of delivery. */
export interface DeliveryOptions {
  outbox: EventOutbox;
  /** False for events of a deleted subscription: they are dropped. */
  isWanted: (event: PendingEvent) => boolean;
  deadLetters: DeadLetters;
  /** For webhooks; checks and pins addresses. */
  fetch: EgressFetch;
  /** For STOMP brokers. */
  policy: EventPolicy;
  /** The secrets of webhooks are derived from it; 32 bytes or more. */
  masterKey: Uint8Array;
  /** Part of each event record. */
  origin: EventOrigin;
  log: Logger;
  clock: Clock;
  /** A number from 0 to 1. */
  random: () => number;
  /** Default 1 s, doubled up to 5 min. */
  retryMs?: number;
  retryMsMax?: number;
  /** Delivery of an event is abandoned after this time, in ms. Default 24 h. */
  ageMsMax?: number;
  /** Events in memory per subscription. Default 500. */
  queueEventsMax?: number;
  /** Events in flight per subscription. Default 8. */
  concurrency?: number;
  /** Subscriptions with a queue; an idle one is replaced by another. Default 1 000. */
  queuesMax?: number;
}

/** Totals since the start. */
export interface DeliveryStats {
  delivered: number;
  failed: number;
  givenUp: number;
}

/** State of a subscription. */
export interface SubscriptionState extends SubscriptionTries {
  /** Events in its queues. */
  waiting: number;
  /** True if further events wait in the outbox. */
  hasMore: boolean;
}

/** The result of a test. */
export interface TestResult {
  readonly outcome: SendOutcome;
  readonly durationMs: number;
}

/** Tests in flight; each ends within the time limit of a delivery. */
const TESTS_MAX = 4;
const UNREADABLE = "the target of the subscription cannot be parsed";
const NOT_TRIED: Attempt = { number: 0, durationMs: 0 };
const PAGE_EVENTS = 500;
/** Acknowledgements are collected for this time, in ms, or until there are this many. */
const ACKNOWLEDGE_MS = 20;
const ACKNOWLEDGE_EVENTS = 500;
/** Wait before the outbox is read again after a failure, in ms. */
const OUTBOX_RETRY_MS = 1_000;

/** Delivers events until it is closed. */
export class Delivery {
  readonly #options: Required<DeliveryOptions>;
  readonly #queues = new Map<string, TargetQueue>();
  readonly #tries = new TryLog();
  readonly #ids = createIdSource();
  readonly #stopListening: () => void;
  readonly stats: DeliveryStats = { delivered: 0, failed: 0, givenUp: 0 };
  #cursor = 0;
  #isReading = false;
  #isWoken = false;
  #isClosed = false;
  #tests = 0;
  #done: number[] = [];
  #acknowledgeTimer: NodeJS.Timeout | undefined;
  #acknowledging: Promise<void> = Promise.resolve();

  constructor(options: DeliveryOptions) {
    this.#options = {
      retryMs: 1_000,
      retryMsMax: 300_000,
      ageMsMax: 86_400_000,
      queueEventsMax: 500,
      concurrency: 8,
      queuesMax: 1_000,
      ...options,
    };
    this.#stopListening = options.outbox.onEvents(() => this.#wake());
    this.#wake();
  }

  /** Stops and acknowledges delivered events. The others are delivered after the next start. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.#stopListening();
    for (const queue of this.#queues.values()) queue.close();
    this.#acknowledge();
    await this.#acknowledging;
  }

  /** Returns a function that describes subscriptions as they are now. */
  describe(): (bucket: string, ruleId: string) => SubscriptionState {
    const waiting = new Map<string, { waiting: number; hasMore: boolean }>();
    for (const [key, queue] of this.#queues) {
      const subscription = key.slice(0, key.lastIndexOf("\0"));
      const sum = waiting.get(subscription) ?? { waiting: 0, hasMore: false };
      sum.waiting += queue.size;
      sum.hasMore ||= queue.lagsAfterId !== undefined;
      waiting.set(subscription, sum);
    }
    return (bucket, ruleId) => ({
      ...this.#tries.read(bucket, ruleId),
      ...(waiting.get(`${bucket}\0${ruleId}`) ?? { waiting: 0, hasMore: false }),
    });
  }

  /** Sends a message without an event to a target, once. `undefined` if too many tests are in flight. */
  async test(
    bucket: string,
    { id: ruleId, target: stored }: Pick<NotificationRule, "id" | "target">,
  ): Promise<TestResult | undefined> {
    if (this.#tests >= TESTS_MAX) return undefined;
    const target = readTarget(stored);
    if (target === undefined) {
      const outcome = { kind: "retry", blames: "target", reason: UNREADABLE } as const;
      return { outcome, durationMs: 0 };
    }
    const { clock } = this.#options;
    const beganMs = clock.monotonicMs();
    const id = `test_${randomBytes(12).toString("hex")}`;
    const sender = this.#createSender(target, bucket);
    this.#tests += 1;
    try {
      const body = formatTest({ bucket, ruleId, timeMs: clock.now(), id }, target.names);
      const outcome = await sender.send({ id, body, trace: createTraceHeaders(this.#ids) });
      return { outcome, durationMs: Math.round(clock.monotonicMs() - beganMs) };
    } finally {
      this.#tests -= 1;
      sender.close();
    }
  }

  #wake(): void {
    this.#isWoken = true;
    if (!this.#isReading && !this.#isClosed) void this.#read();
  }

  async #read(): Promise<void> {
    this.#isReading = true;
    try {
      while (this.#isWoken && !this.#isClosed) {
        this.#isWoken = false;
        await this.#readNew();
        for (const [key, queue] of this.#queues)
          if (queue.lagsAfterId !== undefined && hasRoom(queue, this.#options.queueEventsMax))
            await this.#readAgain(key, queue);
      }
    } catch (error) {
      this.#options.log.error("the event outbox could not be read", { error: String(error) });
      setTimeout(() => this.#wake(), OUTBOX_RETRY_MS).unref();
    } finally {
      this.#isReading = false;
    }
  }

  async #readNew(): Promise<void> {
    for (;;) {
      const page = await this.#options.outbox.read(PAGE_EVENTS, this.#cursor);
      for (const event of page) {
        this.#cursor = event.id;
        this.#dispatch(event);
      }
      if (page.length === 0 || this.#isClosed) return;
    }
  }

  #dispatch(event: PendingEvent): void {
    const key = describeQueue(event);
    const queue = this.#queues.get(key) ?? this.#openQueue(key, event);
    if (queue === undefined) return;
    if (queue.lagsAfterId === undefined && !queue.offer(event)) queue.lagsAfterId = event.id - 1;
  }

  // Events that a full queue has refused are still in the outbox. Only the events of this subscription are read, and only
  // up to the cursor, which does not move meanwhile.
  async #readAgain(key: string, queue: TargetQueue): Promise<void> {
    for (;;) {
      const page = await this.#options.outbox.read(PAGE_EVENTS, queue.lagsAfterId);
      for (const event of page) {
        if (event.id > this.#cursor) break;
        if (describeQueue(event) === key && !queue.offer(event)) return;
        queue.lagsAfterId = event.id;
      }
      if (this.#isClosed) return;
      if (page.length === 0 || page.at(-1)!.id >= this.#cursor) break;
    }
    queue.lagsAfterId = undefined;
  }

  #openQueue(key: string, event: PendingEvent): TargetQueue | undefined {
    const target = readTarget(event.target);
    if (target === undefined) {
      this.#giveUp(event, UNREADABLE, NOT_TRIED);
      return undefined;
    }
    this.#makeRoom();
    const { queueEventsMax, ...options } = this.#options;
    const queue = new TargetQueue({
      ...options,
      eventsMax: queueEventsMax,
      sender: this.#createSender(target, event.bucket),
      format: (pending) => ({
        id: `evt_${pending.sequencer}_${pending.id}`,
        body: formatEvent(pending, options.origin, target.names),
        trace: pending.actor.trace ?? createTraceHeaders(this.#ids),
      }),
      onDropped: (dropped) => this.#finish(dropped),
      onDelivered: (delivered, attempt) => {
        this.stats.delivered++;
        this.#note(delivered, "delivered", attempt);
        this.#finish(delivered);
      },
      onFailed: (failed, reason, attempt) => {
        this.stats.failed++;
        this.#note(failed, "failed", attempt, reason);
        const { bucket, ruleId, id } = failed;
        options.log.warn("an event could not be delivered", {
          bucket,
          rule: ruleId,
          event: id,
          reason,
        });
      },
      onGivenUp: (given, reason, attempt) => this.#giveUp(given, reason, attempt),
      onRoom: () => this.#wake(),
    });
    this.#queues.set(key, queue);
    return queue;
  }

  #makeRoom(): void {
    if (this.#queues.size < this.#options.queuesMax) return;
    for (const [key, queue] of this.#queues) {
      if (queue.size > 0 || queue.lagsAfterId !== undefined) continue;
      queue.close();
      this.#queues.delete(key);
      return;
    }
  }

  #createSender(target: DeliveryTarget, bucket: string): Sender {
    const { fetch, policy, masterKey, clock } = this.#options;
    if (target.kind === "stomp") return createStompSender({ target, policy });
    const secret = deriveWebhookSecret(masterKey, bucket, target.url);
    return createWebhookSender({ target, secret, fetch, now: () => clock.now() });
  }

  #note(event: PendingEvent, outcome: Try["outcome"], attempt: Attempt, reason?: string): void {
    const { number, ...details } = attempt;
    const endedMs = this.#options.clock.now();
    this.#tries.add(event, {
      ...details,
      endedMs,
      attempt: number,
      outcome,
      ...(reason === undefined ? {} : { reason }),
    });
  }

  #giveUp(event: PendingEvent, reason: string, attempt: Attempt): void {
    const { bucket, ruleId, id } = event;
    this.stats.givenUp++;
    this.#note(event, "abandoned", attempt, reason);
    this.#options.log.error("event delivery abandoned", {
      bucket,
      rule: ruleId,
      event: id,
      reason,
    });
    this.#options.deadLetters.add(event, reason, attempt.number).then(
      () => this.#finish(event),
      (error: unknown) =>
        // It stays in the outbox and is retried after the next start.
        this.#options.log.error("a dead letter could not be written", { error: String(error) }),
    );
  }

  #finish(event: PendingEvent): void {
    this.#done.push(event.id);
    if (this.#done.length >= ACKNOWLEDGE_EVENTS) this.#acknowledge();
    else this.#acknowledgeTimer ??= setTimeout(() => this.#acknowledge(), ACKNOWLEDGE_MS);
  }

  #acknowledge(): void {
    clearTimeout(this.#acknowledgeTimer);
    this.#acknowledgeTimer = undefined;
    const ids = this.#done;
    if (ids.length === 0) return;
    this.#done = [];
    const acknowledged = this.#options.outbox.acknowledge(ids).catch((error: unknown) => {
      this.#options.log.error("delivered events could not be acknowledged", {
        error: String(error),
        events: ids.length,
      });
    });
    this.#acknowledging = Promise.all([this.#acknowledging, acknowledged]).then(() => undefined);
  }
}

function hasRoom(queue: TargetQueue, eventsMax: number): boolean {
  return queue.size <= eventsMax / 2;
}

// A changed subscription gets a new queue; its waiting events still go to the old target.
function describeQueue(event: PendingEvent): string {
  const target = createHash("sha256").update(JSON.stringify(event.target)).digest("base64");
  return `${event.bucket}\0${event.ruleId}\0${target}`;
}
