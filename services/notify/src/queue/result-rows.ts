// The rows of results: state of deliveries, events, ids of gateways, erased contents.
import type { Transaction } from "kysely";
import type { NotifyTables } from "../database/schema.ts";
import { splitRows } from "../database/split-rows.ts";
import { findBounceType } from "../bounce/classify.ts";
import { RETRY_CLASS, type DeliveryResult } from "../delivery.ts";

const GATEWAY_ID_CHARACTERS_MAX = 255;

/** Writes results; false for those whose lease was lost, which change nothing. */
export async function recordResults(
  trx: Transaction<NotifyTables>,
  results: readonly DeliveryResult[],
  nowMs: number,
): Promise<boolean[]> {
  const recorded: boolean[] = [];
  for (const result of results) recorded.push(await recordResult(trx, result, nowMs));
  const valid = results.filter((_, index) => recorded[index]);
  const events = valid.flatMap(({ delivery, events: found }) =>
    found.map(({ type, detail }) => ({
      message_id: delivery.message.id,
      position: delivery.position,
      type,
      at: nowMs,
      detail,
    })),
  );
  for (const rows of splitRows(events)) {
    await trx.insertInto("notify_events").values(rows).execute();
  }
  await addGatewayIds(trx, valid, nowMs);
  await eraseSensitive(trx, valid);
  return recorded;
}

async function recordResult(
  trx: Transaction<NotifyTables>,
  { delivery, status, reply, dueAt }: DeliveryResult,
  nowMs: number,
): Promise<boolean> {
  const { numUpdatedRows } = await trx
    .updateTable("notify_deliveries")
    .set({
      status,
      attempts: delivery.attempts + 1,
      due_at: dueAt ?? null,
      leased: 0,
      class: dueAt === undefined ? delivery.queueClass : RETRY_CLASS,
      code: reply.code ?? null,
      enhanced: reply.enhanced ?? null,
      detail: reply.text,
      relay: reply.relay,
      ...(status === "bounced" ? { bounce_type: findBounceType(reply) } : {}),
      updated_at: nowMs,
    })
    .where("message_id", "=", delivery.message.id)
    .where("position", "=", delivery.position)
    .where("fence", "=", delivery.fence)
    .where("due_at", "is not", null)
    .executeTakeFirst();
  return numUpdatedRows === 1n;
}

async function addGatewayIds(
  trx: Transaction<NotifyTables>,
  results: readonly DeliveryResult[],
  nowMs: number,
): Promise<void> {
  const rows = results.flatMap(({ delivery, reply: { gatewayId } }) =>
    gatewayId === undefined || gatewayId.length > GATEWAY_ID_CHARACTERS_MAX
      ? []
      : [
          {
            gateway_id: gatewayId,
            message_id: delivery.message.id,
            position: delivery.position,
            created_at: nowMs,
          },
        ],
  );
  for (const group of splitRows(rows)) {
    await trx
      .insertInto("notify_gateway_ids")
      .values(group)
      .onConflict((conflict) => conflict.column("gateway_id").doNothing())
      .execute();
  }
}

// The content of a sensitive message is erased with its last delivery.
async function eraseSensitive(
  trx: Transaction<NotifyTables>,
  results: readonly DeliveryResult[],
): Promise<void> {
  for (const { delivery, dueAt } of results) {
    if (!delivery.message.isSensitive || dueAt !== undefined) continue;
    await trx
      .deleteFrom("notify_bodies")
      .where("message_id", "=", delivery.message.id)
      .where((eb) =>
        eb.not(
          eb.exists(
            eb
              .selectFrom("notify_deliveries")
              .select("position")
              .where("message_id", "=", delivery.message.id)
              .where("due_at", "is not", null),
          ),
        ),
      )
      .execute();
  }
}
