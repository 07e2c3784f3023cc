// Consequences of results: suppression of addresses that do not exist, metrics, log lines.
import type { Transaction } from "kysely";
import type { Logger } from "@platform/kernel/log";
import type { Clock } from "@platform/kernel/time";
import { concernsAddress } from "../bounce/classify.ts";
import type { NotifyTables } from "../database/schema.ts";
import type { DeliveryResult } from "../delivery.ts";
import type { NotifyMetrics } from "../metrics.ts";
import type { Suppressions } from "../suppression/suppressions.ts";

/** Options of {@link ResultRecorder}. */
export interface ResultRecorderOptions {
  suppressions: Suppressions;
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
    const { suppressions, clock } = this.#options;
    const bounced = results
      .filter(({ status, reply }) => status === "bounced" && concernsAddress(reply))
      .map(({ delivery, reply }) => ({
        address: delivery.address,
        reason: "hard_bounce" as const,
        detail: [reply.code, reply.enhanced, reply.text].filter(Boolean).join(" "),
        messageId: delivery.message.id,
      }));
    if (bounced.length > 0) await suppressions.addIn(trx, bounced, clock.now());
  }

  /** Counts and logs a recorded result. */
  observe({ delivery, status, reply }: DeliveryResult): void {
    const { metrics, clock, log } = this.#options;
    const { message } = delivery;
    metrics.countSent(message.channel, status);
    const latencyMs = clock.now() - message.createdAt;
    if (status === "sent") metrics.observeLatency(latencyMs);
    if (status === "bounced") metrics.countBounce("hard");
    if (status === "deferred" && reply.code !== undefined) metrics.countBounce("soft");
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
