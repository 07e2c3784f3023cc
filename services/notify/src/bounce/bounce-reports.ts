// Applies reports about sent mail: events, suppression, webhooks.
import type { Transaction } from "kysely";
import type { Logger } from "@platform/kernel/log";
import type { Clock } from "@platform/kernel/time";
import type { NotifyDatabase, NotifyTables } from "../database/schema.ts";
import type { TraceColumns } from "../database/trace.ts";
import type { NotifyMetrics } from "../metrics.ts";
import type { Suppressions } from "../suppression/suppressions.ts";
import type { WebhookEvent } from "../webhook/event.ts";
import type { Webhooks } from "../webhook/webhooks.ts";
import type { BounceAddresses, BouncedDelivery } from "./bounce-address.ts";
import { toDetail } from "./plain-bounce.ts";
import {
  findReturnAddresses,
  parseReports,
  type MailReport,
  type ReportEnvelope,
} from "./report.ts";
import { judgeReports, type ReportVerdict } from "./verdict.ts";

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
  async receive(recipient: string, content: Uint8Array, envelope: ReportEnvelope): Promise<void> {
    const { addresses, clock, log } = this.#options;
    const delivery = addresses.parse(recipient, clock.now());
    if (delivery === undefined) return;
    const reports = await parseReports(content, envelope).catch((error: unknown): MailReport[] => {
      log.warn("a bounce report could not be parsed", { error, message_id: delivery.messageId });
      const text = toDetail(Buffer.from(content).toString());
      return envelope.sender === "" ? [{ kind: "failed", status: "", recipients: [], text }] : [];
    });
    await this.#apply(delivery, reports);
  }

  /**
   * Applies a complaint that was sent to the address for complaints. The bounce address in the complaint decides which
   * delivery it is about; false if it contains no valid one.
   */
  async receiveComplaint(content: Uint8Array, envelope: ReportEnvelope): Promise<boolean> {
    const found = await findReturnAddresses(content).catch(() => []);
    const recipient = found.find((address) => this.accepts(address));
    if (recipient === undefined) return false;
    await this.receive(recipient, content, envelope);
    return true;
  }

  async #apply(delivery: BouncedDelivery, reports: readonly MailReport[]): Promise<void> {
    const { database, clock, metrics, log } = this.#options;
    const nowMs = clock.now();
    const { messageId } = delivery;
    const verdict = await database.transaction(async (trx) => {
      const row = await readRow(trx, delivery);
      if (row === undefined) return undefined;
      const found = judgeReports(reports, row.address);
      if (found !== undefined) await this.#record(trx, delivery, row, found, nowMs);
      return found;
    });
    if (verdict === undefined) {
      log.info("mail to a bounce address has no effect", { message_id: messageId });
      return;
    }
    const { event, detail, bounceType, isAlarm } = verdict;
    if (event === "bounced") metrics.countBounce(bounceType ?? "soft");
    if (event === "delayed") metrics.countBounce("soft");
    const level = isAlarm ? "warn" : "info";
    log[level]("report about sent mail", { message_id: messageId, event, detail });
  }

  async #record(
    trx: Transaction<NotifyTables>,
    { messageId, position }: BouncedDelivery,
    row: BouncedRow,
    verdict: ReportVerdict,
    nowMs: number,
  ): Promise<void> {
    const { suppressions, webhooks } = this.#options;
    const { event: type, detail, suppression: reason, bounceType } = verdict;
    await trx
      .insertInto("notify_events")
      .values({ message_id: messageId, position, type, at: nowMs, detail })
      .execute();
    if (type === "bounced") {
      const { enhanced, text } = verdict;
      await trx
        .updateTable("notify_deliveries")
        .set({
          status: "bounced",
          bounce_type: bounceType,
          enhanced,
          detail: text,
          updated_at: nowMs,
        })
        .where("message_id", "=", messageId)
        .where("position", "=", position)
        .where("status", "=", "sent")
        .execute();
    }
    if (reason !== undefined) {
      await suppressions.addIn(trx, [{ address: row.address, reason, detail, messageId }], nowMs);
    }
    await webhooks.addIn(trx, toEvents(verdict, messageId, row, nowMs));
  }
}

function readRow(trx: Transaction<NotifyTables>, { messageId, position }: BouncedDelivery) {
  return trx
    .selectFrom("notify_deliveries")
    .innerJoin("notify_messages", "notify_messages.id", "notify_deliveries.message_id")
    .select(["address", "template", "stream", "traceparent", "tracestate"])
    .where("message_id", "=", messageId)
    .where("position", "=", position)
    .executeTakeFirst();
}

function toEvents(
  { event, detail, bounceType, feedbackType }: ReportVerdict,
  messageId: string,
  row: BouncedRow,
  atMs: number,
): WebhookEvent[] {
  const { address, template, stream } = row;
  const data = { message_id: messageId, recipient: address, template, stream, detail };
  const about = { atMs, trace: row };
  switch (event) {
    case "bounced":
      return [
        { ...about, type: "message.bounced", data: { ...data, bounce_type: bounceType ?? null } },
      ];
    case "complained":
      return [
        { ...about, type: "message.complained", data: { ...data, feedback_type: feedbackType } },
      ];
    case "unsubscribed":
      return [{ ...about, type: "message.unsubscribed", data }];
    case "delayed":
    case "feedback":
      return [];
    default:
      return event satisfies never;
  }
}
