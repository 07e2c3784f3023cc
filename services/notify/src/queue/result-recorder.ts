// Consequences of results: suppression of addresses that do not exist, webhooks, the alarm, metrics, log lines.
import type { Transaction } from "kysely";
import type { Logger } from "@platform/kernel/log";
import type { Clock } from "@platform/kernel/time";
import { concernsAddress, findBounceType } from "../bounce/classify.ts";
import type { BounceRateAlarm } from "../bounce/rate-alarm.ts";
import type { NotifyTables } from "../database/schema.ts";
import type { DeliveryResult } from "../delivery.ts";
import type { NotifyMetrics } from "../metrics.ts";
import type { Suppressions } from "../suppression/suppressions.ts";
import type { WebhookEvent, WebhookEventType } from "../webhook/event.ts";
import type { Webhooks } from "../webhook/webhooks.ts";

/** Options of {@link ResultRecorder}. */
export interface ResultRecorderOptions {
  suppressions: Suppressions;
  webhooks: Webhooks;
  alarm: BounceRateAlarm;
  metrics: NotifyMetrics;
  clock: Clock;
  log: Logger;
}

/** Draws the consequences of results. */
export class ResultRecorder {
  readonly #options: ResultRecorderOptions;

  constructor(options: ResultRecorderOptions) {
    this.#options = options;
  }

  /** Adds the rows that follow from results, in the transaction that records them. */
  async record(trx: Transaction<NotifyTables>, results: readonly DeliveryResult[]): Promise<void> {
    const { suppressions, webhooks, alarm, clock } = this.#options;
    const nowMs = clock.now();
    const events = results.flatMap((result) => toEvent(result, nowMs) ?? []);
    for (const { status, delivery } of results) {
      if (delivery.message.channel !== "email") continue;
      if (status !== "sent" && status !== "bounced") continue;
      const rate = alarm.count(status === "bounced");
      if (rate !== undefined) events.push(toAlarm(rate, nowMs));
    }
    await webhooks.addIn(trx, events);
    const bounced = results
      .filter(({ delivery }) => delivery.message.channel === "email")
      .filter(({ status, reply }) => status === "bounced" && concernsAddress(reply))
      .map(({ delivery, reply }) => ({
        address: delivery.address,
        reason: "hard_bounce" as const,
        detail: [reply.code, reply.enhanced, reply.text].filter(Boolean).join(" "),
        messageId: delivery.message.id,
      }));
    if (bounced.length > 0) await suppressions.addIn(trx, bounced, nowMs);
  }

  /** Counts and logs a recorded result. */
  observe({ delivery, status, reply }: DeliveryResult): void {
    const { metrics, clock, log } = this.#options;
    const { message } = delivery;
    metrics.countSent(message.channel, status);
    const latencyMs = clock.now() - message.createdAt;
    if (status === "sent") metrics.observeLatency(latencyMs);
    if (message.channel === "email") {
      if (status === "bounced") metrics.countBounce(findBounceType(reply));
      if (status === "deferred" && reply.code !== undefined) metrics.countBounce("soft");
    }
    if (status === "suppressed") metrics.countSuppressed(1);
    log.info("delivery attempted", {
      message_id: message.id,
      to: delivery.address,
      template: message.template ?? "",
      channel: message.channel,
      status,
      relay: reply.relay,
      code: reply.code,
      duration_ms: latencyMs,
      trace_id: message.traceId,
    });
  }
}

// Of several temporary failures only the first is an event.
function toEvent(
  { delivery, status, reply }: DeliveryResult,
  atMs: number,
): WebhookEvent | undefined {
  if (status === "deferred" && delivery.attempts > 0) return undefined;
  const { message, address } = delivery;
  const type: WebhookEventType = `message.${status}`;
  const data = {
    message_id: message.id,
    recipient: address,
    channel: message.channel,
    stream: message.stream,
    template: message.template,
    tags: message.tags === null ? [] : (JSON.parse(message.tags) as unknown),
    metadata: message.metadata === null ? {} : (JSON.parse(message.metadata) as unknown),
    code: reply.code ?? null,
    enhanced: reply.enhanced ?? null,
    detail: reply.text,
    ...(status === "bounced" ? { bounce_type: findBounceType(reply) } : {}),
  };
  return { type, atMs, data, trace: message.trace };
}

function toAlarm(rate: number, atMs: number): WebhookEvent {
  return { type: "bounce_rate.exceeded", atMs, data: { rate, window: "1h" } };
}
