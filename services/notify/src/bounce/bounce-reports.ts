// Applies reports about sent mail: events, suppression, webhooks.
import type { Logger } from "@platform/kernel/log";
import type { Clock } from "@platform/kernel/time";
import type { NotifyDatabase } from "../database/schema.ts";
import type { TraceColumns } from "../database/trace.ts";
import type { NotifyMetrics } from "../metrics.ts";
import type { Suppressions } from "../suppression/suppressions.ts";
import type { WebhookEvent } from "../webhook/event.ts";
import type { Webhooks } from "../webhook/webhooks.ts";
import type { BounceAddresses, BouncedDelivery } from "./bounce-address.ts";
import { concernsAddress } from "./classify.ts";
import { findReturnAddresses, parseReports, type MailReport } from "./report.ts";

/** Options of {@link BounceReports}. */
export interface BounceReportsOptions {
  database: NotifyDatabase;
  addresses: BounceAddresses;
  suppressions: Suppressions;
  webhooks: Webhooks;
  metrics: Pick<NotifyMetrics, "countBounce">;
  clock: Clock;
  log: Logger;
}

interface BouncedRow extends TraceColumns {
  address: string;
  template: string | null;
  stream: string;
}

/** Receives mail to bounce addresses. */
export class BounceReports {
  readonly #options: BounceReportsOptions;

  constructor(options: BounceReportsOptions) {
    this.#options = options;
  }

  /** True if an address is a valid bounce address: others are no recipients. */
  accepts(recipient: string): boolean {
    return this.#options.addresses.parse(recipient, this.#options.clock.now()) !== undefined;
  }

  /**
   * Applies a report that was sent to a bounce address; when this resolves, it is on disk. The address, not the report,
   * decides which delivery it is about, so that a forged report cannot suppress other addresses.
   */
  async receive(recipient: string, content: Uint8Array): Promise<void> {
    const { addresses, clock, log } = this.#options;
    const delivery = addresses.parse(recipient, clock.now());
    if (delivery === undefined) return;
    const reports = await parseReports(content).catch((error: unknown) => {
      log.warn("a bounce report could not be parsed", { error, message_id: delivery.messageId });
      return [];
    });
    for (const report of reports) await this.#apply(delivery, report);
  }

  /**
   * Applies a complaint that was sent to the address for complaints. The bounce address in the complaint decides which
   * delivery it is about; false if it contains no valid one.
   */
  async receiveComplaint(content: Uint8Array): Promise<boolean> {
    const found = await findReturnAddresses(content).catch(() => []);
    const recipient = found.find((address) => this.accepts(address));
    if (recipient === undefined) return false;
    await this.receive(recipient, content);
    return true;
  }

  async #apply({ messageId, position }: BouncedDelivery, report: MailReport): Promise<void> {
    const { database, clock, suppressions, webhooks, metrics } = this.#options;
    const nowMs = clock.now();
    const isApplied = await database.transaction(async (trx) => {
      const row = await trx
        .selectFrom("notify_deliveries")
        .innerJoin("notify_messages", "notify_messages.id", "notify_deliveries.message_id")
        .select(["address", "template", "stream", "traceparent", "tracestate"])
        .where("message_id", "=", messageId)
        .where("position", "=", position)
        .executeTakeFirst();
      if (row === undefined) return false;
      const { type, detail } = describe(report);
      await trx
        .insertInto("notify_events")
        .values({ message_id: messageId, position, type, at: nowMs, detail })
        .execute();
      if (report.kind === "failed") {
        await trx
          .updateTable("notify_deliveries")
          .set({
            status: "bounced",
            enhanced: report.status,
            detail: report.text,
            updated_at: nowMs,
          })
          .where("message_id", "=", messageId)
          .where("position", "=", position)
          .where("status", "=", "sent")
          .execute();
      }
      const reason = findReason(report);
      if (reason !== undefined) {
        await suppressions.addIn(trx, [{ address: row.address, reason, detail, messageId }], nowMs);
      }
      await webhooks.addIn(trx, toEvents(report, messageId, row, nowMs));
      return true;
    });
    if (isApplied && report.kind !== "complaint") {
      metrics.countBounce(report.kind === "failed" ? "hard" : "soft");
    }
  }
}

function findReason(report: MailReport): "hard_bounce" | "complaint" | undefined {
  if (report.kind === "complaint") return "complaint";
  if (report.kind === "delayed") return undefined;
  return concernsAddress({ enhanced: report.status, text: report.text })
    ? "hard_bounce"
    : undefined;
}

function describe(report: MailReport): { type: string; detail: string } {
  switch (report.kind) {
    case "failed":
      return { type: "bounced", detail: `${report.status} ${report.text}`.trim() };
    case "delayed":
      return { type: "delayed", detail: `${report.status} ${report.text}`.trim() };
    case "complaint":
      return { type: "complained", detail: report.feedbackType };
    default:
      return report satisfies never;
  }
}

function toEvents(
  report: MailReport,
  messageId: string,
  row: BouncedRow,
  atMs: number,
): WebhookEvent[] {
  if (report.kind === "delayed") return [];
  const type = report.kind === "complaint" ? "message.complained" : "message.bounced";
  const { address, template, stream } = row;
  const { detail } = describe(report);
  const data = { message_id: messageId, recipient: address, template, stream, detail };
  return [{ type, atMs, data, trace: row }];
}
