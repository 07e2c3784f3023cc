// Applies delivery receipts: events, states of deliveries, webhooks.
import type { Clock } from "@platform/kernel/time";
import { addEventOnce } from "../../database/events.ts";
import type { NotifyDatabase } from "../../database/schema.ts";
import type { SmsPreset } from "../../settings/sms.ts";
import type { Webhooks } from "../../webhook/webhooks.ts";
import { isAuthentic, readReceipt, type ReceiptRequest, type ReceiptSecrets } from "./receipt.ts";

/** Options of {@link SmsReceipts}. */
export interface SmsReceiptsOptions {
  database: NotifyDatabase;
  webhooks: Webhooks;
  clock: Clock;
  preset: SmsPreset;
  secrets: ReceiptSecrets;
}

/** Effect of a receipt. `unknown` ids may belong to a message whose acceptance is being recorded. */
export type ReceiptEffect = "applied" | "invalid" | "refused" | "unknown";

/** Receipts of the gateway. */
export class SmsReceipts {
  readonly #options: SmsReceiptsOptions;

  constructor(options: SmsReceiptsOptions) {
    this.#options = options;
  }

  /** Applies a receipt; when this resolves, it is on disk. Repetitions have no effect. */
  async apply(request: ReceiptRequest): Promise<ReceiptEffect> {
    const { database, clock, preset, secrets, webhooks } = this.#options;
    if (!isAuthentic(preset, request, secrets)) return "refused";
    const receipt = readReceipt(preset, request);
    if (receipt === undefined) return "invalid";
    const nowMs = clock.now();
    const { state, status } = receipt;
    return database.transaction(async (trx) => {
      const row = await trx
        .selectFrom("notify_gateway_ids")
        .innerJoin("notify_deliveries", (join) =>
          join
            .onRef("notify_deliveries.message_id", "=", "notify_gateway_ids.message_id")
            .onRef("notify_deliveries.position", "=", "notify_gateway_ids.position"),
        )
        .innerJoin("notify_messages", "notify_messages.id", "notify_gateway_ids.message_id")
        .select(["notify_deliveries.message_id", "notify_deliveries.position", "address"])
        .select(["stream", "template", "tags", "metadata", "traceparent", "tracestate"])
        .where("gateway_id", "=", receipt.id)
        .executeTakeFirst();
      if (row === undefined) return "unknown";
      if (state === "pending") return "applied";
      const { message_id, position } = row;
      const type = state === "delivered" ? "delivered" : "undelivered";
      const event = { message_id, position, type, at: nowMs, detail: status };
      if (!(await addEventOnce(trx, event))) return "applied";
      if (state === "failed") {
        await trx
          .updateTable("notify_deliveries")
          .set({ status: "failed", detail: `the gateway reports: ${status}`, updated_at: nowMs })
          .where("message_id", "=", message_id)
          .where("position", "=", position)
          .where("status", "=", "sent")
          .execute();
      }
      const data = {
        message_id,
        recipient: row.address,
        channel: "sms",
        stream: row.stream,
        template: row.template,
        tags: JSON.parse(row.tags ?? "[]") as unknown,
        metadata: JSON.parse(row.metadata ?? "{}") as unknown,
        detail: status,
      };
      await webhooks.addIn(trx, [{ type: `message.${state}`, atMs: nowMs, data, trace: row }]);
      return "applied";
    });
  }
}
