// Accepts prepared messages: the durable queue, then a short wait for the relay.
import { createRetryLaterError } from "@platform/kernel/errors";
import type { Logger } from "@platform/kernel/log";
import type { Clock } from "@platform/kernel/time";
import type { BodyRow, MessageRow } from "../database/message.ts";
import type { DeliveryResult } from "../delivery.ts";
import { LEASE_MS, type Dispatcher } from "../queue/dispatcher.ts";
import {
  toDelivery,
  toLoadedMessage,
  type NewDelivery,
  type NewMessage,
  type QueueStore,
} from "../queue/store.ts";
import { createAnswer, type AnswerInput, type RecipientResult, type SendAnswer } from "./answer.ts";
import { toIdempotencyRow, type UsedKey } from "./idempotency.ts";
import type { Recipient } from "./recipients.ts";
import { Waiters } from "./waiters.ts";

/** Options of {@link Acceptance}. */
export interface AcceptanceOptions {
  store: QueueStore;
  dispatcher: Dispatcher;
  clock: Clock;
  log: Logger;
  waitMs: number;
  bodyRetentionMs: number;
  /** Maximum number of deliveries that have not ended. */
  queueMax: number;
}

/** A message that passed all checks. */
export interface PreparedMessage {
  message: MessageRow;
  body: Pick<BodyRow, "variables" | "warnings"> & { content: Buffer };
  recipients: readonly Recipient[];
  idempotency: UsedKey | undefined;
  /** Events that are stored with it. */
  events?: NewMessage["events"];
  /** Facts of the answer. */
  answer: Pick<AnswerInput, "suppressed" | "template">;
}

const COUNT_REUSE_MS = 500;

/** Stores messages and waits for their first attempts. */
export class Acceptance {
  readonly #options: AcceptanceOptions;
  readonly #waiters = new Waiters();
  #open: { count: number; atMs: number } | undefined;

  constructor(options: AcceptanceOptions) {
    this.#options = options;
    // The request that waits gets the results of the first attempts.
    options.dispatcher.onResult((result) => this.#waiters.note(result));
  }

  /** Rejects with `queue_full` if too many deliveries wait. */
  async checkQueue(): Promise<void> {
    const { clock, store, queueMax } = this.#options;
    const nowMs = clock.monotonicMs();
    if (this.#open === undefined || nowMs - this.#open.atMs > COUNT_REUSE_MS) {
      this.#open = { count: await store.countOpen(), atMs: nowMs };
    }
    if (this.#open.count + store.waiting < queueMax) return;
    throw createRetryLaterError("queue_full", "Too many deliveries wait in the queue.", 30);
  }

  /** Stores a message, starts its deliveries and answers. Throws `recipient_rejected` if all recipients were refused. */
  async accept(prepared: PreparedMessage): Promise<SendAnswer> {
    const { store, dispatcher, clock, log, bodyRetentionMs } = this.#options;
    const { message, idempotency } = prepared;
    const { content, ...facts } = prepared.body;
    const deliveries = this.#createDeliveries(prepared);
    const startsAtMs = message.send_at ?? message.created_at;
    await store.insert({
      message,
      body: { message_id: message.id, content, ...facts, expires_at: startsAtMs + bodyRetentionMs },
      deliveries,
      idempotency: idempotency === undefined ? undefined : toIdempotencyRow(message, idempotency),
      events: prepared.events ?? [],
    });
    log.info("message accepted", {
      message_id: message.id,
      to: deliveries.map(({ address }) => address).join(", "),
      template: message.template ?? "",
      channel: message.channel,
      status: "queued",
      trace_id: message.trace_id,
    });
    const ready = deliveries.filter(({ leased }) => leased !== 0);
    if (ready.length < deliveries.length) dispatcher.noteBacklog();
    const results = this.#wait(message.id, ready);
    const loaded = toLoadedMessage(message, content);
    for (const delivery of ready) {
      dispatcher.add(toDelivery({ ...delivery, leased: 0 }, loaded, delivery.due_at!));
    }
    return createAnswer({
      messageId: message.id,
      recipients: toRecipientResults(deliveries, await results),
      deliveredAtMs: clock.now(),
      ...prepared.answer,
    });
  }

  async #wait(id: string, ready: readonly NewDelivery[]): Promise<readonly DeliveryResult[]> {
    if (ready.length === 0) return [];
    const positions = ready.map(({ position }) => position);
    return this.#waiters.wait(id, positions, this.#options.waitMs);
  }

  // Deliveries that start now are leased in memory; others are read from the database later.
  #createDeliveries({ message, recipients }: PreparedMessage): NewDelivery[] {
    const { dispatcher, store } = this.#options;
    const { id, client, stream, send_at: sendAt, created_at: nowMs } = message;
    const queueClass = stream === "transactional" ? 0 : 1;
    return recipients.map(({ kind, mailbox: { address, domain } }, position) => {
      const isReady = sendAt === null && dispatcher.hasRoom(queueClass, client, domain);
      return {
        message_id: id,
        position,
        kind,
        address,
        domain,
        client,
        class: queueClass,
        status: "queued",
        attempts: 0,
        fence: isReady ? 1 : 0,
        due_at: isReady ? nowMs + LEASE_MS : (sendAt ?? nowMs),
        leased: isReady ? store.leaseMark : 0,
        code: null,
        enhanced: null,
        detail: null,
        relay: null,
        bounce_type: null,
        updated_at: nowMs,
      };
    });
  }
}

function toRecipientResults(
  deliveries: readonly NewDelivery[],
  results: readonly DeliveryResult[],
): RecipientResult[] {
  const byPosition = new Map(results.map((result) => [result.delivery.position, result]));
  return deliveries.map(({ position, address }) => {
    const result = byPosition.get(position);
    if (result === undefined) return { address, status: "queued" };
    const { status, reply } = result;
    return { address, status, code: reply.code, enhanced: reply.enhanced, detail: reply.text };
  });
}
